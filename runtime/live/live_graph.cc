// SPDX-License-Identifier: Apache-2.0
// A graph's forms: built, settled, launched. Trials are in live_graph_trial.cc,
// changes by the program in live_graph_changes.cc.

#include "runtime/live/live_graph.h"

#include "absl/strings/str_cat.h"
#include "runtime/rewrite/flatten.h"

namespace heddle::live {
namespace {

// Kernels can start early from compute capability 9.0 on.
absl::Status HasEarlyStart(const device::Driver& driver) {
  CUdevice device = 0;
  int major = 0;
  if (driver.CtxGetDevice(&device) != CUDA_SUCCESS ||
      driver.DeviceGetAttribute(&major,
                                CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                device) != CUDA_SUCCESS) {
    return absl::InternalError("no current device");
  }
  if (major >= 9) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "a device of compute capability ", major,
      ".x cannot start kernels early (9.0 or newer can): level 1 is level 0 "
      "here"));
}

// cuGraphInstantiate flags that leave open what a rewritten graph may look
// like. Uploading early and freeing at launch (of graphs that allocate, which
// are never rewritten) are the business of the program's own executable alone.
constexpr uint64_t kKeptFlags = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
constexpr uint64_t kKnownFlags =
    kKeptFlags | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
    CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;

}  // namespace

LiveGraph::LiveGraph(const TrialTools& tools, CUgraphExec exec, CUgraph copy,
                     uint64_t flags, uint64_t number)
    : tools_(tools),
      driver_(tools.driver),
      exec_(exec),
      copy_(copy),
      flags_(flags) {
  report_.graph = number;
}

LiveGraph::~LiveGraph() {
  for (auto& variant : variants_) Drop(variant.get());
  if (copy_ != nullptr) driver_.GraphDestroy(copy_);
}

void LiveGraph::Drop(Variant* variant) {
  if (variant->exec != nullptr) driver_.GraphExecDestroy(variant->exec);
  if (variant->graph != nullptr) driver_.GraphDestroy(variant->graph);
  variant->exec = nullptr;
  variant->graph = nullptr;
}

void LiveGraph::Settle(CUgraphExec use, absl::string_view outcome) {
  report_.outcome = std::string(outcome);
  model_ = nullptr;  // only trials need it
  known_ = nullptr;
  use_.store(use, std::memory_order_release);
  Finish();
}

void LiveGraph::Finish() {
  if (published_) return;
  published_ = true;
  if (report_.outcome.empty()) {
    report_.outcome = "launched too seldom to be tried";
  }
  if (settled() == nullptr) {
    report_.style.clear();
    report_.level.clear();
    report_.branches = 1;
  }
  Publish(report_, tools_.options->report_path);
}

void LiveGraph::KeepOriginal(absl::string_view why) {
  const bool was_used = settled() != nullptr;
  report_.style.clear();
  report_.level.clear();
  report_.branches = 1;
  Settle(exec_, why);
  if (was_used) return;  // a thread may be about to launch a variant
  for (auto& variant : variants_) Drop(variant.get());
  variants_.clear();
}

absl::StatusOr<std::unique_ptr<LiveGraph::Variant>> LiveGraph::BuildVariant(
    CUgraph source, const Form& form, bool instantiate) {
  auto variant = std::make_unique<Variant>();
  variant->form = form;
  // Whatever goes wrong, nothing of it stays.
  struct Guard {
    LiveGraph* graph;
    Variant* variant;
    ~Guard() {
      if (variant != nullptr) graph->Drop(variant);
    }
  } guard{this, variant.get()};
  if (absl::Status status = driver_.Check(
          driver_.GraphClone(&variant->graph, source), "cuGraphClone");
      !status.ok()) {
    return status;
  }
  absl::StatusOr<rewrite::GraphModel> model =
      rewrite::ReadGraph(driver_, variant->graph, tools_.code);
  if (!model.ok()) return model.status();
  CUdevice device = 0;
  if (absl::Status status =
          driver_.Check(driver_.CtxGetDevice(&device), "cuCtxGetDevice");
      !status.ok()) {
    return status;
  }
  const plan::DeviceLimits limits = rewrite::ReadLimits(driver_, device);
  absl::StatusOr<rewrite::Rewritten> rewritten =
      variant->rests_on_effects()
          ? RewriteByEffects(variant.get(), &*model, limits)
          : rewrite::Rewrite(driver_, variant->graph, &*model, form.style,
                             limits, tools_.modules);
  if (!rewritten.ok()) return rewritten.status();
  variant->rewritten = *std::move(rewritten);
  variant->index = std::move(model->index);
  for (size_t i = 0; i < model->nodes.size(); ++i) {
    variant->functions.push_back(model->nodes[i].function);
    variant->needs.push_back(model->graph.nodes[i].needs);
  }
  if (instantiate) {
    if (absl::Status status = driver_.Check(
            driver_.GraphInstantiateWithFlags(&variant->exec, variant->graph,
                                              flags_ & kKeptFlags),
            "cuGraphInstantiateWithFlags(rewritten)");
        !status.ok()) {
      return status;
    }
  }
  guard.variant = nullptr;
  return variant;
}

absl::Status LiveGraph::Build() {
  if ((flags_ & ~kKnownFlags) != 0) {
    return absl::UnimplementedError(
        absl::StrCat("instantiated with flags 0x", absl::Hex(flags_)));
  }
  if (absl::Status status = HasEarlyStart(driver_); !status.ok()) {
    return status;
  }
  if (rewrite::HasChildGraphs(driver_, copy_)) {
    const absl::StatusOr<CUgraph> flat =
        rewrite::Flatten(driver_, copy_, tools_.code);
    if (!flat.ok()) return flat.status();
    driver_.GraphDestroy(copy_);
    copy_ = *flat;
    flat_ = true;
    report_.notes.push_back("its child graphs were taken apart");
  }
  absl::StatusOr<rewrite::GraphModel> model =
      rewrite::ReadGraph(driver_, copy_, tools_.code);
  if (!model.ok()) return model.status();
  model_ = std::make_unique<rewrite::GraphModel>(*std::move(model));
  report_.nodes = static_cast<uint32_t>(model_->nodes.size());
  report_.kernels = model_->kernels;
  report_.edges = static_cast<uint32_t>(model_->graph.edges.size());
  if (model_->kernels < 2) {
    return absl::UnimplementedError("fewer than two kernels");
  }
  if (const std::string why = rewrite::WhyUntouchable(driver_, *model_);
      !why.empty()) {
    return absl::UnimplementedError(absl::StrCat("it has ", why));
  }
  absl::Status why;
  for (const Form& form : FormsToTry(*tools_.options)) {
    // What the others need is measured first (BuildBranches).
    if (form.level != plan::Level::kO1 || form.file != nullptr) continue;
    absl::StatusOr<std::unique_ptr<Variant>> variant =
        BuildVariant(copy_, form, /*instantiate=*/true);
    if (!variant.ok()) {
      if (why.ok()) why = variant.status();
      continue;
    }
    // Launch order that no proof allows is the programmatic form again.
    if (form.style == plan::Style::kLaunchOrder &&
        (*variant)->rewritten.summary.launch_order == 0 && !variants_.empty()) {
      Drop(variant->get());
      continue;
    }
    variants_.push_back(*std::move(variant));
  }
  if (!variants_.empty()) return absl::OkStatus();
  return why.ok() ? absl::UnimplementedError("no form to try") : why;
}

CUresult LiveGraph::Launch(bool own, CUstream stream, bool capturing) {
  const CUgraphExec use = own ? exec_ : settled();
  const CUgraphExec last = last_exec_.load(std::memory_order_acquire);
  if (last != nullptr && last != use) {
    // The other form may still run.
    const CUresult waited = capturing
                                ? driver_.StreamSynchronize(last_stream_.load())
                                : driver_.CtxSynchronize();
    if (waited != CUDA_SUCCESS) return waited;
  }
  if (last != use) last_exec_.store(use, std::memory_order_release);
  last_stream_.store(stream, std::memory_order_relaxed);
  return driver_.GraphLaunch(use, stream);
}

}  // namespace heddle::live
