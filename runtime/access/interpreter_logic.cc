// SPDX-License-Identifier: Apache-2.0
// Logic, bit by bit and of predicates; see Interpreter.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/numeric/bits.h"
#include "runtime/access/interpreter.h"
#include "runtime/access/interpreter_ops.h"

namespace heddle::access {

using cubin::SassOperation;

Value Interpreter::AndConstant(const Value& a, uint32_t mask, Where* where) {
  if (mask == 0) return domain_.ConstantWord(0);
  if (mask == ~uint32_t{0}) return a;
  const FormId form = Low(a, where);
  if (int64_t number; ConstantOf(universe_, form, &number)) {
    return domain_.ConstantWord(static_cast<uint32_t>(number) & mask);
  }
  // Bits that the value cannot have need not be in the mask, nor those below n
  // of a multiple of 2^n.
  const Range range = domain_.RangeOf(form, *where->state);
  if (range.lo >= 0 && range.hi <= kUnsigned32.hi) {
    if (range.hi == 0) return domain_.ConstantWord(0);
    const uint32_t possible =
        ~uint32_t{0} >> absl::countl_zero(static_cast<uint32_t>(range.hi));
    mask &= possible;
    if (mask == 0) return domain_.ConstantWord(0);
    const int below =
        std::min(universe_.TrailingZeros(universe_.form(form)), 31);
    if ((mask | ((uint32_t{1} << below) - 1)) == possible) {
      return domain_.Word(form);
    }
  }
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

}  // namespace heddle::access
