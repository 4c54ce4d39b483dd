// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/planned_executor.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/replay/graph_executor.h"
#include "runtime/replay/plan_step.h"
#include "runtime/rewrite/graph_model.h"

namespace heddle::replay {
namespace {

// The graph as it is built, before kernels start early: O1 keeps the program's.
std::vector<plan::Edge> EdgesBefore(const BoundProgram& program,
                                    const plan::Plan& plan) {
  if (plan.level == plan::Level::kO1) return EdgesOf(program.step());
  std::vector<plan::Edge> edges;
  for (const plan::PlannedEdge& planned : plan.edges) {
    edges.push_back({planned.edge.from, planned.edge.to});
  }
  return edges;
}

// `plan`, whose nodes are operations, by the indices of `model`.
absl::StatusOr<plan::OverlapPlan> ToModel(
    const plan::Plan& plan, const rewrite::GraphModel& model,
    const std::vector<uint32_t>& node_of) {
  plan::OverlapPlan out;
  out.converted = plan.converted;
  out.launch_order = plan.launch_order;
  out.prologue.resize(model.nodes.size());
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, plan::Edge> by_ends;
  for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
    out.prologue[node_of[i]] = plan.nodes[i].prologue;
  }
  for (const plan::PlannedEdge& planned : plan.edges) {
    plan::Edge edge = planned.edge;
    edge.from = node_of[edge.from];
    edge.to = node_of[edge.to];
    by_ends[{edge.from, edge.to}] = edge;
  }
  if (by_ends.size() != model.graph.edges.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan has ", by_ends.size(), " edges, and the program's graph ",
        model.graph.edges.size(), ": O1 keeps all of them"));
  }
  for (const plan::Edge& edge : model.graph.edges) {
    const auto found = by_ends.find({edge.from, edge.to});
    if (found == by_ends.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan lacks an edge of the program's graph: O1 "
                       "keeps all of them"));
    }
    out.edges.push_back(found->second);
  }
  return out;
}

// The final check, of what was made of the plan here.
absl::Status Check(const BoundProgram& program,
                   const rewrite::GraphModel& model,
                   const rewrite::Rewritten& rewritten,
                   const std::vector<uint32_t>& node_of,
                   const std::vector<plan::Effects>& effects,
                   const plan::DeviceLimits& limits, plan::Plan plan) {
  plan::PlanInput input;
  input.graph.edges = EdgesOf(program.step());
  input.effects = effects;
  for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
    input.graph.nodes.push_back(model.graph.nodes[node_of[i]]);
    input.durations_us.push_back(plan.nodes[i].duration_us);
    input.names.push_back(program.step().operations[i].label);
    plan.nodes[i].prologue = rewritten.prologue[node_of[i]];
  }
  return plan::CheckPlan(input, plan, limits);
}

}  // namespace

std::string PlannedName(const plan::Plan& plan) {
  return absl::StrCat("plan ", plan::LevelName(plan.level), " ",
                      rewrite::StyleName(plan.style));
}

absl::StatusOr<RewrittenExecutor> CreatePlannedExecutor(
    const device::Driver& driver, const device::ScopedContext& context,
    const BoundProgram& program, ModuleCode& code,
    rewrite::PatchedModules& patched, const plan::Plan& plan,
    const std::vector<plan::Effects>& effects) {
  if (plan.nodes.size() != program.step().operations.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a plan for ", plan.nodes.size(), " operations, and the step has ",
        program.step().operations.size()));
  }
  const std::vector<plan::Edge> before = EdgesBefore(program, plan);
  auto executor = std::make_unique<GraphExecutor>(driver, context.context(),
                                                  program, PlannedName(plan));
  if (absl::Status s =
          executor->Build({.drop_dependency = -1, .edges = &before});
      !s.ok()) {
    return s;
  }
  absl::StatusOr<rewrite::GraphModel> model =
      rewrite::ReadGraph(driver, executor->graph(), &code);
  if (!model.ok()) return model.status();
  std::vector<uint32_t> node_of;  // by operation
  for (CUgraphNode node : executor->nodes()) {
    node_of.push_back(model->index.at(reinterpret_cast<uint64_t>(node)));
  }
  absl::StatusOr<plan::OverlapPlan> overlap = ToModel(plan, *model, node_of);
  if (!overlap.ok()) return overlap.status();
  const plan::DeviceLimits limits =
      rewrite::ReadLimits(driver, context.device());
  absl::StatusOr<rewrite::Rewritten> rewritten =
      rewrite::RewriteAs(driver, executor->graph(), &*model,
                         *std::move(overlap), limits, &patched);
  if (!rewritten.ok()) return rewritten.status();
  rewritten->summary.style = plan.style;
  if (absl::Status s =
          Check(program, *model, *rewritten, node_of, effects, limits, plan);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = executor->Instantiate(); !s.ok()) return s;
  return RewrittenExecutor{std::move(executor), std::move(rewritten->summary)};
}

}  // namespace heddle::replay
