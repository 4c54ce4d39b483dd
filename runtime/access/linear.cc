// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/linear.h"

#include <algorithm>

#include "absl/numeric/bits.h"

namespace heddle::access {
namespace {

constexpr int kMaxDepth = 4;
// Bounds that are tried for one question. An answer without the others is wider
// than it need be, not wrong.
constexpr int kMaxTries = 300;

Wide Clamp(Wide value) {
  return std::clamp<Wide>(value, -kUnbounded, kUnbounded);
}

// |a|, |b| <= kUnbounded: the product may overflow 128 bits.
Wide ClampedProduct(Wide a, Wide b) {
  Wide result;
  if (__builtin_mul_overflow(a, b, &result)) {
    return (a < 0) == (b < 0) ? kUnbounded : -kUnbounded;
  }
  return Clamp(result);
}

Wide Limited(Wide factor, Wide bound) {
  // No bound stays none, whatever it is multiplied with.
  if (bound >= kUnbounded) return factor > 0 ? kUnbounded : -kUnbounded;
  if (bound <= -kUnbounded) return factor > 0 ? -kUnbounded : kUnbounded;
  return ClampedProduct(factor, bound);
}

}  // namespace

Range Hull(const Range& a, const Range& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Range Intersect(const Range& a, const Range& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

Range Sum(const Range& a, const Range& b) {
  Range sum;
  sum.lo = a.lo <= -kUnbounded || b.lo <= -kUnbounded ? -kUnbounded
                                                      : Clamp(a.lo + b.lo);
  sum.hi = a.hi >= kUnbounded || b.hi >= kUnbounded ? kUnbounded
                                                    : Clamp(a.hi + b.hi);
  return sum;
}

Range Scale(const Range& range, Wide factor) {
  if (factor == 0) return {0, 0};
  const Wide a = Limited(factor, range.lo);
  const Wide b = Limited(factor, range.hi);
  return {std::min(a, b), std::max(a, b)};
}

Range Product(const Range& a, const Range& b) {
  const Range low = Scale(a, b.lo);
  const Range high = Scale(a, b.hi);
  if (b.lo <= -kUnbounded || b.hi >= kUnbounded) {
    return a == Range{0, 0} ? a : kAnything;
  }
  return Hull(low, high);
}

int64_t Form::CoefficientOf(SymbolId symbol) const {
  const auto it = std::lower_bound(
      terms.begin(), terms.end(), symbol,
      [](const Term& term, SymbolId id) { return term.symbol < id; });
  return it != terms.end() && it->symbol == symbol ? it->coefficient : 0;
}

Form Add(const Form& a, const Form& b, int64_t factor_of_b) {
  const auto factor = static_cast<uint64_t>(factor_of_b);
  Form sum;
  sum.constant =
      static_cast<int64_t>(static_cast<uint64_t>(a.constant) +
                           factor * static_cast<uint64_t>(b.constant));
  size_t i = 0;
  size_t j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    Term term;
    if (j == b.terms.size() ||
        (i < a.terms.size() && a.terms[i].symbol < b.terms[j].symbol)) {
      term = a.terms[i++];
    } else {
      term.symbol = b.terms[j].symbol;
      uint64_t value = factor * static_cast<uint64_t>(b.terms[j++].coefficient);
      if (i < a.terms.size() && a.terms[i].symbol == term.symbol) {
        value += static_cast<uint64_t>(a.terms[i++].coefficient);
      }
      term.coefficient = static_cast<int64_t>(value);
    }
    if (term.coefficient != 0) sum.terms.push_back(term);
  }
  return sum;
}

Form Times(const Form& form, int64_t factor) {
  return Add(Form{}, form, factor);
}

Form Reduced32(const Form& form) {
  Form reduced;
  reduced.constant = static_cast<int32_t>(form.constant);
  for (const Term& term : form.terms) {
    const int64_t low = static_cast<int32_t>(term.coefficient);
    if (low != 0) reduced.terms.push_back({term.symbol, low});
  }
  return reduced;
}

Universe::Universe() { Intern(Form{}); }

FormId Universe::Intern(Form form) {
  const auto it = ids_.find(form);
  if (it != ids_.end()) return it->second;
  const auto id = static_cast<FormId>(forms_.size());
  storage_.push_back(std::make_unique<Form>(form));
  forms_.push_back(storage_.back().get());
  ids_.emplace(std::move(form), id);
  return id;
}

FormId Universe::Constant(int64_t value) {
  Form form;
  form.constant = value;
  return Intern(std::move(form));
}

FormId Universe::Of(SymbolId symbol) {
  Form form;
  form.terms.push_back({symbol, 1});
  return Intern(std::move(form));
}

SymbolId Universe::NewSymbol(Symbol symbol) {
  symbols_.push_back(std::move(symbol));
  return static_cast<SymbolId>(symbols_.size() - 1);
}

Origins Universe::OriginsOf(const Form& form) const {
  Origins origins = 0;
  for (const Term& term : form.terms) origins |= symbols_[term.symbol].origins;
  return origins;
}

bool Universe::VariesInWarp(const Form& form) const {
  return std::any_of(form.terms.begin(), form.terms.end(),
                     [this](const Term& term) {
                       return symbols_[term.symbol].varies_in_warp;
                     });
}

bool Universe::Mentions(const Form& form, SymbolId symbol) const {
  for (const Term& term : form.terms) {
    if (term.symbol == symbol) return true;
    const std::vector<SymbolId>& depends = symbols_[term.symbol].depends;
    if (std::find(depends.begin(), depends.end(), symbol) != depends.end()) {
      return true;
    }
  }
  return false;
}

Range Universe::Naive(const Form& form) const {
  Range range = {form.constant, form.constant};
  for (const Term& term : form.terms) {
    range = Sum(range, Scale(symbols_[term.symbol].range, term.coefficient));
  }
  return range;
}

Range Universe::RangeOf(const Form& form,
                        absl::Span<const Bound> bounds) const {
  int budget = kMaxTries;
  const Range range = Tighten(form, bounds, 0, &budget);
  work_ += static_cast<uint64_t>(kMaxTries - budget);
  return range;
}

// A bound on g helps with a form that is factor * g + rest.
Range Universe::Tighten(const Form& form, absl::Span<const Bound> bounds,
                        int depth, int* budget) const {
  Range range = Naive(form);
  if (form.terms.empty() || depth >= kMaxDepth) return range;
  const auto apply = [&](const Bound& bound) {
    if (*budget <= 0) return;
    --*budget;
    const Form& g = *forms_[bound.form];
    if (g.terms.empty() || g.terms.size() > form.terms.size() + 1) return;
    // The factor that removes the last symbol of g: quotients are younger than
    // what they were computed from.
    const Term& last = g.terms.back();
    const int64_t have = form.CoefficientOf(last.symbol);
    if (have == 0 || have == INT64_MIN || last.coefficient == 0 ||
        have % last.coefficient != 0) {
      return;
    }
    const int64_t factor = have / last.coefficient;
    const Form rest = Add(form, g, -factor);
    if (rest.terms.size() >= form.terms.size()) return;
    // Wrapping coefficients would make the equation hold only modulo 2^64.
    for (const Term& term : g.terms) {
      Wide check;
      if (__builtin_mul_overflow(Wide{term.coefficient}, Wide{factor},
                                 &check) ||
          check > INT64_MAX || check < INT64_MIN) {
        return;
      }
      const Wide left = Wide{form.CoefficientOf(term.symbol)} - check;
      if (left > INT64_MAX || left < INT64_MIN) return;
    }
    const Wide constant = Wide{form.constant} - Wide{factor} * g.constant;
    if (constant > INT64_MAX || constant < INT64_MIN) return;
    const Range through = Sum(Scale(bound.range, factor),
                              Tighten(rest, bounds, depth + 1, budget));
    range = Intersect(range, through);
  };
  for (const Bound& bound : bounds) apply(bound);
  for (const Term& term : form.terms) {
    for (const Bound& bound : symbols_[term.symbol].definition) apply(bound);
  }
  return range;
}

int Universe::ResidueOf(const Form& form, int bits) const {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t residue = static_cast<uint64_t>(form.constant);
  for (const Term& term : form.terms) {
    const auto coefficient = static_cast<uint64_t>(term.coefficient);
    if ((coefficient & mask) == 0) continue;
    const Symbol& symbol = symbols_[term.symbol];
    if (symbol.kind != SymbolKind::kPointer) return -1;
    residue += coefficient * symbol.residue;
  }
  return static_cast<int>(residue & mask);
}

int Universe::TrailingZeros(const Form& form) const {
  int zeros = 62;
  const auto count = [&zeros](int64_t value) {
    if (value != 0) {
      zeros = std::min(zeros, absl::countr_zero(static_cast<uint64_t>(value)));
    }
  };
  count(form.constant);
  for (const Term& term : form.terms) {
    const Symbol& symbol = symbols_[term.symbol];
    int have = absl::countr_zero(static_cast<uint64_t>(term.coefficient));
    if (symbol.kind == SymbolKind::kPointer) {
      have += symbol.residue == 0 ? 8 : absl::countr_zero(symbol.residue);
    }
    zeros = std::min(zeros, have);
  }
  return zeros;
}

}  // namespace heddle::access
