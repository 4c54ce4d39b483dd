// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/plan/graph_shape.h"
#include "runtime/plan/hazards.h"

namespace heddle::plan {
namespace {

// Kernels between which O1 can make an edge an early one.
bool MayStartEarly(const Node& node) {
  return node.kernel && node.patchable && !node.needs.cooperative;
}

absl::Status CheckSizes(const PlanInput& input, Level level) {
  const size_t count = input.graph.nodes.size();
  if (input.durations_us.size() != count ||
      (!input.names.empty() && input.names.size() != count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a step of ", count, " operations with ", input.durations_us.size(),
        " durations and ", input.names.size(), " names"));
  }
  if (input.effects.size() != count &&
      (level == Level::kO2 || !input.effects.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a step of ", count, " operations with accesses of ",
                     input.effects.size(), ": ", LevelName(level),
                     " needs to know what each one touches"));
  }
  return absl::OkStatus();
}

// When each node starts if none does before it may; how long all of it takes.
double Estimate(const GraphShape& shape, const std::vector<Edge>& edges,
                const EdgeCosts& costs, std::vector<PlannedNode>* nodes) {
  double end = 0;
  for (const uint32_t node : shape.order) {
    PlannedNode& planned = (*nodes)[node];
    planned.start_us = 0;
    for (const uint32_t i : shape.in[node]) {
      const PlannedNode& from = (*nodes)[edges[i].from];
      planned.start_us = std::max(
          planned.start_us,
          from.start_us + from.duration_us +
              costs.Of(!IsFull(edges[i]), from.branch == planned.branch));
    }
    end = std::max(end, planned.start_us + planned.duration_us);
  }
  return end;
}

// What is said of operations that nothing is known about.
void AddNotes(const PlanInput& input, Plan* plan) {
  const auto unknown = std::count_if(
      input.effects.begin(), input.effects.end(),
      [](const Effects& e) { return e.reads_anything || e.writes_anything; });
  if (unknown != 0) {
    plan->notes.push_back(absl::StrCat(
        unknown, " of ", input.effects.size(),
        " operations may touch memory that is not known, and stay in order "
        "with all that does: `heddle explain` says why"));
  }
}

}  // namespace

absl::string_view LevelName(Level level) {
  return level == Level::kO1 ? "O1" : "O2";
}

absl::string_view MechanismName(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kFull:
      return "full";
    case Mechanism::kProgrammatic:
      return "programmatic";
    case Mechanism::kLaunchOrder:
      return "launch-order";
  }
  return "unknown";
}

Mechanism MechanismOf(const Edge& edge) {
  if (IsFull(edge)) return Mechanism::kFull;
  return edge.from_port == kPortLaunchOrder ? Mechanism::kLaunchOrder
                                            : Mechanism::kProgrammatic;
}

OverlapPlan Plan::Overlap() const {
  OverlapPlan overlap;
  overlap.converted = converted;
  overlap.launch_order = launch_order;
  for (const PlannedNode& node : nodes) {
    overlap.prologue.push_back(node.prologue);
  }
  for (const PlannedEdge& edge : edges) overlap.edges.push_back(edge.edge);
  return overlap;
}

absl::StatusOr<Plan> MakePlan(const PlanInput& input,
                              const PlanOptions& options) {
  if (absl::Status s = CheckSizes(input, options.level); !s.ok()) return s;
  const size_t count = input.graph.nodes.size();
  Plan plan;
  plan.level = options.level;
  plan.style = options.style;
  plan.nodes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    plan.nodes[i].duration_us = input.durations_us[i];
  }
  {
    const auto shape = ShapeOf(input.graph.nodes, input.graph.edges);
    if (!shape.ok()) return shape.status();
    std::vector<Edge> full = input.graph.edges;
    for (Edge& edge : full) edge = {edge.from, edge.to};
    plan.graph_us = Estimate(*shape, full, options.branches.costs, &plan.nodes);
  }
  Graph graph = input.graph;
  if (options.level == Level::kO2) {
    std::vector<bool> early;
    for (const Node& node : graph.nodes) early.push_back(MayStartEarly(node));
    const absl::StatusOr<BranchPlan> branches =
        PlanBranches(early, BuildDependencies(input.effects).Pairs(),
                     input.durations_us, options.branches);
    if (!branches.ok()) return branches.status();
    graph.edges.clear();
    for (const auto& [from, to] : branches->edges) {
      graph.edges.push_back({from, to});
    }
    plan.branches = static_cast<uint32_t>(branches->order.size());
    for (size_t i = 0; i < count; ++i) {
      plan.nodes[i].branch = branches->branch[i];
    }
    if (plan.branches == 1 && options.branches.max_branches > 1) {
      plan.notes.push_back(
          "one branch: no other arrangement is estimated to be faster");
    }
  }
  absl::StatusOr<OverlapPlan> overlap =
      PlanOverlap(graph, options.style, options.limits);
  if (!overlap.ok()) return overlap.status();
  plan.converted = overlap->converted;
  plan.launch_order = overlap->launch_order;
  for (std::string& note : overlap->notes) {
    plan.notes.push_back(std::move(note));
  }
  for (size_t i = 0; i < count; ++i) {
    plan.nodes[i].prologue = overlap->prologue[i];
  }
  for (const Edge& edge : overlap->edges) {
    PlannedEdge& planned = plan.edges.emplace_back();
    planned.edge = edge;
    if (!input.effects.empty()) {
      planned.reasons =
          ReasonsBetween(input.effects[edge.from], input.effects[edge.to]);
    }
  }
  const auto shape = ShapeOf(graph.nodes, overlap->edges);
  if (!shape.ok()) return shape.status();
  plan.estimate_us =
      Estimate(*shape, overlap->edges, options.branches.costs, &plan.nodes);
  AddNotes(input, &plan);
  if (absl::Status s = CheckPlan(input, plan, options.limits); !s.ok()) {
    return s;
  }
  return plan;
}

absl::Status CheckPlan(const PlanInput& input, const Plan& plan,
                       const DeviceLimits& limits) {
  if (absl::Status s = CheckSizes(input, plan.level); !s.ok()) return s;
  if (plan.nodes.size() != input.graph.nodes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a plan for ", plan.nodes.size(), " operations, and the step has ",
        input.graph.nodes.size()));
  }
  const OverlapPlan overlap = plan.Overlap();
  // What O1 has to keep: the program's graph, or that of the branches, of which
  // the hazards say whether it is right.
  Graph before = input.graph;
  if (plan.level == Level::kO2) {
    before.edges.clear();
    for (const Edge& edge : overlap.edges) {
      before.edges.push_back({edge.from, edge.to});
    }
  }
  if (absl::Status s = CheckOrder(before, overlap); !s.ok()) return s;
  if (absl::Status s = CheckResidency(before, overlap, limits); !s.ok()) {
    return s;
  }
  if (plan.level == Level::kO1) return absl::OkStatus();
  return CheckHazards(input.graph.nodes, overlap, input.effects, input.names);
}

}  // namespace heddle::plan
