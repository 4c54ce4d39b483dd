// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/fixpoint.h"

#include <algorithm>
#include <utility>

namespace heddle::access {
namespace {

constexpr uint32_t kMaxSweeps = 64;
constexpr uint32_t kUnhurriedSweeps = 32;
// A few seconds. Kernels of a thousand instructions take a thousandth of it.
constexpr uint64_t kMaxWork = 30'000'000;
// Places of the symbols that meetings make.
constexpr uint32_t kMeetPlace = 0x50000000;
constexpr uint32_t kEntryPlace = 0x60000000;
constexpr uint32_t kBackPlace = 0x70000000;
constexpr uint32_t kHeadPlace = 0x80000000;

bool Same(const State& a, const State& b) {
  if (a.reachable != b.reachable) return false;
  if (!a.reachable) return true;
  return a.values == b.values && a.truths == b.truths && a.bounds == b.bounds &&
         a.guarded == b.guarded && a.indicators == b.indicators;
}

}  // namespace

bool Fixpoint::IsInduction(const Head& head, int slot,
                           const Value& back) const {
  const Universe& universe = domain_.universe();
  const Value& last = head.last.values[slot];
  if (back.kind != last.kind || back.kind == Value::Kind::kTop) return false;
  Form expected = universe.form(last.form);
  expected = Add(expected, Form{{}, head.slots[slot].step});
  if (back.kind == Value::Kind::kWord) expected = Reduced32(expected);
  return expected == universe.form(back.form);
}

void Fixpoint::LoopBounds(const State& entry, const State& back,
                          const std::vector<SymbolId>& renewed, Head* head,
                          State* state) {
  Universe& universe = domain_.universe();
  std::vector<Bound> bounds = domain_.CommonBounds(entry, back);
  // What was true of the last round's count is not of this one's.
  bounds.erase(std::remove_if(bounds.begin(), bounds.end(),
                              [&](const Bound& bound) {
                                return universe.Mentions(
                                    universe.form(bound.form), head->count);
                              }),
               bounds.end());
  for (int slot = 0; slot < kSlots; ++slot) {
    if (head->slots[slot].kind != Slot::Kind::kStep) continue;
    const Value& value = state->values[slot];
    const Value& last = head->last.values[slot];
    if (value.kind == Value::Kind::kTop || value.kind != last.kind ||
        value.kind != entry.values[slot].kind) {
      continue;
    }
    // As integers, not only modulo 2^32.
    const Form after =
        Add(universe.form(last.form), Form{{}, head->slots[slot].step});
    if (after != universe.form(back.values[slot].form)) continue;
    const Form exact =
        Add(universe.form(entry.values[slot].form),
            universe.form(universe.Of(head->count)), head->slots[slot].step);
    if (exact != universe.form(value.form)) continue;
    const Range range = Hull(domain_.RangeOf(entry.values[slot].form, entry),
                             domain_.RangeOf(back.values[slot].form, back));
    bounds.push_back({value.form, range});
  }
  const auto stale = [&](const Bound& bound) {
    const Form& form = universe.form(bound.form);
    return std::any_of(renewed.begin(), renewed.end(), [&](SymbolId symbol) {
      return universe.Mentions(form, symbol);
    });
  };
  state->bounds.clear();
  for (Bound& bound : bounds) {
    if (stale(bound)) continue;
    auto [it, first] = head->bounds.try_emplace(bound.form);
    Rest& rest = it->second;
    if (first) {
      rest.range = bound.range;
    } else {
      const Range hull = Hull(rest.range, bound.range);
      if (hull != rest.range) {
        rest.range = domain_.Widen(rest.range, hull, ++rest.growths);
        head_changed_ = true;
      }
    }
    domain_.AddBound(bound.form, rest.range, state);
  }
}

State Fixpoint::MeetAtHead(uint32_t block, State entry, State back) {
  Head& head = heads_[block];
  Universe& universe = domain_.universe();
  const uint32_t place = flow_.blocks[block].place;
  if (!head.has_count) {
    Symbol count;
    count.kind = SymbolKind::kLoop;
    count.range = {0, kUnbounded};
    count.varies_in_warp = true;
    head.count = universe.NewSymbol(std::move(count));
    head.has_count = true;
  }
  // Rounds of an earlier visit are no longer counted.
  domain_.Forget(head.count, &entry);
  if (!entry.reachable) {
    if (!back.reachable) return entry;
    // Control gets into the loop elsewhere, and comes here by its end alone.
    // Compilers make no such loops: nothing is known of them.
    back.truths.fill(Truth());
    back.bounds.clear();
    back.guarded.clear();
    back.indicators.clear();
    for (int slot = 0; slot < kSlots; ++slot) {
      if (!IsZeroSlot(slot)) back.values[slot] = domain_.Top(~Origins{0});
    }
    head.last = back;
    return back;
  }
  if (!back.reachable) {
    // The first visit, or none ever came back.
    head.last = entry;
    return entry;
  }
  State state = entry;
  std::vector<int> any;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (IsZeroSlot(slot)) continue;
    Slot& known = head.slots[slot];
    const Value& e = entry.values[slot];
    const Value& b = back.values[slot];
    const Value& last = head.last.values[slot];
    if (known.kind == Slot::Kind::kSame) {
      if (b == last) continue;
      known.kind = Slot::Kind::kAny;
      if (b.kind == last.kind && b.kind != Value::Kind::kTop) {
        Form difference =
            Add(universe.form(b.form), universe.form(last.form), -1);
        if (b.kind == Value::Kind::kWord) difference = Reduced32(difference);
        if (difference.is_constant()) {
          known.kind = Slot::Kind::kStep;
          known.step = difference.constant;
        }
      }
      head_changed_ = true;
    } else if (known.kind == Slot::Kind::kStep && !IsInduction(head, slot, b)) {
      known.kind = Slot::Kind::kAny;
      head_changed_ = true;
    }
    if (known.kind == Slot::Kind::kStep && e.kind == Value::Kind::kTop) {
      known.kind = Slot::Kind::kAny;
    }
    if (known.kind == Slot::Kind::kStep) {
      Form form = Add(universe.form(e.form),
                      universe.form(universe.Of(head.count)), known.step);
      if (e.kind == Value::Kind::kWord) form = Reduced32(form);
      state.values[slot] = {e.kind, universe.Intern(std::move(form)), 0};
    } else if (known.kind == Slot::Kind::kAny) {
      any.push_back(slot);
    }
  }
  // The halves of a 64-bit value stay together.
  std::map<std::pair<FormId, FormId>, uint32_t> pairs;
  std::vector<SymbolId> renewed;
  std::vector<std::pair<int, Value>> joined;
  for (const int slot : any) {
    const Value& e = entry.values[slot];
    const Value& b = back.values[slot];
    const auto it = pairs.try_emplace({e.form, b.form}, slot).first;
    if (e == b) {
      joined.emplace_back(slot, e);
      continue;
    }
    const Value value = domain_.Join(e, entry, b, back,
                                     {place | kHeadPlace, it->second}, nullptr);
    joined.emplace_back(slot, value);
    if (value.kind == Value::Kind::kTop) continue;
    renewed.push_back(domain_.Made({place | kHeadPlace, it->second}));
  }
  const auto stale = [&](const Value& value, SymbolId own) {
    if (value.kind == Value::Kind::kTop) return false;
    const Form& form = universe.form(value.form);
    return std::any_of(renewed.begin(), renewed.end(), [&](SymbolId symbol) {
      return symbol != own && universe.Mentions(form, symbol);
    });
  };
  constexpr SymbolId kNone = ~SymbolId{0};
  for (int slot = 0; slot < kSlots; ++slot) {
    if (stale(state.values[slot], kNone)) {
      state.values[slot] = domain_.Top(domain_.OriginsOf(state.values[slot]));
    }
  }
  for (auto& [slot, value] : joined) {
    const auto it =
        pairs.find({entry.values[slot].form, back.values[slot].form});
    const SymbolId own = domain_.Made({place | kHeadPlace, it->second});
    state.values[slot] =
        stale(value, own) ? domain_.Top(domain_.OriginsOf(value)) : value;
  }
  state.guarded.clear();
  state.indicators.clear();
  LoopBounds(entry, back, renewed, &head, &state);
  const auto truth_is_stale = [&](const Truth& truth) {
    if (truth.low != nullptr) return true;  // of no use across a loop
    for (const Atoms* atoms : {&truth.when_true, &truth.when_false}) {
      for (const Atom& atom : *atoms) {
        for (const SymbolId symbol : renewed) {
          if (universe.Mentions(universe.form(atom.form), symbol)) return true;
        }
      }
    }
    return false;
  };
  for (size_t i = 0; i < state.truths.size(); ++i) {
    if (!head.varies[i] && back.truths[i] != head.last.truths[i]) {
      head.varies[i] = true;
      head_changed_ = true;
    }
    if (head.varies[i] || truth_is_stale(state.truths[i])) {
      state.truths[i] = Truth();
    }
  }
  head.last = state;
  return state;
}

State Fixpoint::InOf(uint32_t block) {
  const FlowBlock& at = flow_.blocks[block];
  domain_.SetRepeats(at.repeats);
  State entry;
  State back;
  if (block == flow_.order.front()) entry = interpreter_.Entry();
  for (const uint32_t edge : at.in) {
    const bool loops = flow_.edges[edge].back;
    const uint32_t kind =
        !at.loop_head ? kMeetPlace : (loops ? kBackPlace : kEntryPlace);
    domain_.JoinInto(edges_[edge], at.place | kind, loops ? &back : &entry);
  }
  if (!at.loop_head) return entry;
  return MeetAtHead(block, std::move(entry), std::move(back));
}

bool Fixpoint::Run() {
  edges_.assign(flow_.edges.size(), State());
  for (sweeps_ = 1; sweeps_ <= kMaxSweeps; ++sweeps_) {
    if (sweeps_ == kUnhurriedSweeps) domain_.Hurry();
    domain_.TakeChanged();
    head_changed_ = false;
    bool changed = false;
    for (const uint32_t block : flow_.order) {
      if (domain_.universe().work() > kMaxWork) return false;
      const FlowBlock& at = flow_.blocks[block];
      State state = InOf(block);
      for (uint32_t i = at.first; i < at.last && state.reachable; ++i) {
        interpreter_.Step(i, at.place + (i - at.first), &state);
      }
      // The last instruction may branch; what it computes comes first.
      if (state.reachable && at.out.size() <= 1) {
        interpreter_.Step(at.last, at.place + (at.last - at.first), &state);
      }
      for (const uint32_t edge : at.out) {
        State out = state;
        const int8_t taken = flow_.edges[edge].taken;
        if (out.reachable && taken >= 0) {
          out = interpreter_.WhenTaken(at.last, taken == 1, state);
        }
        if (!Same(out, edges_[edge])) {
          edges_[edge] = std::move(out);
          changed = true;
        }
      }
    }
    changed |= domain_.TakeChanged();
    if (!changed && !head_changed_) return true;
  }
  return false;
}

void Fixpoint::Visit(
    const std::function<void(uint32_t, uint32_t, State*)>& visit) {
  for (const uint32_t block : flow_.order) {
    const FlowBlock& at = flow_.blocks[block];
    State state = InOf(block);
    for (uint32_t i = at.first; i <= at.last && state.reachable; ++i) {
      const uint32_t place = at.place + (i - at.first);
      visit(i, place, &state);
      if (i < at.last) interpreter_.Step(i, place, &state);
    }
  }
}

}  // namespace heddle::access
