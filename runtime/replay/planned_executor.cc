// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/planned_executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/replay/graph_executor.h"
#include "runtime/replay/plan_step.h"
#include "runtime/rewrite/graph_model.h"
#include "runtime/rewrite/planned.h"

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
  plan::PlanInput input = rewrite::PlanInputOf(*model, node_of);
  input.graph.edges = EdgesOf(program.step());
  input.effects = effects;
  for (size_t i = 0; i < input.names.size(); ++i) {
    input.names[i] = program.step().operations[i].label;
  }
  absl::StatusOr<rewrite::Rewritten> rewritten = rewrite::RewriteAsPlanned(
      driver, executor->graph(), &*model, plan, node_of, std::move(input),
      rewrite::ReadLimits(driver, context.device()), &patched);
  if (!rewritten.ok()) return rewritten.status();
  if (absl::Status s = executor->Instantiate(); !s.ok()) return s;
  return RewrittenExecutor{std::move(executor), std::move(rewritten->summary)};
}

}  // namespace heddle::replay
