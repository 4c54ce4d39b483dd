// SPDX-License-Identifier: Apache-2.0
// Comparisons and choices; see Interpreter.

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/numeric/bits.h"
#include "runtime/access/interpreter.h"
#include "runtime/access/interpreter_ops.h"

namespace heddle::access {

using cubin::SassCombine;
using cubin::SassCompare;
using cubin::SassOp;
using cubin::SassOperation;

// Predicates in registers that are told apart.
constexpr size_t kMostIndicators = 64;

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
    comparable = low.low != nullptr &&
                 low.low->compare == static_cast<int8_t>(op.compare);
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
      if (const Truth* nonzero = TruthOfNumber(difference, *where->state);
          nonzero != nullptr && truth.known < 0) {
        truth = negate ? *nonzero : Not(*nonzero);
      }
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
  if (!op.extended && !op.is_signed && op.source_predicate[0].always() &&
      op.combine == SassCombine::kAnd) {
    auto low = std::make_shared<LowHalf>();
    low->compare = static_cast<int8_t>(op.compare);
    low->operand = {a, b, domain_.ConstantWord(0)};
    low->operands = 2;
    results.truth[0].low = std::move(low);
  }
  return results;
}

// Of a multiple of an indicator, whether it is not 0.
const Truth* Interpreter::TruthOfNumber(FormId form, const State& state) const {
  const Form& number = universe_.form(form);
  if (number.constant != 0 || number.terms.size() != 1) return nullptr;
  for (const Indicator& indicator : state.indicators) {
    if (universe_.form(indicator.number).terms[0].symbol ==
        number.terms[0].symbol) {
      return &indicator.truth;
    }
  }
  return nullptr;
}

Value Interpreter::NumberOf(const Truth& truth, Where* where) {
  if (truth.known >= 0) {
    return domain_.ConstantWord(static_cast<uint32_t>(truth.known));
  }
  const Value number = Unknown(Range{0, 1}, 0, true, where);
  State& state = *where->state;
  if (state.indicators.size() >= kMostIndicators) {
    state.indicators.erase(state.indicators.begin());
  }
  state.indicators.push_back({number.form, truth});
  state.indicators.back().truth.low = nullptr;
  return number;
}

// Bits of one byte of a register, in place of predicates 0 to 6, or the other
// way round.
Interpreter::Results Interpreter::ComputePredicateSet(const SassOperation& op,
                                                      Where* where) {
  Results results;
  const int64_t mask = op.source[1].value;
  if (op.op == SassOp::kPredicatesToRegister) {
    if (op.source[0].kind != Source::Kind::kZero) return results;
    Form sum;
    for (int i = 0; i < kPredicates - 1; ++i) {
      if ((mask >> i & 1) == 0) continue;
      const Value bit = NumberOf(
          TruthOf(static_cast<uint8_t>(i), op.uniform, false, *where->state),
          where);
      sum = Add(sum, universe_.form(bit.form), int64_t{1} << (i + op.shift));
    }
    results.values = 1;
    results.value[0] = domain_.Word(sum);
    return results;
  }
  // Only a sum of different powers of two has bits that are told apart.
  const Form form = universe_.form(Low(Read(op.source[0], 0, where), where));
  auto known = static_cast<uint64_t>(form.constant) & 0xffffffff;
  for (const Term& term : form.terms) {
    const auto power = static_cast<uint64_t>(term.coefficient);
    Form alone;
    alone.terms.push_back(term);
    if (!absl::has_single_bit(power) || (known & power) != 0 ||
        TruthOfNumber(universe_.Intern(std::move(alone)), *where->state) ==
            nullptr) {
      return results;
    }
    known |= power;  // taken
  }
  std::array<Truth, kPredicates> restored;
  for (int i = 0; i < kPredicates - 1; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const uint64_t power = uint64_t{1} << (i + op.shift);
    restored[i] = Known((static_cast<uint64_t>(form.constant) & power) != 0);
    for (const Term& term : form.terms) {
      if (static_cast<uint64_t>(term.coefficient) != power) continue;
      Form alone;
      alone.terms.push_back(term);
      restored[i] =
          *TruthOfNumber(universe_.Intern(std::move(alone)), *where->state);
    }
  }
  results.restores = static_cast<uint8_t>(mask);
  results.restored = std::move(restored);
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

}  // namespace heddle::access
