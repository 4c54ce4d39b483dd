// SPDX-License-Identifier: Apache-2.0
// Sums, products and the carries between halves; see Interpreter.

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/access/interpreter.h"
#include "runtime/access/interpreter_ops.h"

namespace heddle::access {

using cubin::SassOp;
using cubin::SassOperation;

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
  if (op.destination_words == 2) return ComputeWideAdd(op, where);
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

Interpreter::Results Interpreter::ComputeWideAdd(const SassOperation& op,
                                                 Where* where) {
  Form sum;
  for (size_t i = 0; i < 3; ++i) {
    const Source& source = op.source[i];
    if (source.invert || source.absolute) return {};
    const FormId addend =
        source.kind == Source::Kind::kImmediate
            ? universe_.Constant(source.value)
            : Compose(Raw(source, 0, where), Raw(source, 1, where), where);
    sum = Add(sum, universe_.form(addend), source.negate ? -1 : 1);
  }
  Results results;
  results.values = 2;
  results.value[0] = domain_.Word(sum);
  results.value[1] = domain_.High(sum, *where->state);
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
  int seen = 0;  // carries of `low`
  for (const cubin::SassPredicateUse& use : carry_uses) {
    const Truth truth = TruthOf(use, *where->state);
    if (use.index == cubin::kSassPredicateTrue) {
      carry += use.negated ? 0 : 1;
      continue;
    }
    if (truth.low == nullptr || truth.low->shift != 0 ||
        truth.low->compare >= 0 || (seen >> truth.carry & 1) != 0 ||
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
    seen |= 1 << truth.carry;
    ++carries;
  }
  int64_t ignored;
  if (low != nullptr && !open && carry == 0) {
    // With three summands two carries can come out of the low half, with fewer
    // the first alone.
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
    if (best_score >= 0 && (seen == 3 || (summands <= 2 && seen == 1))) {
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

}  // namespace heddle::access
