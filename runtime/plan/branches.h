// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_BRANCHES_H_
#define HEDDLE_RUNTIME_PLAN_BRANCHES_H_

// O2, removal of false order: which of a few branches each operation goes to,
// and in which order, so that operations that need not wait for each other need
// not.
//
// List scheduling over durations. A branch is a chain: its members follow each
// other, which bounds how many operations run at once, and is where the early
// start of O1 works best. Whether an operation leaves its chain is decided by
// an estimate in which an edge between branches costs time; that the
// device shares its bandwidth between branches is not in the estimate, so
// measure (`heddle replay --plan --compare`).
//
// Pure functions, the same result for the same input; any thread.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::plan {

// (from, to): `to` follows `from`.
using Dependency = std::pair<uint32_t, uint32_t>;

// From the completion of a node to the start of the one that an edge joins it
// with, in µs. The first two as measured on an H200 with 500 empty kernels in a
// row; the third is an assumption.
struct EdgeCosts {
  double full_us = 0.93;
  double early_us = 0.58;  // between kernels that O1 lets start early
  double branch_us = 1.0;  // more for an edge between two branches

  double Of(bool early, bool same_branch) const {
    return (early ? early_us : full_us) + (same_branch ? 0 : branch_us);
  }
};

struct BranchOptions {
  uint32_t max_branches = 2;
  EdgeCosts costs;
};
inline constexpr uint32_t kMaxBranches = 64;

struct BranchPlan {
  std::vector<uint32_t> branch;              // per node
  std::vector<std::vector<uint32_t>> order;  // per branch: its nodes
  // The order of the branches and all dependencies, without those that others
  // imply; by `to`, then by `from`. No more than max_branches nodes, whichever,
  // are unordered among each other.
  std::vector<Dependency> edges;
  std::vector<double> start_us;  // per node, estimated
  double estimate_us = 0;        // to the end of the last node
  double chain_us = 0;           // the same for a single chain
};

// `early` says which nodes are kernels that O1 can overlap, `durations_us` how
// long each node runs. Dependencies lead from lower to higher numbers (the
// order of submission); implied ones do no harm. With one branch, or where no
// other arrangement is estimated to be faster, the plan is a single chain in
// the order of submission. InvalidArgument: sizes, a dependency that leads
// backwards, a duration below 0 or none, more than kMaxBranches branches.
absl::StatusOr<BranchPlan> PlanBranches(
    const std::vector<bool>& early, absl::Span<const Dependency> dependencies,
    absl::Span<const double> durations_us, const BranchOptions& options);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_BRANCHES_H_
