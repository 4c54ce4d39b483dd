// SPDX-License-Identifier: Apache-2.0
// Shifts, and sums with what was shifted; see Interpreter.

#include <algorithm>
#include <array>
#include <memory>

#include "runtime/access/interpreter.h"
#include "runtime/access/interpreter_ops.h"

namespace heddle::access {

using cubin::SassOp;
using cubin::SassOperation;

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
  const Truth carried = TruthOf(op.source_predicate[0], *where->state);
  if (op.sign_fill && op.shift == 1 && op.extended &&
      (carried.low == nullptr || carried.low->shift == 0)) {
    // Nothing of `a` but its sign is left: the high half of a sum with it. (The
    // low half was added without a shift; with one it is below.)
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
    const Truth& truth = carried;
    const bool negated = second.negate || second.invert;
    if (truth.low != nullptr && truth.low->compare < 0 &&
        truth.low->operands == 2 && truth.low->shift == op.shift &&
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

}  // namespace heddle::access
