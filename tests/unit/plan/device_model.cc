// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/plan/device_model.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace heddle::plan {
namespace {

using cubin::Prologue;

// Per node: blocks on each multiprocessor, then how many have ended.
using State = std::vector<std::vector<uint8_t>>;

class Search {
 public:
  Search(const std::vector<Node>& nodes, const OverlapPlan& plan,
         const DeviceLimits& limits)
      : nodes_(nodes), plan_(plan), limits_(limits) {}

  Outcome Run(size_t max_states) {
    const State start(nodes_.size(),
                      std::vector<uint8_t>(limits_.multiprocessors + 1));
    std::set<State> seen = {start};
    std::vector<State> stack = {start};
    while (!stack.empty()) {
      const State state = stack.back();
      stack.pop_back();
      bool moved = false;
      for (uint32_t node = 0; node < nodes_.size(); ++node) {
        for (State& next : Steps(state, node)) {
          moved = true;
          if (!seen.insert(next).second) continue;
          if (seen.size() > max_states) return Outcome::kTooLarge;
          stack.push_back(std::move(next));
        }
      }
      if (moved) continue;
      for (uint32_t node = 0; node < nodes_.size(); ++node) {
        if (!Complete(state, node)) return Outcome::kMayGetStuck;
      }
    }
    return Outcome::kAlwaysEnds;
  }

 private:
  uint64_t Blocks(uint32_t node) const {
    return nodes_[node].kernel ? nodes_[node].needs.blocks : 1;
  }
  bool Complete(const State& state, uint32_t node) const {
    return state[node].back() == Blocks(node);
  }
  bool Begun(const State& state, uint32_t node) const {
    return std::accumulate(state[node].begin(), state[node].end(),
                           uint64_t{0}) == Blocks(node);
  }
  bool WaitOver(const State& state, uint32_t node) const {
    return plan_.prologue[node] == Prologue::kNone ||
           std::all_of(
               plan_.edges.begin(), plan_.edges.end(), [&](const Edge& edge) {
                 return edge.to != node || edge.type != kTypeProgrammatic ||
                        Complete(state, edge.from);
               });
  }
  bool Triggered(const State& state, uint32_t node) const {
    switch (plan_.prologue[node]) {
      case Prologue::kTriggerWait:
        return Begun(state, node);
      case Prologue::kWaitTrigger:
        return Begun(state, node) && WaitOver(state, node);
      default:
        return Complete(state, node);
    }
  }
  bool MayStart(const State& state, uint32_t node) const {
    return std::all_of(plan_.edges.begin(), plan_.edges.end(),
                       [&](const Edge& edge) {
                         if (edge.to != node) return true;
                         if (edge.from_port == kPortDefault)
                           return Complete(state, edge.from);
                         if (edge.from_port == kPortProgrammatic) {
                           return Triggered(state, edge.from);
                         }
                         return MayStart(state, edge.from);
                       });
  }
  bool HasRoom(const State& state, uint32_t sm, const BlockNeeds& block) const {
    uint64_t blocks = 1;
    uint64_t threads = block.threads;
    uint64_t shared = (block.shared_bytes + 255) / 256 * 256;
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      const uint64_t there = nodes_[node].kernel ? state[node][sm] : 0;
      const BlockNeeds& needs = nodes_[node].needs;
      if (there != 0 &&
          (needs.shared_bytes != 0) != (block.shared_bytes != 0)) {
        return false;
      }
      blocks += there;
      threads += there * needs.threads;
      shared += there * ((needs.shared_bytes + 255) / 256 * 256);
    }
    return blocks <= limits_.blocks_per_sm &&
           threads <= limits_.threads_per_sm && shared <= limits_.shared_per_sm;
  }

  std::vector<State> Steps(const State& state, uint32_t node) const {
    std::vector<State> steps;
    const auto add = [&](uint32_t less, uint32_t more, bool both) {
      steps.push_back(state);
      if (both) --steps.back()[node][less];
      ++steps.back()[node][more];
    };
    const uint32_t ended = limits_.multiprocessors;
    const bool may_begin = !Begun(state, node) && MayStart(state, node);
    if (!nodes_[node].kernel) {
      if (may_begin) add(0, ended, false);
      return steps;
    }
    for (uint32_t sm = 0; sm < ended; ++sm) {
      if (may_begin && HasRoom(state, sm, nodes_[node].needs)) {
        add(0, sm, false);
      }
      if (state[node][sm] != 0 && WaitOver(state, node)) add(sm, ended, true);
    }
    return steps;
  }

  const std::vector<Node>& nodes_;
  const OverlapPlan& plan_;
  const DeviceLimits& limits_;
};

}  // namespace

Outcome Explore(const std::vector<Node>& nodes, const OverlapPlan& plan,
                const DeviceLimits& limits, size_t max_states) {
  return Search(nodes, plan, limits).Run(max_states);
}

}  // namespace heddle::plan
