// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_HAZARDS_H_
#define HEDDLE_RUNTIME_PLAN_HAZARDS_H_

// The last word on a graph whose order was made from accesses: may it run?
//
// Shares nothing with what finds dependencies (dependencies.h): it looks at all
// operations that the graph leaves unordered, or goes over memory once, and
// asks whether they conflict. To be run on every such plan before it is used.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/plan/dependencies.h"
#include "runtime/plan/overlap.h"

namespace heddle::plan {

enum class HazardSearch : uint8_t {
  // Pairs for graphs of up to kMaxPairNodes nodes, else the sweep where it
  // needs no more memory than kMaxSweepNumbers.
  kAuto,
  // Every pair of operations that the graph leaves unordered, one by one.
  kPairs,
  // Memory in the pieces that extents cut it into, operations in the order in
  // which they were submitted: for each piece and chain, the last that touched
  // it so far. Time and memory do not grow with the number of pairs.
  kSweep,
};
inline constexpr size_t kMaxPairNodes = 5000;
inline constexpr size_t kMaxSweepNumbers = size_t{1} << 26;  // 4 bytes each

// Refuses (FailedPrecondition, naming both operations and the bytes) a graph in
// which an operation's body could begin before an operation is complete that
// was submitted before it and with which it conflicts. `effects` are in the
// order of submission, by index of node; `names`, if not empty, are for the
// message. InvalidArgument: what is no graph, sizes that do not match.
// ResourceExhausted: too wide to be checked.
absl::Status CheckHazards(const std::vector<Node>& nodes,
                          const OverlapPlan& plan,
                          absl::Span<const Effects> effects,
                          absl::Span<const std::string> names = {},
                          HazardSearch search = HazardSearch::kAuto);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_HAZARDS_H_
