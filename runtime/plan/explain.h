// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_EXPLAIN_H_
#define HEDDLE_RUNTIME_PLAN_EXPLAIN_H_

// What a plan makes of each boundary between an operation and the next.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/plan/plan.h"

namespace heddle::plan {

enum class Relation : uint8_t {
  kEdge,       // the later one waits for the earlier one by an edge of its own
  kPath,       // by way of other operations
  kUnordered,  // neither waits for the other
  kTurned,     // the later one runs first
};

absl::string_view RelationName(Relation relation);  // "by way of others"

struct Boundary {
  uint32_t earlier = 0;  // operations, as submitted; the later one is the next
  uint32_t later = 0;
  // The bytes that force the order; empty if nothing does.
  std::vector<Reason> reasons;
  Relation relation = Relation::kEdge;
  Mechanism mechanism = Mechanism::kFull;  // of the edge, for kEdge
  // How much sooner the later one begins than behind the earlier one's end with
  // a full edge, estimated; below 0 if the plan holds it back. µs.
  double gain_us = 0;
};

// One for each operation but the first. `costs` are those that the plan was
// made with. InvalidArgument: a plan that is not for `input`.
absl::StatusOr<std::vector<Boundary>> ExplainPlan(const PlanInput& input,
                                                  const Plan& plan,
                                                  const EdgeCosts& costs);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_EXPLAIN_H_
