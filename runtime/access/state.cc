// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/state.h"

#include <algorithm>
#include <map>

namespace heddle::access {
namespace {

constexpr size_t kMaxBounds = 32;
// A range may grow this often before it jumps to the next threshold.
constexpr int kPatience = 3;
// And this often to a threshold, before it has no bound.
constexpr int kStops = 9;

Form PointersOf(const Form& form, const Universe& universe) {
  Form pointers;
  for (const Term& term : form.terms) {
    if (universe.symbol(term.symbol).kind == SymbolKind::kPointer) {
      pointers.terms.push_back(term);
    }
  }
  return pointers;
}

bool Tighter(const Range& a, const Range& than) {
  return a.lo > than.lo || a.hi < than.hi;
}

}  // namespace

Value Domain::Top(Origins origins) const {
  return {Value::Kind::kTop, 0, origins};
}

Value Domain::Word(const Form& form) {
  return {Value::Kind::kWord, universe_.Intern(Reduced32(form)), 0};
}

Value Domain::High(const Form& form, const State& state) {
  const Range range = universe_.RangeOf(form, state.bounds);
  if (range.lo > -kUnbounded && range.hi < kUnbounded &&
      range.lo >> 32 == range.hi >> 32) {
    return ConstantWord(static_cast<uint32_t>(range.lo >> 32));
  }
  return {Value::Kind::kHigh, universe_.Intern(form), 0};
}

Value Domain::ConstantWord(uint32_t value) {
  Form form;
  form.constant = value;
  return Word(form);
}

Origins Domain::OriginsOf(const Value& value) const {
  if (value.kind == Value::Kind::kTop) return value.origins;
  return universe_.OriginsOf(universe_.form(value.form));
}

void Domain::SetThresholds(std::vector<int64_t> thresholds) {
  std::sort(thresholds.begin(), thresholds.end());
  thresholds.erase(std::unique(thresholds.begin(), thresholds.end()),
                   thresholds.end());
  thresholds_ = std::move(thresholds);
}

Range Domain::Widen(const Range& old, const Range& grown, int growths) const {
  Range wide = grown;
  if (growths <= kPatience && !hurried_) return wide;
  if (growths > kStops || hurried_) {
    if (grown.lo < old.lo) wide.lo = -kUnbounded;
    if (grown.hi > old.hi) wide.hi = kUnbounded;
    return wide;
  }
  if (grown.lo < old.lo) {
    const auto it = std::upper_bound(
        thresholds_.begin(), thresholds_.end(), grown.lo,
        [](Wide value, int64_t threshold) { return value < threshold; });
    wide.lo = it == thresholds_.begin() ? -kUnbounded : Wide{*std::prev(it)};
  }
  if (grown.hi > old.hi) {
    const auto it = std::lower_bound(
        thresholds_.begin(), thresholds_.end(), grown.hi,
        [](int64_t threshold, Wide value) { return threshold < value; });
    wide.hi = it == thresholds_.end() ? kUnbounded : Wide{*it};
  }
  return wide;
}

SymbolId Domain::Fresh(Maker maker, const Range& range, Origins origins,
                       bool varies_in_warp, State* state) {
  const auto it = made_.find(maker);
  if (it == made_.end()) {
    Symbol symbol;
    symbol.range = range;
    symbol.origins = origins;
    symbol.varies_in_warp = varies_in_warp;
    const SymbolId id = universe_.NewSymbol(std::move(symbol));
    made_[maker] = {id, 0};
    made_at_[maker.place].push_back(id);
    changed_ = true;
    return id;
  }
  Widening& made = it->second;
  Symbol& symbol = universe_.symbol(made.symbol);
  const Range hull = Hull(symbol.range, range);
  if (hull != symbol.range) {
    symbol.range = Widen(symbol.range, hull, ++made.growths);
    changed_ = true;
  }
  if ((symbol.origins | origins) != symbol.origins ||
      varies_in_warp > symbol.varies_in_warp) {
    symbol.origins |= origins;
    symbol.varies_in_warp |= varies_in_warp;
    changed_ = true;
  }
  if (state != nullptr && repeats_) Forget(made.symbol, state);
  return made.symbol;
}

SymbolId Domain::Quotient(FormId numerator, int64_t factor, int shift,
                          const State& state) {
  const Form& n = universe_.form(numerator);
  const Range of_n = universe_.RangeOf(n, state.bounds);
  Range range = Scale(of_n, factor);
  const Wide divisor = Wide{1} << shift;
  // Rounds down, also below zero.
  if (range.lo > -kUnbounded) range.lo >>= shift;
  if (range.hi < kUnbounded) range.hi >>= shift;

  std::vector<Bound> definition;
  const auto define = [&](const Form& form, Wide hi) {
    definition.push_back({universe_.Intern(form), {0, hi}});
  };
  const auto key = std::make_pair(numerator, std::make_pair(factor, shift));
  auto [it, made] = quotients_.try_emplace(key, 0);
  if (made) {
    Symbol symbol;
    symbol.range = range;
    symbol.origins = universe_.OriginsOf(n);
    symbol.varies_in_warp = universe_.VariesInWarp(n);
    for (const Term& term : n.terms) {
      const Symbol& of = universe_.symbol(term.symbol);
      symbol.depends.push_back(term.symbol);
      symbol.depends.insert(symbol.depends.end(), of.depends.begin(),
                            of.depends.end());
    }
    symbol.numerator = numerator;
    symbol.factor = factor;
    symbol.shift = shift;
    it->second = universe_.NewSymbol(std::move(symbol));
    changed_ = true;
  }
  const SymbolId id = it->second;
  Form of_q;
  of_q.terms.push_back({id, 1});
  if (factor == 1 && shift < 62) {
    define(Add(universe_.form(numerator), of_q, -(int64_t{1} << shift)),
           divisor - 1);
  } else if (factor > 1) {
    // floor(n * factor / 2^shift) = floor(n / d) for 0 <= n <= N if
    // 0 <= factor * d - 2^shift and (factor * d - 2^shift) * N < 2^shift
    // (Warren, Hacker's Delight, 10-9).
    const Wide d = (divisor + factor - 1) / factor;
    const Wide error = Wide{factor} * d - divisor;
    if (of_n.lo >= 0 && of_n.hi < (Wide{1} << 33) && d < (Wide{1} << 33) &&
        error < (Wide{1} << 40) && error * of_n.hi < divisor) {
      define(Add(universe_.form(numerator), of_q, -static_cast<int64_t>(d)),
             d - 1);
    }
  }
  Symbol& symbol = universe_.symbol(id);
  const Range hull = Hull(symbol.range, range);
  if (hull != symbol.range) {
    symbol.range = hull;
    changed_ = true;
  }
  // A definition that did not hold for a smaller range would be wrong to get
  // back; one that no longer holds has to go.
  if (made) {
    symbol.definition = std::move(definition);
  } else if (symbol.definition != definition && !symbol.definition.empty()) {
    symbol.definition.clear();
    changed_ = true;
  }
  return id;
}

void Domain::AddBound(FormId form, const Range& range, State* state) const {
  const Form& f = universe_.form(form);
  if (!state->reachable) return;
  const Range known = universe_.RangeOf(f, state->bounds);
  if (Intersect(known, range).empty()) {
    state->reachable = false;
    return;
  }
  if (f.is_constant() || !Tighter(range, known)) return;
  for (Bound& bound : state->bounds) {
    if (bound.form != form) continue;
    bound.range = Intersect(bound.range, range);
    return;
  }
  if (state->bounds.size() >= kMaxBounds) {
    state->bounds.erase(state->bounds.begin());
  }
  state->bounds.push_back({form, Intersect(range, known)});
}

void Domain::Assume(const Atoms& atoms, State* state) const {
  for (const Atom& atom : atoms) {
    if (!state->reachable) return;
    if (!atom.unequal) {
      AddBound(atom.form, atom.range, state);
      continue;
    }
    Range range = RangeOf(atom.form, *state);
    if (range.lo == atom.range.lo) ++range.lo;
    if (range.hi == atom.range.lo) --range.hi;
    if (range.empty()) {
      state->reachable = false;
      return;
    }
    AddBound(atom.form, range, state);
  }
}

void Domain::ForgetMadeAt(uint32_t place, State* state) const {
  if (!repeats_) return;
  const auto made = made_at_.find(place);
  if (made == made_at_.end()) return;
  for (const SymbolId symbol : made->second) Forget(symbol, state);
}

void Domain::Forget(SymbolId symbol, State* state) const {
  const auto mentions = [&](FormId form) {
    return universe_.Mentions(universe_.form(form), symbol);
  };
  for (Value& value : state->values) {
    if (value.kind == Value::Kind::kTop || !mentions(value.form)) continue;
    value = Top(OriginsOf(value));
  }
  for (Truth& truth : state->truths) {
    for (Atoms* atoms : {&truth.when_true, &truth.when_false}) {
      atoms->erase(
          std::remove_if(atoms->begin(), atoms->end(),
                         [&](const Atom& atom) { return mentions(atom.form); }),
          atoms->end());
    }
    if (truth.low == nullptr) continue;
    for (int i = 0; i < truth.low->operands; ++i) {
      const Value& operand = truth.low->operand[i];
      if (operand.kind != Value::Kind::kTop && mentions(operand.form)) {
        truth.low = nullptr;
        break;
      }
    }
  }
  state->bounds.erase(
      std::remove_if(state->bounds.begin(), state->bounds.end(),
                     [&](const Bound& bound) { return mentions(bound.form); }),
      state->bounds.end());
  state->indicators.erase(
      std::remove_if(state->indicators.begin(), state->indicators.end(),
                     [&](const Indicator& indicator) {
                       if (mentions(indicator.number)) return true;
                       for (const Atoms* atoms :
                            {&indicator.truth.when_true,
                             &indicator.truth.when_false}) {
                         for (const Atom& atom : *atoms) {
                           if (mentions(atom.form)) return true;
                         }
                       }
                       return false;
                     }),
      state->indicators.end());
  for (Guarded& guarded : state->guarded) {
    if (guarded.has_condition && mentions(guarded.condition.form)) {
      guarded.has_condition = false;
      guarded.condition = {};
    }
  }
  state->guarded.erase(
      std::remove_if(state->guarded.begin(), state->guarded.end(),
                     [&](const Guarded& guarded) {
                       if (guarded.predicate == Guarded::kNoPredicate &&
                           !guarded.has_condition) {
                         return true;
                       }
                       return guarded.value.kind != Value::Kind::kTop &&
                              mentions(guarded.value.form);
                     }),
      state->guarded.end());
}

Value Domain::Join(const Value& a, const State& in_a, const Value& b,
                   const State& in_b, Maker maker, State* into) {
  if (a == b) return a;
  const Origins origins = OriginsOf(a) | OriginsOf(b);
  if (a.kind == Value::Kind::kTop || b.kind == Value::Kind::kTop) {
    return Top(origins);
  }
  if (a.kind != b.kind) return Top(origins);
  const Form fa = universe_.form(a.form);
  const Form fb = universe_.form(b.form);
  const Form difference = Add(fb, fa, -1);
  Form base;
  Range range;
  bool varies = true;
  if (!hurried_ && difference.is_constant() &&
      difference.constant != INT64_MIN) {
    base = difference.constant > 0 ? fa : fb;
    range = {0, std::abs(difference.constant)};
  } else {
    base = PointersOf(fa, universe_);
    if (base != PointersOf(fb, universe_)) base = Form{};
    range = Hull(universe_.RangeOf(Add(fa, base, -1), in_a.bounds),
                 universe_.RangeOf(Add(fb, base, -1), in_b.bounds));
    if (hurried_) range = kAnything;
  }
  // Which pointer it is, if both are the same, says `base`.
  const Origins of_symbol = origins & ~universe_.OriginsOf(base);
  const SymbolId symbol = Fresh(maker, range, of_symbol, varies, into);
  Form joined;
  joined.terms.push_back({symbol, 1});
  if (universe_.Mentions(base, symbol)) return Top(origins);
  return {a.kind, universe_.Intern(Add(base, joined)), 0};
}

std::vector<Bound> Domain::CommonBounds(const State& a, const State& b) const {
  std::vector<Bound> common;
  const auto collect = [&](const State& of, const State& other) {
    for (const Bound& bound : of.bounds) {
      if (std::any_of(common.begin(), common.end(), [&](const Bound& have) {
            return have.form == bound.form;
          })) {
        continue;
      }
      const Form& form = universe_.form(bound.form);
      const Range range = Hull(universe_.RangeOf(form, of.bounds),
                               universe_.RangeOf(form, other.bounds));
      if (Tighter(range, universe_.RangeOf(form, {}))) {
        common.push_back({bound.form, range});
      }
    }
  };
  collect(a, b);
  collect(b, a);
  if (common.size() > kMaxBounds) common.resize(kMaxBounds);
  return common;
}

void Domain::JoinInto(const State& other, uint32_t place, State* state) {
  if (!other.reachable) return;
  if (!state->reachable) {
    *state = other;
    return;
  }
  std::vector<Bound> bounds = CommonBounds(*state, other);
  // New symbols may replace what values of either side mean.
  const State old = *state;
  // The two halves of a 64-bit value must come out as one.
  std::map<std::pair<FormId, FormId>, uint32_t> pairs;
  State joined = old;
  joined.bounds = std::move(bounds);
  std::vector<std::pair<int, Value>> changed;
  for (int slot = 0; slot < kSlots; ++slot) {
    const Value& a = old.values[slot];
    const Value& b = other.values[slot];
    if (a == b) continue;
    const auto [it, first] = pairs.try_emplace({a.form, b.form}, slot);
    changed.emplace_back(slot,
                         Join(a, old, b, other, {place, it->second}, &joined));
  }
  // A value may still be by way of a symbol that just got a new meaning.
  std::vector<SymbolId> renewed;
  for (const auto& [key, slot] : pairs) {
    const auto it = made_.find({place, slot});
    if (it != made_.end()) renewed.push_back(it->second.symbol);
  }
  for (const auto& [slot, value] : changed) {
    const Value& kept = value;
    const uint32_t first =
        pairs[{old.values[slot].form, other.values[slot].form}];
    const SymbolId own = Made({place, first});
    const bool stale =
        kept.kind != Value::Kind::kTop &&
        std::any_of(renewed.begin(), renewed.end(), [&](SymbolId symbol) {
          return symbol != own &&
                 universe_.Mentions(universe_.form(kept.form), symbol);
        });
    joined.values[slot] = stale ? Top(OriginsOf(kept)) : kept;
  }
  joined.guarded.erase(
      std::remove_if(joined.guarded.begin(), joined.guarded.end(),
                     [&](const Guarded& guarded) {
                       return std::find(other.guarded.begin(),
                                        other.guarded.end(),
                                        guarded) == other.guarded.end();
                     }),
      joined.guarded.end());
  joined.indicators.erase(
      std::remove_if(joined.indicators.begin(), joined.indicators.end(),
                     [&](const Indicator& indicator) {
                       return std::find(other.indicators.begin(),
                                        other.indicators.end(),
                                        indicator) == other.indicators.end();
                     }),
      joined.indicators.end());
  for (size_t i = 0; i < joined.truths.size(); ++i) {
    const Truth& b = other.truths[i];
    Truth& truth = joined.truths[i];
    if (truth == b) continue;
    if (truth.known != b.known) truth.known = -1;
    if (truth.when_true != b.when_true) truth.when_true.clear();
    if (truth.when_false != b.when_false) truth.when_false.clear();
    if (truth.low != b.low) truth.low = nullptr;
  }
  *state = std::move(joined);
}

}  // namespace heddle::access
