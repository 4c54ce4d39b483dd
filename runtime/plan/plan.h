// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_PLAN_H_
#define HEDDLE_RUNTIME_PLAN_PLAN_H_

// A plan: how the operations of a step are to run as one CUDA graph. O1 keeps
// the program's graph and lets kernels start early; O2 makes a graph of its own
// from what the operations touch, and then lets kernels start early in that.
//
// Pure functions: no driver; the same plan for the same input; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/cubin/patch.h"
#include "runtime/plan/branches.h"
#include "runtime/plan/dependencies.h"
#include "runtime/plan/overlap.h"

namespace heddle::plan {

enum class Level : uint8_t { kO1 = 1, kO2 = 2 };

absl::string_view LevelName(Level level);  // "O2"

// What makes the later of two operations wait.
enum class Mechanism : uint8_t {
  kFull,          // it begins when the earlier one is complete
  kProgrammatic,  // its blocks come when the other's have triggered, and wait
  kLaunchOrder,   // its blocks come when the other's have been placed, and wait
};

absl::string_view MechanismName(Mechanism mechanism);  // "programmatic"
Mechanism MechanismOf(const Edge& edge);

// A step, by index of operation, in the order of submission.
struct PlanInput {
  // Of any kind: copies, fills and the like are nodes that are no kernels. The
  // edges are those of the program.
  Graph graph;
  // One an operation; O1 can do without any.
  std::vector<Effects> effects;
  std::vector<double> durations_us;
  std::vector<std::string> names;  // for messages and people
};

struct PlanOptions {
  Level level = Level::kO2;
  Style style = Style::kProgrammatic;
  BranchOptions branches;  // max_branches: O2 alone
  DeviceLimits limits;
};

struct PlannedNode {
  cubin::Prologue prologue = cubin::Prologue::kNone;
  uint32_t branch = 0;
  double duration_us = 0;
  double start_us = 0;  // estimated, after the start of the step
};

struct PlannedEdge {
  Edge edge;
  // Why the two must stay in order, by bytes. Empty: they need not, and the
  // edge is there to keep a branch in a line (O2), or nobody looked (O1 without
  // accesses).
  std::vector<Reason> reasons;
};

struct Plan {
  Level level = Level::kO2;
  Style style = Style::kProgrammatic;
  uint32_t branches = 1;
  std::vector<PlannedNode> nodes;
  std::vector<PlannedEdge> edges;
  uint32_t converted = 0;     // edges that are not full
  uint32_t launch_order = 0;  // those of them that use the launch-order port
  // To the end of the last node: the program's own graph, all of its edges
  // full; and this plan. By durations and EdgeCosts, see branches.h.
  double graph_us = 0;
  double estimate_us = 0;
  // What stayed as it was and why. For people.
  std::vector<std::string> notes;

  // The prologues and edges.
  OverlapPlan Overlap() const;
};

// FailedPrecondition: what CheckPlan says of the result, which would be a fault
// of the planner. InvalidArgument: sizes that do not match, what is no graph.
absl::StatusOr<Plan> MakePlan(const PlanInput& input,
                              const PlanOptions& options);

// Whether `plan` keeps the order of `input` and cannot get stuck: CheckOrder
// and CheckResidency; for O2, or if there are effects, CheckHazards. To be run
// on every plan before it is used, whoever made it, and with the limits of the
// device that it is used on. FailedPrecondition if not, naming the nodes.
// InvalidArgument: it is not for this input.
absl::Status CheckPlan(const PlanInput& input, const Plan& plan,
                       const DeviceLimits& limits);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_PLAN_H_
