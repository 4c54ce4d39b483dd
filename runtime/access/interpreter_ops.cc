// SPDX-License-Identifier: Apache-2.0
// What modelled instructions compute; see Interpreter.

#include <algorithm>
#include <array>
#include <utility>

#include "absl/numeric/bits.h"
#include "runtime/access/interpreter.h"

namespace heddle::access {
namespace {

using cubin::SassCombine;
using cubin::SassCompare;
using cubin::SassOp;
using cubin::SassOperation;
using cubin::SassSpecial;

bool ConstantOf(const Universe& universe, FormId form, int64_t* value) {
  const Form& f = universe.form(form);
  if (!f.is_constant()) return false;
  *value = f.constant;
  return true;
}

Truth Known(bool value) {
  Truth truth;
  truth.known = value ? 1 : 0;
  return truth;
}

Truth And(const Truth& a, const Truth& b) {
  if (a.known == 0 || b.known == 0) return Known(false);
  if (a.known == 1) return b;
  if (b.known == 1) return a;
  Truth both;
  both.when_true = a.when_true;
  both.when_true.insert(both.when_true.end(), b.when_true.begin(),
                        b.when_true.end());
  return both;
}

Truth Not(Truth a) {
  if (a.known >= 0) a.known = static_cast<int8_t>(1 - a.known);
  std::swap(a.when_true, a.when_false);
  a.low = nullptr;
  return a;
}

Truth Or(const Truth& a, const Truth& b) { return Not(And(Not(a), Not(b))); }

Truth Combine(SassCombine combine, const Truth& a, const Truth& b) {
  switch (combine) {
    case SassCombine::kAnd:
      return And(a, b);
    case SassCombine::kOr:
      return Or(a, b);
    case SassCombine::kXor:
      if (b.known == 0) return a;
      if (b.known == 1) return Not(a);
      if (a.known == 0) return b;
      if (a.known == 1) return Not(b);
      return Truth();
  }
  return Truth();
}

}  // namespace

Interpreter::Results Interpreter::Compute(const SassOperation& op,
                                          Where* where) {
  switch (op.op) {
    case SassOp::kMove: {
      Results results;
      results.values = op.destination_words;
      for (int word = 0; word < std::min<int>(2, results.values); ++word) {
        Value value = op.source[0].negate || op.source[0].invert
                          ? Read(op.source[0], word, where)
                          : Raw(op.source[0], word, where);
        // From one of the threads into the register of all.
        if (op.uniform && op.source[0].kind == Source::Kind::kRegister &&
            value.kind != Value::Kind::kTop &&
            universe_.VariesInWarp(universe_.form(value.form))) {
          value = Unknown(
              domain_.RangeOf(Integer(value, true, where), *where->state),
              domain_.OriginsOf(value), false, where);
        }
        results.value[word] = value;
      }
      return results;
    }
    case SassOp::kAdd:
      return op.extended ? ComputeExtendedAdd(op, where)
                         : ComputeAdd(op, where);
    case SassOp::kMultiplyAdd:
    case SassOp::kMultiplyWide:
    case SassOp::kMultiplyHigh:
      return ComputeMultiply(op, where);
    case SassOp::kShiftAdd:
    case SassOp::kShiftAddHigh:
      return ComputeShiftAdd(op, where);
    case SassOp::kLogic3:
      return ComputeLogic(op, where);
    case SassOp::kFunnelShift:
      return ComputeShift(op, where);
    case SassOp::kCompare:
      return ComputeCompare(op, where);
    case SassOp::kLogic3Predicate:
      return ComputeLogicPredicate(op, where);
    case SassOp::kSelect:
    case SassOp::kMinMax:
      return ComputeSelect(op, where);
    case SassOp::kReadSpecial:
      return ComputeSpecial(op, where);
    case SassOp::kReadConstant:
      return ComputeConstant(op, where);
    default:
      return ComputeSmall(op, where);
  }
}

Value Interpreter::AddWords(absl::Span<const Value> values,
                            absl::Span<const bool> negated, Where* where) {
  std::vector<std::pair<Value, bool>> operands;
  int64_t constant = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t number;
    if (values[i].kind == Value::Kind::kWord &&
        ConstantOf(universe_, values[i].form, &number)) {
      constant += negated[i] ? -number : number;
    } else {
      operands.emplace_back(values[i], negated[i]);
    }
  }
  constant = static_cast<int32_t>(constant);
  if (operands.empty()) {
    return domain_.ConstantWord(static_cast<uint32_t>(constant));
  }
  if (operands.size() == 1 && constant == 0 && !operands[0].second) {
    return operands[0].first;
  }
  // A high half takes whole words without losing what it belongs to.
  const auto is_high = [](const std::pair<Value, bool>& operand) {
    return operand.first.kind == Value::Kind::kHigh && !operand.second;
  };
  if (std::count_if(operands.begin(), operands.end(), is_high) == 1) {
    Form sum;
    sum.constant = constant;
    FormId high = 0;
    for (const auto& operand : operands) {
      if (is_high(operand)) {
        high = operand.first.form;
      } else {
        sum = Add(sum, universe_.form(Low(operand.first, where)),
                  operand.second ? -1 : 1);
      }
    }
    return domain_.High(Add(universe_.form(high), sum, int64_t{1} << 32),
                        *where->state);
  }
  Form sum;
  sum.constant = constant;
  for (const auto& operand : operands) {
    sum = Add(sum, universe_.form(Low(operand.first, where)),
              operand.second ? -1 : 1);
  }
  return domain_.Word(sum);
}

Interpreter::Results Interpreter::ComputeAdd(const SassOperation& op,
                                             Where* where) {
  auto low = std::make_shared<LowHalf>();
  for (size_t i = 0; i < 3; ++i) {
    low->operand[i] = Raw(op.source[i], 0, where);
    low->negated[i] = op.source[i].negate;
    if (op.source[i].invert || op.source[i].absolute) {
      low->operand[i] = Read(op.source[i], 0, where);
      low->negated[i] = false;
    }
  }
  low->operands = 3;
  Results results;
  results.values = 1;
  results.value[0] = AddWords(low->operand, low->negated, where);
  results.truth[0].low = low;
  results.truth[1].low = low;
  results.truth[1].carry = 1;
  return results;
}

Interpreter::Results Interpreter::ComputeExtendedAdd(const SassOperation& op,
                                                     Where* where) {
  std::array<Value, 3> high;
  std::array<bool, 3> inverted{};
  for (size_t i = 0; i < 3; ++i) {
    high[i] = Raw(op.source[i], 0, where);
    // Under .X a negated source is its bits inverted.
    inverted[i] = op.source[i].negate || op.source[i].invert;
  }
  Results results;
  results.values = 1;
  results.value[0] = ExtendedSum(
      high, inverted, absl::MakeConstSpan(op.source_predicate).first(2), where);
  return results;
}

Value Interpreter::ExtendedSum(
    const std::array<Value, 3>& high, const std::array<bool, 3>& inverted,
    absl::Span<const cubin::SassPredicateUse> carry_uses, Where* where) {
  std::shared_ptr<const LowHalf> low;
  int64_t carry = 0;
  bool open = false;
  int carries = 0;
  for (const cubin::SassPredicateUse& use : carry_uses) {
    const Truth truth = TruthOf(use, *where->state);
    if (use.index == cubin::kSassPredicateTrue) {
      carry += use.negated ? 0 : 1;
      continue;
    }
    if (truth.low == nullptr || truth.low->shift != 0 ||
        (low != nullptr && low != truth.low)) {
      if (truth.known >= 0) {
        carry += truth.known;
      } else {
        open = true;
        ++carries;
      }
      continue;
    }
    low = truth.low;
    ++carries;
  }
  int64_t ignored;
  if (low != nullptr && !open && carry == 0) {
    // With three summands two carries can come out of the low half.
    int summands = 0;
    for (int i = 0; i < 3; ++i) {
      const bool zero = low->operand[i].kind == Value::Kind::kWord &&
                        ConstantOf(universe_, low->operand[i].form, &ignored) &&
                        ignored == 0 && !low->negated[i];
      summands += zero ? 0 : 1;
    }
    // Which high half belongs to which low half makes no difference to the sum,
    // only to how much of it is understood.
    std::array<int, 3> order = {0, 1, 2};
    std::array<int, 3> best = order;
    int best_score = -1;
    do {
      int score = 0;
      for (int i = 0; i < 3; ++i) {
        const Value& l = low->operand[i];
        const Value& h = high[order[i]];
        if (low->negated[i] != inverted[order[i]]) {
          score = -100;
          break;
        }
        Form whole;
        if (Linked(l, h, &whole)) {
          score += 4;
        } else if (h.kind == Value::Kind::kWord &&
                   ConstantOf(universe_, h.form, &ignored)) {
          score += 1;
        }
      }
      if (score > best_score) {
        best_score = score;
        best = order;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    if (best_score >= 0 && (summands <= 2 || carries == 2)) {
      Form sum;
      for (int i = 0; i < 3; ++i) {
        sum = Add(
            sum, universe_.form(Compose(low->operand[i], high[best[i]], where)),
            low->negated[i] ? -1 : 1);
      }
      return domain_.High(sum, *where->state);
    }
    open = true;
  }
  std::array<Value, 4> words;
  std::array<bool, 4> negated{};
  for (size_t i = 0; i < 3; ++i) {
    words[i] = high[i];
    // ~x = -x - 1.
    negated[i] = inverted[i];
    if (inverted[i]) carry -= 1;
  }
  words[3] = domain_.ConstantWord(static_cast<uint32_t>(carry));
  if (open || low != nullptr) {
    const Value unknown =
        Unknown(Range{carry, carry + std::max(1, carries)}, 0, true, where);
    words[3] = unknown;
  }
  return AddWords(words, negated, where);
}

FormId Interpreter::Multiply(FormId a, FormId b, Where* where) {
  int64_t factor;
  if (ConstantOf(universe_, a, &factor)) {
    return universe_.Intern(Times(universe_.form(b), factor));
  }
  if (ConstantOf(universe_, b, &factor)) {
    return universe_.Intern(Times(universe_.form(a), factor));
  }
  const Form fa = universe_.form(a);
  const Form fb = universe_.form(b);
  const Range range = Product(domain_.RangeOf(a, *where->state),
                              domain_.RangeOf(b, *where->state));
  return Unknown(range, universe_.OriginsOf(fa) | universe_.OriginsOf(fb),
                 universe_.VariesInWarp(fa) || universe_.VariesInWarp(fb),
                 where)
      .form;
}

Interpreter::Results Interpreter::ComputeMultiply(const SassOperation& op,
                                                  Where* where) {
  Results results;
  const auto value = [&](int i) { return Read(op.source[i], 0, where); };
  if (op.op == SassOp::kMultiplyAdd) {
    const Value a = value(0);
    const Value b = value(1);
    int64_t factor = 0;
    const bool constant_b =
        b.kind == Value::Kind::kWord && ConstantOf(universe_, b.form, &factor);
    int64_t factor_a = 0;
    const bool constant_a = a.kind == Value::Kind::kWord &&
                            ConstantOf(universe_, a.form, &factor_a);
    const Value& other = constant_b ? a : b;
    if (!constant_b) factor = factor_a;
    const bool linear = constant_a || constant_b;
    if (op.extended) {
      // a + c and a carry, written as a multiplication.
      const bool product_zero =
          linear && (factor == 0 || (constant_a && factor_a == 0));
      if (linear && (factor == 1 || product_zero)) {
        SassOperation add = op;
        add.op = SassOp::kAdd;
        const Source zero;
        const Source& kept = constant_b ? op.source[0] : op.source[1];
        add.source = {product_zero ? zero : kept, op.source[2], zero};
        add.source_predicate[1] = {cubin::kSassPredicateTrue, true, false};
        return ComputeExtendedAdd(add, where);
      }
      return results;
    }
    results.values = 1;
    const Value c = op.source[2].negate || op.source[2].invert
                        ? value(2)
                        : Raw(op.source[2], 0, where);
    if (linear && (factor == 0 || (constant_a && factor_a == 0))) {
      results.value[0] = c;
      return results;
    }
    if (linear && factor == 1) {
      const std::array<Value, 2> words = {other, c};
      const std::array<bool, 2> negated{};
      results.value[0] = AddWords(words, negated, where);
      return results;
    }
    Form product;
    if (linear) {
      product = Times(universe_.form(Low(other, where)), factor);
    } else {
      product = universe_.form(
          Multiply(Integer(a, true, where), Integer(b, true, where), where));
    }
    results.value[0] =
        domain_.Word(Add(product, universe_.form(Low(c, where))));
    return results;
  }
  const FormId a = Integer(value(0), op.is_signed, where);
  const FormId b = Integer(value(1), op.is_signed, where);
  const Source& third = op.source[2];
  FormId c = 0;
  if (third.kind != Source::Kind::kZero) {
    c = third.words == 2
            ? Compose(Raw(third, 0, where), Raw(third, 1, where), where)
            : Integer(Raw(third, 0, where), op.is_signed, where);
    if (third.invert) return results;
  }
  int64_t factor;
  if (op.op == SassOp::kMultiplyHigh &&
      op.source[2].kind == Source::Kind::kZero && !op.extended) {
    // Division by a constant.
    FormId numerator = a;
    if (ConstantOf(universe_, a, &factor)) {
      numerator = b;
    } else if (!ConstantOf(universe_, b, &factor)) {
      factor = 0;
    }
    if (factor != 0 && !universe_.form(numerator).is_constant()) {
      const Range range =
          Scale(domain_.RangeOf(numerator, *where->state), factor);
      results.values = 1;
      if (range.lo >> 32 == range.hi >> 32) {
        results.value[0] = domain_.Word(
            universe_.Constant(static_cast<int64_t>(range.lo >> 32)));
      } else {
        results.value[0] = domain_.Word(universe_.Of(
            domain_.Quotient(numerator, factor, 32, *where->state)));
      }
      return results;
    }
  }
  if (op.extended) return results;
  const FormId product = Multiply(a, b, where);
  const FormId sum = universe_.Intern(
      Add(universe_.form(product), universe_.form(c), third.negate ? -1 : 1));
  if (op.op == SassOp::kMultiplyHigh) {
    results.values = 1;
    results.value[0] = domain_.High(sum, *where->state);
    return results;
  }
  results.values = 2;
  results.value[0] = domain_.Word(sum);
  results.value[1] = domain_.High(sum, *where->state);
  return results;
}

Interpreter::Results Interpreter::ComputeShiftAdd(const SassOperation& op,
                                                  Where* where) {
  Results results;
  results.values = 1;
  const int64_t unit = int64_t{1} << op.shift;
  const Value a = Raw(op.source[0], 0, where);
  const Value b = Raw(op.source[1], 0, where);
  const Source& second = op.source[1];
  if (op.source[0].negate || op.source[0].invert || second.absolute) {
    results.values = 0;
    return results;
  }
  if (op.op == SassOp::kShiftAdd) {
    if (op.extended || second.invert) {
      results.values = 0;
      return results;
    }
    auto low = std::make_shared<LowHalf>();
    low->operand = {a, b, domain_.ConstantWord(0)};
    low->negated[1] = second.negate;
    low->operands = 2;
    low->shift = op.shift;
    const std::array<Value, 2> words = {
        op.shift == 0
            ? a
            : domain_.Word(Times(universe_.form(Low(a, where)), unit)),
        b};
    const std::array<bool, 2> negated = {false, second.negate};
    results.value[0] = AddWords(words, negated, where);
    // Without a shift it is an addition to whoever takes the carry.
    results.truth[0].low = low;
    return results;
  }
  if (op.sign_fill && op.shift == 1 && op.extended) {
    // Nothing of `a` but its sign is left: the high half of a sum with it.
    const std::array<Value, 3> high = {
        domain_.High(Integer(a, true, where), *where->state), b,
        domain_.ConstantWord(0)};
    const std::array<bool, 3> inverted = {false, second.negate || second.invert,
                                          false};
    results.value[0] =
        ExtendedSum(high, inverted,
                    absl::MakeConstSpan(op.source_predicate).first(1), where);
    return results;
  }
  const Form wide = Times(
      universe_.form(op.sign_fill
                         ? Integer(a, true, where)
                         : Compose(a, Raw(op.source[2], 0, where), where)),
      unit);
  int64_t carry = 0;
  if (op.extended) {
    const Truth truth = TruthOf(op.source_predicate[0], *where->state);
    const bool negated = second.negate || second.invert;
    if (truth.low != nullptr && truth.low->shift == op.shift &&
        truth.low->operand[0] == a && truth.low->negated[1] == negated &&
        !truth.low->negated[0]) {
      const FormId sum = universe_.Intern(
          Add(wide, universe_.form(Compose(truth.low->operand[1], b, where)),
              negated ? -1 : 1));
      results.value[0] = domain_.High(sum, *where->state);
      return results;
    }
    if (truth.known < 0 || negated) {
      results.values = 0;
      return results;
    }
    carry = truth.known;
  }
  Form sum = wide;
  Form word = universe_.form(Low(b, where));
  word.constant += carry;
  sum = Add(sum, word, (second.negate ? -1 : 1) * (int64_t{1} << 32));
  if (second.invert) {
    results.values = 0;
    return results;
  }
  results.value[0] = domain_.High(sum, *where->state);
  return results;
}

Value Interpreter::AndConstant(const Value& a, uint32_t mask, Where* where) {
  if (mask == 0) return domain_.ConstantWord(0);
  if (mask == ~uint32_t{0}) return a;
  const FormId form = Low(a, where);
  // Ones from bit `first` up to bit `end`.
  const int first = absl::countr_zero(mask);
  const int ones = absl::countr_one(mask >> first);
  if (first + ones == 32 || mask >> (first + ones) == 0) {
    Form result = first + ones == 32
                      ? universe_.form(form)
                      : universe_.form(LowBits(form, first + ones, where));
    if (first > 0) {
      result = Add(result, universe_.form(LowBits(form, first, where)), -1);
    }
    return domain_.Word(universe_.Intern(std::move(result)));
  }
  return Unknown(Range{0, mask}, domain_.OriginsOf(a), true, where);
}

Value Interpreter::OrOf(const Value& a, const Value& b, bool exclusive,
                        Where* where) {
  (void)exclusive;  // No difference where no bits are shared.
  const FormId fa = Low(a, where);
  const FormId fb = Low(b, where);
  const Range ra = domain_.RangeOf(fa, *where->state);
  const Range rb = domain_.RangeOf(fb, *where->state);
  const auto apart = [&](FormId high, const Range& low) {
    const int zeros = universe_.TrailingZeros(universe_.form(high));
    return low.lo >= 0 && low.hi < Wide{1} << zeros;
  };
  if (apart(fa, rb) || apart(fb, ra)) {
    return domain_.Word(Add(universe_.form(fa), universe_.form(fb)));
  }
  Range range = kSigned32;
  if (ra.lo >= 0 && rb.lo >= 0) {
    const Wide most = std::max(ra.hi, rb.hi);
    Wide bound = 1;
    while (bound <= most) bound *= 2;
    range = {exclusive ? 0 : std::max(ra.lo, rb.lo), bound - 1};
    if (bound > Wide{1} << 32) range = kSigned32;
  }
  return Unknown(range, domain_.OriginsOf(a) | domain_.OriginsOf(b), true,
                 where);
}

Value Interpreter::LogicOf(Value a, Value b, Value c, uint8_t lut,
                           Where* where) {
  std::array<Value, 3> inputs = {a, b, c};
  constexpr std::array<uint8_t, 3> kPattern = {0xf0, 0xcc, 0xaa};
  // The table with input i fixed.
  const auto fixed = [&](uint8_t table, int i, bool one) {
    const uint8_t chosen = one ? table & kPattern[i] : table & ~kPattern[i];
    const int distance = 4 >> i;
    return static_cast<uint8_t>(
        chosen | (one ? chosen >> distance : chosen << distance));
  };
  const auto depends = [&](uint8_t table, int i) {
    return fixed(table, i, false) != fixed(table, i, true);
  };
  int64_t number = 0;
  for (int i = 0; i < 3; ++i) {
    if (!depends(lut, i) || inputs[i].kind != Value::Kind::kWord ||
        !ConstantOf(universe_, inputs[i].form, &number)) {
      continue;
    }
    const auto mask = static_cast<uint32_t>(number);
    const uint8_t with = fixed(lut, i, true);
    const uint8_t without = fixed(lut, i, false);
    const Value one = mask == 0 ? a : LogicOf(a, b, c, with, where);
    const Value zero =
        mask == ~uint32_t{0} ? a : LogicOf(a, b, c, without, where);
    if (mask == 0) return zero;
    if (mask == ~uint32_t{0}) return one;
    const std::array<Value, 2> parts = {AndConstant(one, mask, where),
                                        AndConstant(zero, ~mask, where)};
    const std::array<bool, 2> negated{};
    return AddWords(parts, negated, where);
  }
  std::vector<int> used;
  for (int i = 0; i < 3; ++i) {
    if (depends(lut, i)) used.push_back(i);
  }
  if (used.empty()) return domain_.ConstantWord(lut == 0 ? 0 : ~uint32_t{0});
  const auto inverted = [&](const Value& value) {
    Form form = Times(universe_.form(Low(value, where)), -1);
    form.constant -= 1;
    return domain_.Word(form);
  };
  if (used.size() == 1) {
    const Value& value = inputs[used[0]];
    return fixed(lut, used[0], true) != 0 ? value : inverted(value);
  }
  Origins origins = 0;
  for (const int i : used) origins |= domain_.OriginsOf(inputs[i]);
  bool non_negative = true;
  Wide most = 0;
  for (const int i : used) {
    const Range range = domain_.RangeOf(Low(inputs[i], where), *where->state);
    non_negative &= range.lo >= 0;
    most = std::max(most, range.hi);
  }
  if (used.size() == 2) {
    const Value& x = inputs[used[0]];
    const Value& y = inputs[used[1]];
    const bool f00 = fixed(fixed(lut, used[0], false), used[1], false) != 0;
    const bool f01 = fixed(fixed(lut, used[0], false), used[1], true) != 0;
    const bool f10 = fixed(fixed(lut, used[0], true), used[1], false) != 0;
    const bool f11 = fixed(fixed(lut, used[0], true), used[1], true) != 0;
    if (!f00 && f01 && f10) return OrOf(x, y, !f11, where);
    if (!f00 && !f01 && !f10 && f11) {
      const Range rx = domain_.RangeOf(Low(x, where), *where->state);
      const Range ry = domain_.RangeOf(Low(y, where), *where->state);
      Wide bound = kUnbounded;
      if (rx.lo >= 0) bound = std::min(bound, rx.hi);
      if (ry.lo >= 0) bound = std::min(bound, ry.hi);
      const bool bounded = bound <= kUnsigned32.hi;
      return Unknown(bounded ? Range{0, bound} : kSigned32, origins, true,
                     where);
    }
  }
  Range range = kSigned32;
  if (non_negative && (lut & 1) == 0 && most < Wide{1} << 31) {
    Wide bound = 1;
    while (bound <= most) bound *= 2;
    range = {0, bound - 1};
  }
  return Unknown(range, origins, true, where);
}

Interpreter::Results Interpreter::ComputeLogic(const SassOperation& op,
                                               Where* where) {
  Results results;
  results.values = 1;
  std::array<Value, 3> inputs;
  for (size_t i = 0; i < 3; ++i) {
    inputs[i] = op.source[i].invert || op.source[i].negate
                    ? Read(op.source[i], 0, where)
                    : Raw(op.source[i], 0, where);
  }
  results.value[0] = LogicOf(inputs[0], inputs[1], inputs[2], op.lut, where);
  if (op.destination_predicate[0].index != cubin::kSassPredicateTrue) {
    const FormId form = Integer(results.value[0], true, where);
    const Range range = domain_.RangeOf(form, *where->state);
    Truth truth;
    if (range.lo > 0 || range.hi < 0) {
      truth.known = 1;
    } else if (range == Range{0, 0}) {
      truth.known = 0;
    } else {
      truth.when_true = {{form, {0, 0}, true}};
      truth.when_false = {{form, {0, 0}, false}};
    }
    results.truth[0] = Combine(op.combine, truth,
                               TruthOf(op.source_predicate[0], *where->state));
  }
  return results;
}

Interpreter::Results Interpreter::ComputeShift(const SassOperation& op,
                                               Where* where) {
  Results results;
  const Value a = Read(op.source[0], 0, where);
  const Value c = op.source[2].negate || op.source[2].invert
                      ? Read(op.source[2], 0, where)
                      : Raw(op.source[2], 0, where);
  const Value amount = Read(op.source[1], 0, where);
  int64_t bits;
  const int width = op.shift_wide ? 64 : 32;
  if (amount.kind != Value::Kind::kWord ||
      !ConstantOf(universe_, amount.form, &bits)) {
    // By an unknown amount.
    if (op.shift_wide) return results;
    const Value& moved = op.shift_right ? c : a;
    const Range range =
        domain_.RangeOf(Integer(moved, op.is_signed, where), *where->state);
    const Range by =
        domain_.RangeOf(Integer(amount, false, where), *where->state);
    results.values = 1;
    const Origins origins =
        domain_.OriginsOf(moved) | domain_.OriginsOf(amount);
    Range out = kSigned32;
    if (op.shift_right && op.shift_high && range.lo >= 0) {
      out = {0, range.hi};
    } else if (!op.shift_right && !op.shift_high && range.lo >= 0 &&
               by.hi < 31 && range.hi < Wide{1} << 40) {
      out = {0, range.hi << static_cast<int>(by.hi)};
      if (out.hi > kUnsigned32.hi) out = kSigned32;
    }
    results.value[0] = Unknown(out, origins, true, where);
    return results;
  }
  bits = static_cast<uint32_t>(bits);
  bits = op.shift_wrap ? bits % width : std::min<int64_t>(bits, width);
  const int n = static_cast<int>(bits);
  results.values = 1;
  if (!op.shift_wide) {
    if (!op.shift_right && !op.shift_high) {
      if (n >= 32) {
        results.value[0] = domain_.ConstantWord(0);
      } else if (n == 0) {
        results.value[0] = a;
      } else {
        results.value[0] =
            domain_.Word(Times(universe_.form(Low(a, where)), int64_t{1} << n));
      }
      return results;
    }
    if (op.shift_right && op.shift_high) {
      const FormId integer = Integer(c, op.is_signed, where);
      if (op.is_signed && n >= 31) {
        // Its sign: the high half of the sign-extended value.
        results.value[0] = domain_.High(integer, *where->state);
      } else if (n == 0) {
        results.value[0] = c;
      } else {
        results.value[0] = domain_.Word(FloorShift(integer, n, where));
      }
      return results;
    }
  }
  if (n >= 63) {
    results.values = 0;
    return results;
  }
  const FormId whole = Compose(a, c, where);
  if (!op.shift_right) {
    const FormId moved =
        universe_.Intern(Times(universe_.form(whole), int64_t{1} << n));
    results.value[0] = op.shift_high ? domain_.High(moved, *where->state)
                                     : domain_.Word(moved);
    return results;
  }
  if (!Exact64(whole, op.is_signed, *where->state)) {
    results.values = 0;
    return results;
  }
  const FormId shifted = FloorShift(whole, n, where);
  results.value[0] = op.shift_high ? domain_.High(shifted, *where->state)
                                   : domain_.Word(shifted);
  return results;
}

Interpreter::Results Interpreter::ComputeCompare(const SassOperation& op,
                                                 Where* where) {
  Results results;
  const Value a = Read(op.source[0], 0, where);
  const Value b = Read(op.source[1], 0, where);
  FormId fa = 0;
  FormId fb = 0;
  bool comparable = true;
  if (op.extended) {
    const Truth low = TruthOf(op.source_predicate[1], *where->state);
    comparable = low.low != nullptr && low.low->operands == 2 &&
                 !low.low->negated[0] && !low.low->negated[1] &&
                 low.low->shift == 0;
    if (comparable) {
      fa = Compose(low.low->operand[0], a, where);
      fb = Compose(low.low->operand[1], b, where);
      comparable = Exact64(fa, op.is_signed, *where->state) &&
                   Exact64(fb, op.is_signed, *where->state);
    }
  } else {
    fa = Integer(a, op.is_signed, where);
    fb = Integer(b, op.is_signed, where);
  }
  Truth truth;
  if (op.compare == SassCompare::kFalse || op.compare == SassCompare::kTrue) {
    truth = Known(op.compare == SassCompare::kTrue);
  } else if (comparable) {
    const FormId difference =
        universe_.Intern(Add(universe_.form(fa), universe_.form(fb), -1));
    const Range range = domain_.RangeOf(difference, *where->state);
    Range holds;
    Range fails;
    bool equality = false;
    bool negate = false;
    switch (op.compare) {
      case SassCompare::kLess:
        holds = {-kUnbounded, -1};
        fails = {0, kUnbounded};
        break;
      case SassCompare::kLessEqual:
        holds = {-kUnbounded, 0};
        fails = {1, kUnbounded};
        break;
      case SassCompare::kGreater:
        holds = {1, kUnbounded};
        fails = {-kUnbounded, 0};
        break;
      case SassCompare::kGreaterEqual:
        holds = {0, kUnbounded};
        fails = {-kUnbounded, -1};
        break;
      case SassCompare::kNotEqual:
        negate = true;
        equality = true;
        break;
      default:
        equality = true;
        break;
    }
    if (equality) {
      if (range == Range{0, 0}) {
        truth.known = 1;
      } else if (Intersect(range, Range{0, 0}).empty()) {
        truth.known = 0;
      }
      truth.when_true = {{difference, {0, 0}, false}};
      truth.when_false = {{difference, {0, 0}, true}};
      if (negate) truth = Not(truth);
    } else {
      if (Intersect(range, fails).empty()) truth.known = 1;
      if (Intersect(range, holds).empty()) truth.known = 0;
      truth.when_true = {{difference, holds, false}};
      truth.when_false = {{difference, fails, false}};
    }
  }
  const Truth other = TruthOf(op.source_predicate[0], *where->state);
  results.truth[0] = Combine(op.combine, truth, other);
  results.truth[1] = Combine(op.combine, Not(truth), other);
  if (!op.extended && op.source_predicate[0].always() &&
      op.combine == SassCombine::kAnd) {
    auto low = std::make_shared<LowHalf>();
    low->operand = {a, b, domain_.ConstantWord(0)};
    low->operands = 2;
    results.truth[0].low = std::move(low);
  }
  return results;
}

Interpreter::Results Interpreter::ComputeLogicPredicate(const SassOperation& op,
                                                        Where* where) {
  Results results;
  std::array<Truth, 3> inputs;
  for (size_t i = 0; i < 3; ++i) {
    inputs[i] = TruthOf(op.source_predicate[i], *where->state);
  }
  // As a sum of products, except that what nothing depends on is left out.
  for (int output = 0; output < 2; ++output) {
    const uint8_t lut = output == 0 ? op.lut : op.lut2;
    Truth result = Known(false);
    for (int row = 0; row < 8; ++row) {
      if ((lut >> row & 1) == 0) continue;
      Truth product = Known(true);
      for (int i = 0; i < 3; ++i) {
        const int bit = 2 - i;
        const uint8_t other = static_cast<uint8_t>(row ^ 1 << bit);
        // Both values of this input give the same: only one of the two rows
        // needs to be looked at, without it.
        if ((lut >> other & 1) != 0) continue;
        product =
            And(product, (row >> bit & 1) != 0 ? inputs[i] : Not(inputs[i]));
      }
      result = Or(result, product);
    }
    // Products without some inputs cover more rows than one, but never a row
    // that is 0 only if that row differs in one input; check it.
    bool exact = true;
    for (int row = 0; row < 8 && exact; ++row) {
      bool covered = false;
      for (int of = 0; of < 8; ++of) {
        if ((lut >> of & 1) == 0) continue;
        bool matches = true;
        for (int i = 0; i < 3; ++i) {
          const int bit = 2 - i;
          if ((lut >> (of ^ 1 << bit) & 1) != 0) continue;
          matches &= (row >> bit & 1) == (of >> bit & 1);
        }
        covered |= matches;
      }
      exact = covered == ((lut >> row & 1) != 0);
    }
    results.truth[output] = exact ? result : Truth();
  }
  return results;
}

Interpreter::Results Interpreter::ComputeSelect(const SassOperation& op,
                                                Where* where) {
  Results results;
  results.values = 1;
  const bool plain = !op.source[0].negate && !op.source[0].invert &&
                     !op.source[1].negate && !op.source[1].invert &&
                     !op.source[0].absolute && !op.source[1].absolute;
  const Value a =
      plain ? Raw(op.source[0], 0, where) : Read(op.source[0], 0, where);
  const Value b =
      plain ? Raw(op.source[1], 0, where) : Read(op.source[1], 0, where);
  const Truth truth = TruthOf(op.source_predicate[0], *where->state);
  State& state = *where->state;
  if (op.op == SassOp::kSelect) {
    if (truth.known >= 0) {
      results.value[0] = truth.known == 1 ? a : b;
      return results;
    }
    // Each arm under what its being taken says.
    State in_a;
    State in_b;
    in_a.reachable = in_b.reachable = true;
    in_a.bounds = in_b.bounds = state.bounds;
    domain_.Assume(truth.when_true, &in_a);
    domain_.Assume(truth.when_false, &in_b);
    if (!in_a.reachable || !in_b.reachable) {
      results.value[0] = in_a.reachable ? a : b;
      return results;
    }
    results.value[0] =
        domain_.Join(a, in_a, b, in_b, {where->place, where->next++}, &state);
    return results;
  }
  const FormId fa = Integer(a, op.is_signed, where);
  const FormId fb = Integer(b, op.is_signed, where);
  const Range ra = domain_.RangeOf(fa, state);
  const Range rb = domain_.RangeOf(fb, state);
  const Origins origins = domain_.OriginsOf(a) | domain_.OriginsOf(b);
  if (truth.known < 0) {
    results.value[0] = Unknown(Hull(ra, rb), origins, true, where);
    return results;
  }
  const bool least = truth.known == 1;
  if (least ? ra.hi <= rb.lo : ra.lo >= rb.hi) {
    results.value[0] = domain_.Word(fa);
    return results;
  }
  if (least ? rb.hi <= ra.lo : rb.lo >= ra.hi) {
    results.value[0] = domain_.Word(fb);
    return results;
  }
  const Range range =
      least ? Range{std::min(ra.lo, rb.lo), std::min(ra.hi, rb.hi)}
            : Range{std::max(ra.lo, rb.lo), std::max(ra.hi, rb.hi)};
  results.value[0] = Unknown(range, origins, true, where);
  const SymbolId made =
      universe_.form(results.value[0].form).terms.front().symbol;
  for (const FormId bound : {fa, fb}) {
    const Form difference =
        Add(universe_.form(results.value[0].form), universe_.form(bound), -1);
    if (universe_.Mentions(universe_.form(bound), made)) continue;
    domain_.AddBound(universe_.Intern(difference),
                     least ? Range{-kUnbounded, 0} : Range{0, kUnbounded},
                     &state);
  }
  return results;
}

Interpreter::Results Interpreter::ComputeSmall(const SassOperation& op,
                                               Where* where) {
  Results results;
  results.values = 1;
  const auto value = [&](int i) { return Read(op.source[i], 0, where); };
  const Origins origins = OriginsOf(op, where);
  const auto bounded = [&](Wide lo, Wide hi) {
    results.value[0] = Unknown(Range{lo, hi}, origins, true, where);
    return results;
  };
  int64_t number;
  switch (op.op) {
    case SassOp::kAbsolute: {
      const FormId form = Integer(value(0), true, where);
      const Range range = domain_.RangeOf(form, *where->state);
      if (range.lo >= 0) {
        results.value[0] = domain_.Word(form);
        return results;
      }
      if (range.hi <= 0) {
        results.value[0] =
            domain_.Word(universe_.Intern(Times(universe_.form(form), -1)));
        return results;
      }
      return bounded(0, std::max(range.hi, -range.lo));
    }
    case SassOp::kSignExtend: {
      const Value width = value(1);
      if (width.kind != Value::Kind::kWord ||
          !ConstantOf(universe_, width.form, &number) || number <= 0 ||
          number > 32) {
        break;
      }
      const auto bits = static_cast<int>(number);
      if (bits == 32) {
        results.value[0] = value(0);
        return results;
      }
      FormId form = Low(value(0), where);
      if (!op.is_signed) {
        results.value[0] = domain_.Word(LowBits(form, bits, where));
        return results;
      }
      // Moved so that the sign bit becomes a carry, and back.
      const int64_t half = int64_t{1} << (bits - 1);
      Form shifted = universe_.form(form);
      shifted.constant += half;
      Form low =
          universe_.form(LowBits(universe_.Intern(shifted), bits, where));
      low.constant -= half;
      results.value[0] = domain_.Word(universe_.Intern(std::move(low)));
      return results;
    }
    case SassOp::kPermute: {
      const Value selector = value(1);
      if (op.permute_mode != 0 || selector.kind != Value::Kind::kWord ||
          !ConstantOf(universe_, selector.form, &number)) {
        break;
      }
      const auto picks = static_cast<uint32_t>(number) & 0xffff;
      if ((picks & 0x8888) != 0) break;
      const Value a = Raw(op.source[0], 0, where);
      const Value c = Raw(op.source[2], 0, where);
      if (picks == 0x3210) {
        results.value[0] = a;
        return results;
      }
      if (picks == 0x7654) {
        results.value[0] = c;
        return results;
      }
      Form sum;
      for (int i = 0; i < 4;) {
        const int from = static_cast<int>(picks >> (4 * i) & 7);
        int run = 1;
        while (i + run < 4 && (from & 3) + run < 4 &&
               static_cast<int>(picks >> (4 * (i + run)) & 7) == from + run) {
          ++run;
        }
        FormId form = Low(from < 4 ? a : c, where);
        const int skipped = 8 * (from & 3);
        if (!universe_.form(form).is_constant() ||
            universe_.form(form).constant != 0) {
          if (skipped > 0) {
            form = FloorShift(IntegerOf(form, false, where), skipped, where);
          }
          sum = Add(sum, universe_.form(LowBits(form, 8 * run, where)),
                    int64_t{1} << (8 * i));
        }
        i += run;
      }
      results.value[0] = domain_.Word(sum);
      return results;
    }
    case SassOp::kPopulation:
      return bounded(0, 32);
    case SassOp::kFindLeadingOne:
      return bounded(-1, 31);
    default:
      break;
  }
  results.value[0] = Unknown(origins, where);
  return results;
}

Interpreter::Results Interpreter::ComputeSpecial(const SassOperation& op,
                                                 Where* where) {
  Results results;
  results.values = 1;
  const auto of = [&](SymbolId symbol) {
    // A block of one thread, or a grid of one block, has no index to speak of.
    const Symbol& known = universe_.symbol(symbol);
    return domain_.Word(
        known.range.single()
            ? universe_.Constant(static_cast<int64_t>(known.range.lo))
            : universe_.Of(symbol));
  };
  switch (op.special) {
    case SassSpecial::kTidX:
    case SassSpecial::kTidY:
    case SassSpecial::kTidZ:
      results.value[0] = of(thread_[static_cast<int>(op.special) -
                                    static_cast<int>(SassSpecial::kTidX)]);
      break;
    case SassSpecial::kCtaidX:
    case SassSpecial::kCtaidY:
    case SassSpecial::kCtaidZ:
      results.value[0] = of(block_[static_cast<int>(op.special) -
                                   static_cast<int>(SassSpecial::kCtaidX)]);
      break;
    case SassSpecial::kLane:
      if (warp_is_row_) {
        results.value[0] = domain_.Word(LowBits(of(thread_[0]).form, 5, where));
      } else {
        results.value[0] = Unknown(Range{0, 31}, 0, true, where);
      }
      break;
    case SassSpecial::kPackedTid: {
      Form packed = universe_.form(of(thread_[0]).form);
      packed = Add(packed, universe_.form(of(thread_[1]).form), 1 << 16);
      packed = Add(packed, universe_.form(of(thread_[2]).form), 1 << 26);
      results.value[0] = domain_.Word(packed);
      break;
    }
    case SassSpecial::kZero:
      results.value[0] = results.value[1] = domain_.ConstantWord(0);
      results.values = op.destination_words;
      break;
    case SassSpecial::kOther:
      results.values = std::min<int>(2, op.destination_words);
      for (int word = 0; word < results.values; ++word) {
        results.value[word] = Unknown(kFromDriver, where);
      }
      break;
  }
  return results;
}

Interpreter::Results Interpreter::ComputeConstant(const SassOperation& op,
                                                  Where* where) {
  Results results;
  const Value index = Read(op.source[0], 0, where);
  int64_t number = 0;
  if (index.kind == Value::Kind::kWord &&
      ConstantOf(universe_, index.form, &number)) {
    const int64_t offset = number + op.constant_offset;
    if (op.constant_bytes >= 4) {
      results.values = std::min<int>(2, op.constant_bytes / 4);
      for (int word = 0; word < results.values; ++word) {
        results.value[word] =
            ReadConstant(op.constant_bank, offset + 4 * word, where);
      }
      return results;
    }
    const Value word =
        ReadConstant(op.constant_bank, offset & ~int64_t{3}, where);
    results.values = 1;
    if (word.kind == Value::Kind::kWord &&
        ConstantOf(universe_, word.form, &number)) {
      const int bits = 8 * op.constant_bytes;
      uint32_t value =
          static_cast<uint32_t>(number) >> (8 * static_cast<int>(offset & 3));
      value &= (uint32_t{1} << bits) - 1;
      if (op.is_signed && (value >> (bits - 1)) != 0) {
        value |= ~uint32_t{0} << bits;
      }
      results.value[0] = domain_.ConstantWord(value);
      return results;
    }
    results.value[0] =
        Unknown(Range{-32768, 65535}, domain_.OriginsOf(word), true, where);
    return results;
  }
  // Any word that the index can reach.
  Origins origins = kFromMemory | domain_.OriginsOf(index);
  if (op.constant_bank == 4) origins |= kFromVariable;
  if (op.constant_bank == 0) origins = kFromDriver;
  if (op.constant_bank == 0) {
    for (size_t i = 0; i < launch_.pointers.size(); ++i) {
      origins |= uint64_t{1} << i;
    }
  }
  results.values = std::min<int>(2, std::max<int>(1, op.constant_bytes / 4));
  for (int word = 0; word < results.values; ++word) {
    results.value[word] = Unknown(origins, where);
  }
  return results;
}

}  // namespace heddle::access
