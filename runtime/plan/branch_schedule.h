// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_BRANCH_SCHEDULE_H_
#define HEDDLE_RUNTIME_PLAN_BRANCH_SCHEDULE_H_

// The parts of branches.cc: an arrangement of operations, the graph and the
// estimate that follow from it, and the list scheduler that makes one.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/branches.h"

namespace heddle::plan {

struct BranchProblem {
  const std::vector<bool>& early;
  absl::Span<const double> durations_us;
  BranchOptions options;
  std::vector<std::vector<uint32_t>> in;   // per node: what it follows
  std::vector<std::vector<uint32_t>> out;  // per node: what follows it

  size_t size() const { return early.size(); }
  double CostOf(uint32_t from, uint32_t to, bool same_branch) const {
    return options.costs.Of(early[from] && early[to], same_branch);
  }
};

// Nodes in an order that keeps all dependencies, and the branch of each. The
// order within a branch is that of the sequence.
struct Arrangement {
  std::vector<uint32_t> sequence;
  std::vector<uint32_t> branch;  // by node
};

// What an arrangement amounts to. Takes time in proportion to nodes times
// branches and dependencies.
BranchPlan Realize(const BranchProblem& problem, const Arrangement& arranged);

// Which node is placed next, of those whose dependencies have been.
enum class PlaceNext : uint8_t {
  kSubmitted,  // the one submitted first
  kCritical,   // the one with the longest path behind it
  kEarliest,   // the one that could start first, of a few critical ones
};

// Places each node on the branch on which it would start first.
Arrangement ScheduleList(const BranchProblem& problem, PlaceNext next);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_BRANCH_SCHEDULE_H_
