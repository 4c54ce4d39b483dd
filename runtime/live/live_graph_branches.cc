// SPDX-License-Identifier: Apache-2.0
// Forms of level 2 and from plans: order by what the nodes touch.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/live/live_graph.h"
#include "runtime/plan/hazards.h"
#include "runtime/record/log.h"
#include "runtime/rewrite/node_times.h"
#include "runtime/rewrite/planned.h"

namespace heddle::live {
namespace {

constexpr int kDurationRuns = 3;

// Nodes that the program leaves unordered although they share memory may wait
// for each other: then one must not be kept from running beside the other.
absl::Status CheckOwnOrder(const rewrite::GraphModel& model,
                           const GraphEffects& effects) {
  plan::OverlapPlan own;
  std::vector<std::string> names;
  own.prologue.resize(model.nodes.size());
  for (const plan::Edge& edge : model.graph.edges) {
    own.edges.push_back({edge.from, edge.to});
  }
  for (const rewrite::GraphNode& node : model.nodes) {
    names.push_back(node.source.name);
  }
  const absl::Status status =
      plan::CheckHazards(model.graph.nodes, own, effects.nodes, names);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat(
      "level 2 leaves it alone, because the program's own graph lets nodes "
      "run at once that share memory: ",
      status.message()));
}

}  // namespace

absl::StatusOr<plan::Plan> LiveGraph::PlanFor(
    const Form& form, const rewrite::GraphModel& model,
    const std::vector<uint32_t>& order, const plan::PlanInput& input,
    const plan::DeviceLimits& limits) {
  if (form.file != nullptr) {
    CUdevice device = 0;
    if (absl::Status status =
            driver_.Check(driver_.CtxGetDevice(&device), "cuCtxGetDevice");
        !status.ok()) {
      return status;
    }
    if (absl::Status status = rewrite::CheckPlanFits(
            *form.file, form.path, model, order, driver_, device);
        !status.ok()) {
      return status;
    }
    return form.file->plan;
  }
  plan::PlanOptions options;
  options.level = form.level;
  options.style = form.style;
  options.branches.max_branches = form.branches;
  options.limits = limits;
  absl::StatusOr<plan::Plan> plan = plan::MakePlan(input, options);
  if (plan.ok() && plan->branches == 1) {
    return absl::NotFoundError("no other order is estimated to be faster");
  }
  return plan;
}

absl::StatusOr<rewrite::Rewritten> LiveGraph::RewriteByEffects(
    Variant* variant, rewrite::GraphModel* model,
    const plan::DeviceLimits& limits) {
  if (known_ == nullptr) {
    return absl::FailedPreconditionError("what it touches is not known");
  }
  const absl::StatusOr<std::vector<uint32_t>> order =
      rewrite::SubmissionOrder(*model);
  if (!order.ok()) return order.status();
  // The clone's nodes need not have the numbers of those they were cloned from.
  std::vector<uint32_t> known_of(model->nodes.size(), 0);
  for (uint32_t i = 0; i < known_->handles.size(); ++i) {
    CUgraphNode node = nullptr;
    if (absl::Status status =
            driver_.Check(driver_.GraphNodeFindInClone(
                              &node, known_->handles[i], variant->graph),
                          "cuGraphNodeFindInClone");
        !status.ok()) {
      return status;
    }
    const auto at = model->index.find(reinterpret_cast<uint64_t>(node));
    if (at == model->index.end()) {
      return absl::InternalError("a clone without some of its nodes");
    }
    known_of[at->second] = i;
  }
  // A kernel that gets no twin changes what may start early: plan again, with
  // fewer patchable kernels each time.
  const auto patchable = [&] {
    return std::count_if(model->graph.nodes.begin(), model->graph.nodes.end(),
                         [](const plan::Node& node) { return node.patchable; });
  };
  const std::vector<plan::Edge> own_edges =
      rewrite::PlanInputOf(*model, *order).graph.edges;
  while (true) {
    plan::PlanInput input = rewrite::PlanInputOf(*model, *order);
    input.graph.edges = own_edges;
    for (const uint32_t node : *order) {
      const uint32_t known = known_of[node];
      input.effects.push_back(known_->effects.nodes[known]);
      input.durations_us.push_back(known_->durations_us[known]);
    }
    absl::StatusOr<plan::Plan> plan =
        PlanFor(variant->form, *model, *order, input, limits);
    if (!plan.ok()) return plan.status();
    const auto before = patchable();
    absl::StatusOr<rewrite::Rewritten> rewritten =
        rewrite::RewriteAsPlanned(driver_, variant->graph, model, *plan, *order,
                                  std::move(input), limits, tools_.modules);
    if (rewritten.ok()) {
      variant->form.branches = plan->branches;
      variant->rests_on = known_->effects.rests_on;
      return rewritten;
    }
    if (variant->form.file != nullptr || patchable() == before) {
      return rewritten.status();
    }
  }
}

absl::Status LiveGraph::BuildBranches(StateKeeper* keeper, CUstream stream) {
  std::vector<Form> forms = FormsToTry(*tools_.options);
  std::erase_if(forms, [](const Form& form) {
    return form.level == plan::Level::kO1 && form.file == nullptr;
  });
  if (forms.empty() || model_ == nullptr) return absl::OkStatus();
  known_ = std::make_unique<Knowledge>();
  known_->effects = tools_.accesses->Find(*model_);
  report_.analysis_ms = known_->effects.seconds * 1000;
  for (const rewrite::GraphNode& node : model_->nodes) {
    known_->handles.push_back(node.handle);
  }
  if (known_->effects.unknown > 0) {
    report_.notes.push_back(
        absl::StrCat(known_->effects.unknown, " of ", model_->nodes.size(),
                     " nodes may touch anything; ", known_->effects.why));
  }
  if (const absl::Status status = CheckOwnOrder(*model_, known_->effects);
      !status.ok()) {
    report_.notes.push_back(std::string(status.message()));
    known_ = nullptr;
    return absl::OkStatus();
  }
  if (absl::Status status = keeper->Restore(); !status.ok()) return status;
  absl::StatusOr<std::vector<double>> durations =
      rewrite::MeasureNodes(driver_, copy_, *model_, stream, kDurationRuns);
  // What the nodes wrote, one after the other, however far that went.
  if (absl::Status status = keeper->RestoreAll(); !status.ok()) return status;
  if (!durations.ok()) {
    report_.notes.push_back(
        absl::StrCat("its nodes could not be timed: ",
                     std::string(durations.status().message())));
    durations = std::vector<double>(model_->nodes.size(), 1.0);
  }
  known_->durations_us = *std::move(durations);
  for (const Form& form : forms) {
    absl::StatusOr<std::unique_ptr<Variant>> variant =
        BuildVariant(copy_, form, /*instantiate=*/true);
    if (!variant.ok()) {
      report_.notes.push_back(absl::StrCat(
          form.Name(), ": ", std::string(variant.status().message())));
      continue;
    }
    const bool twice =
        std::any_of(variants_.begin(), variants_.end(), [&](const auto& other) {
          return other->rewritten.edges == (*variant)->rewritten.edges &&
                 other->rewritten.prologue == (*variant)->rewritten.prologue;
        });
    if (twice) {
      Drop(variant->get());
      continue;
    }
    variants_.push_back(*std::move(variant));
  }
  return absl::OkStatus();
}

}  // namespace heddle::live
