// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/rewriter.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace heddle::rewrite {
namespace {

// Finds a twin for each kernel that has a prologue in `prologue`; a kernel that
// gets none is made unpatchable in the model. Whether all of them got one.
bool FindTwins(GraphModel* model, const std::vector<cubin::Prologue>& prologue,
               PatchedModules* modules, std::vector<CUfunction>* twins) {
  bool complete = true;
  twins->assign(model->nodes.size(), nullptr);
  for (size_t i = 0; i < model->nodes.size(); ++i) {
    if (prologue[i] == cubin::Prologue::kNone) continue;
    GraphNode& node = model->nodes[i];
    absl::StatusOr<CUfunction> twin =
        modules->Get(node.source, prologue[i], node.function);
    if (twin.ok()) {
      (*twins)[i] = *twin;
      continue;
    }
    node.reason = absl::StrCat(twin.status().message());
    model->graph.nodes[i].patchable = false;
    complete = false;
  }
  return complete;
}

// A trigger that nothing listens to changes nothing, so kernels that only need
// to wait share the twin of those that trigger too: one image less to load.
// Where the program itself loaded the patched image there is its one prologue.
// A producer that does not trigger does so by ending, which is only later.
void ShareTwins(const GraphModel& model, plan::OverlapPlan* plan) {
  std::vector<bool> own_edges(model.nodes.size(), false);
  for (const plan::Edge& edge : plan->edges) {
    if (edge.type != plan::kTypeDefault ||
        edge.from_port != plan::kPortDefault) {
      own_edges[edge.from] = true;
    }
  }
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    if (plan->prologue[i] == cubin::Prologue::kNone) continue;
    const KernelSource& source = model.nodes[i].source;
    if (source.code != nullptr &&
        source.code->with_state.contains(source.name)) {
      plan->prologue[i] = cubin::Prologue::kWait;
    } else if (plan->prologue[i] == cubin::Prologue::kWait && !own_edges[i] &&
               !model.graph.nodes[i].has_own_pdl) {
      plan->prologue[i] = cubin::Prologue::kWaitTrigger;
    }
  }
}

absl::Status SetKernels(const device::Driver& driver, GraphModel* model,
                        const std::vector<CUfunction>& twins) {
  for (size_t i = 0; i < twins.size(); ++i) {
    GraphNode& node = model->nodes[i];
    if (twins[i] == nullptr || twins[i] == node.function) continue;
    const CUDA_KERNEL_NODE_PARAMS params = node.launch.With(twins[i]);
    if (absl::Status status = driver.Check(
            driver.GraphKernelNodeSetParams(node.handle, &params),
            absl::StrCat("cuGraphKernelNodeSetParams(", node.source.name, ")"));
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status SetEdges(const device::Driver& driver, CUgraph graph,
                      const GraphModel& model,
                      const std::vector<plan::Edge>& edges) {
  const auto data_of = [](const plan::Edge& edge) {
    CUgraphEdgeData data{};
    data.type = edge.type;
    data.from_port = edge.from_port;
    data.to_port = edge.to_port;
    return data;
  };
  for (size_t i = 0; i < edges.size(); ++i) {
    const plan::Edge& before = model.graph.edges[i];
    const plan::Edge& after = edges[i];
    if (before == after) continue;
    CUgraphNode from = model.nodes[before.from].handle;
    CUgraphNode to = model.nodes[before.to].handle;
    const CUgraphEdgeData old_data = data_of(before);
    const CUgraphEdgeData new_data = data_of(after);
    absl::Status status = driver.Check(
        driver.GraphRemoveDependencies(graph, &from, &to, &old_data, 1),
        "cuGraphRemoveDependencies");
    if (!status.ok()) return status;
    status = driver.Check(
        driver.GraphAddDependencies(graph, &from, &to, &new_data, 1),
        "cuGraphAddDependencies(programmatic)");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckDriver(const device::Driver& driver) {
  if (driver.GraphRemoveDependencies == nullptr ||
      driver.GraphAddDependencies == nullptr ||
      driver.GraphKernelNodeSetParams == nullptr) {
    return absl::UnimplementedError(
        "the driver has no edges with data (needs CUDA 12.3 or newer)");
  }
  return absl::OkStatus();
}

RewriteSummary Summarize(const GraphModel& model,
                         const std::vector<CUfunction>& twins,
                         const plan::OverlapPlan& plan) {
  RewriteSummary summary;
  summary.nodes = static_cast<uint32_t>(model.nodes.size());
  summary.kernels = model.kernels;
  summary.edges = static_cast<uint32_t>(model.graph.edges.size());
  summary.converted = plan.converted;
  summary.launch_order = plan.launch_order;
  std::map<std::string, uint32_t> reasons;
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    if (twins[i] != nullptr) {
      ++summary.patched;
    } else if (model.graph.nodes[i].patchable) {
      ++reasons["no edge of theirs needs a prologue"];
    }
    if (!model.nodes[i].reason.empty()) ++reasons[model.nodes[i].reason];
  }
  for (const auto& [reason, count] : reasons) {
    summary.notes.push_back(absl::StrCat(count, " unpatched: ", reason));
  }
  summary.notes.insert(summary.notes.end(), plan.notes.begin(),
                       plan.notes.end());
  return summary;
}

// Changes the graph, after all checks.
absl::StatusOr<Rewritten> Apply(const device::Driver& driver, CUgraph graph,
                                GraphModel* model,
                                const std::vector<CUfunction>& twins,
                                plan::OverlapPlan plan) {
  Rewritten result;
  result.summary = Summarize(*model, twins, plan);
  if (absl::Status status = SetKernels(driver, model, twins); !status.ok()) {
    return status;
  }
  if (absl::Status status = SetEdges(driver, graph, *model, plan.edges);
      !status.ok()) {
    return status;
  }
  result.prologue = std::move(plan.prologue);
  result.edges = std::move(plan.edges);
  return result;
}

}  // namespace

absl::string_view StyleName(plan::Style style) {
  switch (style) {
    case plan::Style::kProgrammaticEarly:
      return "programmatic-early";
    case plan::Style::kProgrammatic:
      return "programmatic";
    case plan::Style::kLaunchOrder:
      return "launch-order";
  }
  return "unknown";
}

absl::StatusOr<Rewritten> Rewrite(const device::Driver& driver, CUgraph graph,
                                  GraphModel* model, plan::Style style,
                                  const plan::DeviceLimits& limits,
                                  PatchedModules* modules) {
  if (absl::Status status = CheckDriver(driver); !status.ok()) return status;
  plan::OverlapPlan plan;
  std::vector<CUfunction> twins;
  // A kernel without a twin changes what may be converted around it: plan
  // again, with fewer patchable kernels each time.
  do {
    absl::StatusOr<plan::OverlapPlan> planned =
        plan::PlanOverlap(model->graph, style, limits);
    if (!planned.ok()) return planned.status();
    plan = *std::move(planned);
    ShareTwins(*model, &plan);
  } while (!FindTwins(model, plan.prologue, modules, &twins));
  // Order and forward progress, whatever the planner believes.
  if (absl::Status status = plan::CheckResidency(model->graph, plan, limits);
      !status.ok()) {
    return status;
  }
  if (plan.converted == 0) {
    const RewriteSummary summary = Summarize(*model, twins, plan);
    return absl::NotFoundError(
        absl::StrCat("no edge could be converted",
                     summary.notes.empty()
                         ? ""
                         : absl::StrCat(" (", summary.notes.front(), ")")));
  }
  absl::StatusOr<Rewritten> result =
      Apply(driver, graph, model, twins, std::move(plan));
  if (result.ok()) result->summary.style = style;
  return result;
}

absl::StatusOr<Rewritten> RewriteAs(const device::Driver& driver, CUgraph graph,
                                    GraphModel* model, plan::OverlapPlan plan,
                                    const plan::DeviceLimits& limits,
                                    PatchedModules* modules) {
  if (absl::Status status = CheckDriver(driver); !status.ok()) return status;
  if (plan.prologue.size() != model->nodes.size() ||
      plan.edges.size() != model->graph.edges.size()) {
    return absl::InvalidArgumentError("a plan for another graph");
  }
  for (size_t i = 0; i < plan.edges.size(); ++i) {
    if (plan.edges[i].from != model->graph.edges[i].from ||
        plan.edges[i].to != model->graph.edges[i].to) {
      return absl::InvalidArgumentError("a plan with edges of another graph");
    }
  }
  std::vector<CUfunction> twins;
  ShareTwins(*model, &plan);
  if (!FindTwins(model, plan.prologue, modules, &twins)) {
    for (size_t i = 0; i < model->nodes.size(); ++i) {
      if (plan.prologue[i] == cubin::Prologue::kNone || twins[i] != nullptr) {
        continue;
      }
      return absl::FailedPreconditionError(
          absl::StrCat("kernel ", model->nodes[i].source.name,
                       " cannot have the prologue that the plan gives it: ",
                       model->nodes[i].reason));
    }
  }
  if (absl::Status status = plan::CheckResidency(model->graph, plan, limits);
      !status.ok()) {
    return status;
  }
  return Apply(driver, graph, model, twins, std::move(plan));
}

}  // namespace heddle::rewrite
