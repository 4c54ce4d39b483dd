// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/live_graph.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/record/log.h"

namespace heddle::live {
namespace {

using Clock = std::chrono::steady_clock;

// How long a trial waits for the device to become idle before the launch goes
// on untried, and how often that is accepted.
constexpr std::chrono::milliseconds kIdlePatience{1000};
constexpr int kMaxAttempts = 8;
constexpr int kTimingRounds = 9;

double Milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since)
      .count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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
  use_.store(use, std::memory_order_release);
  Finish();
}

void LiveGraph::Finish() {
  if (published_) return;
  published_ = true;
  if (report_.outcome.empty()) {
    report_.outcome = "launched too seldom to be tried";
  }
  if (settled() == nullptr) report_.style.clear();
  Publish(report_, tools_.options->report_path);
}

void LiveGraph::KeepOriginal(absl::string_view why) {
  const bool was_used = settled() != nullptr;
  report_.style.clear();
  Settle(exec_, why);
  if (was_used) return;  // a thread may be about to launch a variant
  for (auto& variant : variants_) Drop(variant.get());
  variants_.clear();
}

// ---- building ---------------------------------------------------------------

absl::StatusOr<std::unique_ptr<LiveGraph::Variant>> LiveGraph::BuildVariant(
    CUgraph source, plan::Style style, bool instantiate) {
  auto variant = std::make_unique<Variant>();
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
  absl::StatusOr<rewrite::Rewritten> rewritten =
      rewrite::Rewrite(driver_, variant->graph, &*model, style,
                       rewrite::ReadLimits(driver_, device), tools_.modules);
  if (!rewritten.ok()) return rewritten.status();
  variant->rewritten = *std::move(rewritten);
  variant->index = std::move(model->index);
  for (const rewrite::GraphNode& node : model->nodes) {
    variant->functions.push_back(node.function);
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
  for (const plan::Style style : tools_.options->styles) {
    absl::StatusOr<std::unique_ptr<Variant>> variant =
        BuildVariant(copy_, style, /*instantiate=*/true);
    if (!variant.ok()) {
      if (why.ok()) why = variant.status();
      continue;
    }
    // Launch order that no proof allows is the programmatic form again.
    if (style == plan::Style::kLaunchOrder &&
        (*variant)->rewritten.summary.launch_order == 0 && !variants_.empty()) {
      Drop(variant->get());
      continue;
    }
    variants_.push_back(*std::move(variant));
  }
  if (!variants_.empty()) return absl::OkStatus();
  return why.ok() ? absl::UnimplementedError("no form to try") : why;
}

// ---- trials -----------------------------------------------------------------

bool LiveGraph::WaitUntilIdle() {
  CUcontext context = nullptr;
  CUevent event = nullptr;
  if (tools_.record_event == nullptr || driver_.EventQuery == nullptr ||
      driver_.CtxGetCurrent(&context) != CUDA_SUCCESS ||
      driver_.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return driver_.CtxSynchronize() == CUDA_SUCCESS;
  }
  bool idle = false;
  const CUresult recorded = tools_.record_event(context, event);
  if (recorded == CUDA_SUCCESS) {
    // Polled, because work on the device may wait for a thread of the program
    // that the gate holds back.
    const auto deadline = Clock::now() + kIdlePatience;
    CUresult result = CUDA_ERROR_NOT_READY;
    while ((result = driver_.EventQuery(event)) == CUDA_ERROR_NOT_READY &&
           Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    idle = result == CUDA_SUCCESS;
  } else if (recorded == CUDA_ERROR_NOT_SUPPORTED) {
    idle = driver_.CtxSynchronize() == CUDA_SUCCESS;
  }
  driver_.EventDestroy(event);
  return idle;
}

CUresult LiveGraph::RunAndWait(CUgraphExec exec, CUstream stream) {
  const CUresult result = driver_.GraphLaunch(exec, stream);
  if (result != CUDA_SUCCESS) return result;
  return driver_.StreamSynchronize(stream);
}

absl::Status LiveGraph::Verify(StateKeeper* keeper, CUstream stream,
                               CUresult* program_result) {
  // The launch that the program asked for.
  *program_result = RunAndWait(exec_, stream);
  if (absl::Status status = driver_.Check(*program_result, "cuGraphLaunch");
      !status.ok()) {
    return status;
  }
  if (absl::Status status = keeper->KeepResult(); !status.ok()) return status;
  // The program against itself: what differs is not the rewriting's fault.
  if (absl::Status status = keeper->Restore(); !status.ok()) return status;
  if (absl::Status status =
          driver_.Check(RunAndWait(exec_, stream), "cuGraphLaunch(again)");
      !status.ok()) {
    return status;
  }
  if (absl::Status status = keeper->FindUnrepeatable(); !status.ok()) {
    return status;
  }
  report_.unrepeatable_chunks =
      std::max(report_.unrepeatable_chunks, keeper->unrepeatable_chunks());
  report_.written_chunks = keeper->written_chunks();
  for (auto& variant : variants_) {
    if (absl::Status status = keeper->Restore(); !status.ok()) return status;
    if (absl::Status status = driver_.Check(RunAndWait(variant->exec, stream),
                                            "cuGraphLaunch(rewritten)");
        !status.ok()) {
      return status;
    }
    std::string difference;
    absl::StatusOr<bool> equal = keeper->EqualsResult(&difference);
    if (!equal.ok()) return equal.status();
    if (!*equal) {
      absl::StatusOr<bool> excused = IsExcused(*variant, keeper, stream);
      if (!excused.ok()) return excused.status();
      if (*excused) continue;
      report_.notes.push_back(
          absl::StrCat(rewrite::StyleName(variant->rewritten.summary.style),
                       " gave another result at ", difference));
      record::Log(record::LogLevel::kWarn,
                  absl::StrCat("graph ", report_.graph, ": ",
                               report_.notes.back(), "; not used"));
      Drop(variant.get());
    }
  }
  variants_.erase(std::remove_if(variants_.begin(), variants_.end(),
                                 [](const auto& variant) {
                                   return variant->exec == nullptr;
                                 }),
                  variants_.end());
  return absl::OkStatus();
}

// A variant gave another result than the program's own graph. Is that because
// the program is not repeatable itself? Only if its own graph is seen to differ
// from itself, about as often.
absl::StatusOr<bool> LiveGraph::IsExcused(const Variant& variant,
                                          StateKeeper* keeper,
                                          CUstream stream) {
  constexpr int kMostRounds = 60;
  constexpr int kEnough = 3;
  int own = 0;
  int rewritten = 1;
  int rounds = 0;
  std::vector<std::set<uint64_t>> places = {keeper->differences()};
  std::set<uint64_t> own_places;
  for (; rounds < kMostRounds && own < kEnough; ++rounds) {
    for (const bool is_own : {true, false}) {
      if (absl::Status status = keeper->Restore(); !status.ok()) return status;
      if (absl::Status status =
              driver_.Check(RunAndWait(is_own ? exec_ : variant.exec, stream),
                            "cuGraphLaunch(once more)");
          !status.ok()) {
        return status;
      }
      std::string difference;
      absl::StatusOr<bool> equal = keeper->EqualsResult(&difference);
      if (!equal.ok()) return equal.status();
      if (*equal) continue;
      ++(is_own ? own : rewritten);
      if (is_own) {
        own_places.insert(keeper->differences().begin(),
                          keeper->differences().end());
      } else {
        places.push_back(keeper->differences());
      }
    }
  }
  // Runs that differ where the program's own graph was never seen to.
  const auto elsewhere = std::count_if(
      places.begin(), places.end(), [&own_places](const auto& differences) {
        return !std::includes(own_places.begin(), own_places.end(),
                              differences.begin(), differences.end());
      });
  report_.unrepeatable_runs += static_cast<uint64_t>(own);
  const bool excused = own > 0 && rewritten <= 2 * own + 2 && elsewhere <= own;
  report_.notes.push_back(absl::StrCat(
      "of ", rounds, " more launches of each form, ", own,
      " of the program's own graph and ", rewritten - 1,
      " rewritten ones differed: ",
      excused ? "the program is not repeatable itself" : "not excused"));
  return excused;
}

absl::Status LiveGraph::Time(StateKeeper* keeper, CUstream stream) {
  CUevent begin = nullptr;
  CUevent end = nullptr;
  struct Events {
    const device::Driver& driver;
    CUevent& begin;
    CUevent& end;
    ~Events() {
      if (begin != nullptr) driver.EventDestroy(begin);
      if (end != nullptr) driver.EventDestroy(end);
    }
  } events{driver_, begin, end};
  absl::Status status = driver_.Check(
      driver_.EventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate");
  if (!status.ok()) return status;
  status = driver_.Check(driver_.EventCreate(&end, CU_EVENT_DEFAULT),
                         "cuEventCreate");
  if (!status.ok()) return status;
  std::vector<CUgraphExec> forms = {exec_};
  for (const auto& variant : variants_) forms.push_back(variant->exec);
  std::vector<std::vector<double>> times(forms.size());
  for (int round = 0; round < kTimingRounds; ++round) {
    for (size_t form = 0; form < forms.size(); ++form) {
      status = keeper->Restore();
      if (!status.ok()) return status;
      float milliseconds = 0;
      CUresult result = driver_.EventRecord(begin, stream);
      if (result == CUDA_SUCCESS) {
        result = driver_.GraphLaunch(forms[form], stream);
      }
      if (result == CUDA_SUCCESS) result = driver_.EventRecord(end, stream);
      if (result == CUDA_SUCCESS) result = driver_.EventSynchronize(end);
      if (result == CUDA_SUCCESS) {
        result = driver_.EventElapsedTime(&milliseconds, begin, end);
      }
      status = driver_.Check(result, "timing a launch");
      if (!status.ok()) return status;
      times[form].push_back(milliseconds * 1000.0);
    }
  }
  serial_us_ = Median(times[0]);
  for (size_t i = 0; i < variants_.size(); ++i) {
    variants_[i]->median_us = Median(times[i + 1]);
  }
  return absl::OkStatus();
}

// Keeps the fastest variant, if it is worth it.
void LiveGraph::Choose() {
  if (variants_.empty()) return;
  std::sort(
      variants_.begin(), variants_.end(),
      [](const auto& a, const auto& b) { return a->median_us < b->median_us; });
  for (size_t i = 1; i < variants_.size(); ++i) {
    report_.notes.push_back(
        absl::StrCat(rewrite::StyleName(variants_[i]->rewritten.summary.style),
                     " took ", variants_[i]->median_us, " us"));
    Drop(variants_[i].get());
  }
  variants_.resize(1);
  const rewrite::RewriteSummary& summary = variants_[0]->rewritten.summary;
  report_.serial_us = serial_us_;
  report_.rewritten_us = variants_[0]->median_us;
  report_.patched = summary.patched;
  report_.converted = summary.converted;
  report_.launch_order = summary.launch_order;
  report_.style = std::string(rewrite::StyleName(summary.style));
  report_.notes.insert(report_.notes.end(), summary.notes.begin(),
                       summary.notes.end());
}

CUresult LiveGraph::Trial(CUstream stream) {
  const auto start = Clock::now();
  if (!WaitUntilIdle()) {
    if (++attempts_ >= kMaxAttempts) {
      KeepOriginal("the device was never idle, so it could not be tried");
    }
    return driver_.GraphLaunch(exec_, stream);
  }
  if (!built_) {
    built_ = true;
    absl::Status status = Build();
    report_.build_ms = Milliseconds(start);
    if (!status.ok()) {
      KeepOriginal(std::string(status.message()));
      return driver_.GraphLaunch(exec_, stream);
    }
  }
  const auto trial_start = Clock::now();
  uint64_t limit = tools_.options->verify_bytes;
  if (limit == 0) {
    size_t free = 0;
    size_t total = 0;
    if (driver_.MemGetInfo(&free, &total) == CUDA_SUCCESS) {
      limit = free / 10 * 9;
    }
  }
  absl::StatusOr<std::vector<MemoryRange>> ranges =
      tools_.reachable(*model_, limit);
  absl::StatusOr<ChunkKernels> kernels = ChunkKernels::Load(driver_);
  absl::Status status = ranges.ok() ? kernels.status() : ranges.status();
  CUstream own = nullptr;
  if (status.ok()) {
    status = driver_.Check(driver_.StreamCreate(&own, CU_STREAM_NON_BLOCKING),
                           "cuStreamCreate");
  }
  absl::StatusOr<std::unique_ptr<StateKeeper>> keeper =
      status.ok() ? absl::UnknownError("") : status;
  if (status.ok()) {
    keeper =
        StateKeeper::Save(driver_, *kernels, *std::move(ranges), limit, own);
  }
  CUresult result = CUDA_SUCCESS;
  if (!keeper.ok()) {
    KeepOriginal(
        absl::StrCat("not verified: ", std::string(keeper.status().message())));
    result = driver_.GraphLaunch(exec_, stream);
  } else {
    report_.saved_bytes = (*keeper)->bytes();
    const bool first = report_.verified_launches == 0;
    CUresult program_result = CUDA_SUCCESS;
    status = Verify(keeper->get(), stream, &program_result);
    if (status.ok() && first && !variants_.empty()) {
      status = Time(keeper->get(), stream);
      if (status.ok()) Choose();
    }
    ++report_.verified_launches;
    if (program_result != CUDA_SUCCESS) {
      // The program's own launch failed; the error is the program's to see.
      result = program_result;
      KeepOriginal("the program's own launch failed");
    } else if (!(*keeper)->has_result()) {
      // The one launch that was asked for has happened, and nothing else.
      KeepOriginal(
          absl::StrCat("not verified: ", std::string(status.message())));
    } else {
      // As if nothing had happened: the state before, and one launch.
      const absl::Status restored = (*keeper)->RestoreAll();
      result = driver_.GraphLaunch(exec_, stream);
      if (result == CUDA_SUCCESS) result = driver_.StreamSynchronize(stream);
      if (!restored.ok() && status.ok()) status = restored;
      report_.trial_ms += Milliseconds(trial_start);
      if (!status.ok()) {
        KeepOriginal(
            absl::StrCat("not verified: ", std::string(status.message())));
      } else if (variants_.empty()) {
        KeepOriginal("no form gave the same result");
      } else if (variants_[0]->median_us * tools_.options->least_gain >
                 serial_us_) {
        KeepOriginal("not faster");
      } else if (report_.verified_launches >=
                 static_cast<uint32_t>(tools_.options->verify_launches)) {
        Settle(variants_[0]->exec, "rewritten");
      }
    }
  }
  if (keeper.ok()) keeper->reset();
  if (own != nullptr) driver_.StreamDestroy(own);
  if (kernels.ok()) driver_.ModuleUnload(kernels->module);
  return result;
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

// ---- changes by the program
// ---------------------------------------------------

void LiveGraph::UpdatedFrom(CUgraph copy) {
  // Nodes are named after the graph of the instantiation for ever; the new
  // graph gives values alone.
  struct Owned {
    const device::Driver& driver;
    CUgraph graph;
    ~Owned() { driver.GraphDestroy(graph); }
  } owned{driver_, copy};
  if (settled() == exec_) return;
  if (!built_) {
    KeepOriginal("updated as a whole before it was launched");
    return;
  }
  for (auto& variant : variants_) {
    absl::StatusOr<std::unique_ptr<Variant>> next =
        BuildVariant(copy, variant->rewritten.summary.style,
                     /*instantiate=*/false);
    CUgraphExecUpdateResultInfo info{};
    absl::Status status = next.status();
    if (status.ok() &&
        ((*next)->rewritten.prologue != variant->rewritten.prologue ||
         (*next)->rewritten.edges != variant->rewritten.edges)) {
      status =
          absl::FailedPreconditionError("it is to be rewritten another way");
    }
    if (status.ok()) {
      status = driver_.Check(
          driver_.GraphExecUpdate(variant->exec, (*next)->graph, &info),
          "cuGraphExecUpdate(rewritten)");
    }
    if (next.ok()) Drop(next->get());
    if (!status.ok()) {
      KeepOriginal(absl::StrCat("an update could not be mirrored: ",
                                std::string(status.message())));
      return;
    }
  }
  if (settled() != nullptr) return;
  // Trials compare against the program's own executable, which has the new
  // values; what they may write is read from the new graph.
  absl::StatusOr<rewrite::GraphModel> model =
      rewrite::ReadGraph(driver_, copy, tools_.code);
  if (!model.ok()) {
    KeepOriginal(std::string(model.status().message()));
    return;
  }
  model_ = std::make_unique<rewrite::GraphModel>(*std::move(model));
}

void LiveGraph::Mirror(
    CUgraphNode node, const char* call,
    const std::function<CUresult(CUgraphNode)>& on_copy,
    const std::function<CUresult(Variant&, CUgraphNode)>& on_variant) {
  if (settled() == exec_) return;
  CUgraphNode copied = nullptr;
  CUresult result = driver_.GraphNodeFindInClone(&copied, node, copy_);
  if (result == CUDA_SUCCESS) result = on_copy(copied);
  for (auto& variant : variants_) {
    CUgraphNode in_variant = nullptr;
    if (result == CUDA_SUCCESS) {
      result =
          driver_.GraphNodeFindInClone(&in_variant, copied, variant->graph);
    }
    if (result == CUDA_SUCCESS) result = on_variant(*variant, in_variant);
  }
  if (result != CUDA_SUCCESS) {
    KeepOriginal(absl::StrCat(call, " could not be mirrored (",
                              driver_.ErrorName(result), ")"));
  }
}

bool LiveGraph::SameResources(const Variant& variant, CUgraphNode node,
                              const CUDA_KERNEL_NODE_PARAMS& params) {
  CUDA_KERNEL_NODE_PARAMS before{};
  if (driver_.GraphKernelNodeGetParams(node, &before) != CUDA_SUCCESS) {
    return false;
  }
  const auto index = variant.index.find(reinterpret_cast<uint64_t>(node));
  absl::StatusOr<CUfunction> function = rewrite::FunctionOf(driver_, params);
  return index != variant.index.end() && function.ok() &&
         *function == variant.functions[index->second] &&
         before.gridDimX == params.gridDimX &&
         before.gridDimY == params.gridDimY &&
         before.gridDimZ == params.gridDimZ &&
         before.blockDimX == params.blockDimX &&
         before.blockDimY == params.blockDimY &&
         before.blockDimZ == params.blockDimZ &&
         before.sharedMemBytes == params.sharedMemBytes;
}

void LiveGraph::KernelChanged(CUgraphNode node,
                              const CUDA_KERNEL_NODE_PARAMS& params) {
  Mirror(
      node, "cuGraphExecKernelNodeSetParams",
      [&](CUgraphNode copied) {
        const CUresult result =
            driver_.GraphKernelNodeSetParams(copied, &params);
        if (result == CUDA_SUCCESS && model_ != nullptr) {
          // Trials to come must see what this launch may write now.
          const auto index =
              model_->index.find(reinterpret_cast<uint64_t>(copied));
          absl::StatusOr<CUfunction> function =
              rewrite::FunctionOf(driver_, params);
          // After an update as a whole the model is that of another graph.
          if (index == model_->index.end() || !function.ok()) {
            return CUDA_ERROR_NOT_FOUND;
          }
          absl::StatusOr<rewrite::OwnedLaunch> launch =
              rewrite::OwnedLaunch::Copy(driver_, *function, params);
          if (!launch.ok()) return CUDA_ERROR_INVALID_VALUE;
          model_->nodes[index->second].launch = *std::move(launch);
        }
        return result;
      },
      [&](Variant& variant, CUgraphNode in_variant) {
        // Launch order rests on a proof about the blocks of each launch.
        if (variant.rewritten.summary.launch_order > 0 &&
            !SameResources(variant, in_variant, params)) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        absl::StatusOr<CUfunction> function =
            rewrite::FunctionOf(driver_, params);
        if (!function.ok()) return CUDA_ERROR_INVALID_VALUE;
        const auto index =
            variant.index.find(reinterpret_cast<uint64_t>(in_variant));
        if (index == variant.index.end()) return CUDA_ERROR_NOT_FOUND;
        const cubin::Prologue prologue =
            variant.rewritten.prologue[index->second];
        CUfunction twin = *function;
        if (prologue != cubin::Prologue::kNone) {
          absl::StatusOr<rewrite::KernelSource> source =
              tools_.code->Find(*function);
          if (!source.ok()) return CUDA_ERROR_NOT_FOUND;
          absl::StatusOr<CUfunction> patched =
              tools_.modules->Get(*source, prologue, *function);
          if (!patched.ok()) return CUDA_ERROR_NOT_FOUND;
          twin = *patched;
        }
        CUDA_KERNEL_NODE_PARAMS changed = params;
        changed.func = twin;
        changed.kern = nullptr;
        return driver_.GraphExecKernelNodeSetParams(variant.exec, in_variant,
                                                    &changed);
      });
}

// Trials to come must keep what the node writes now.
void LiveGraph::SetPointers(CUgraphNode copied,
                            std::vector<uint64_t> pointers) {
  if (model_ == nullptr) return;
  const auto index = model_->index.find(reinterpret_cast<uint64_t>(copied));
  if (index != model_->index.end()) {
    model_->nodes[index->second].pointers = std::move(pointers);
  }
}

void LiveGraph::MemcpyChanged(CUgraphNode node, const CUDA_MEMCPY3D& params,
                              CUcontext context) {
  Mirror(
      node, "cuGraphExecMemcpyNodeSetParams",
      [&](CUgraphNode copied) {
        SetPointers(copied, {params.srcDevice, params.dstDevice,
                             reinterpret_cast<uint64_t>(params.srcHost),
                             reinterpret_cast<uint64_t>(params.dstHost)});
        return driver_.GraphMemcpyNodeSetParams(copied, &params);
      },
      [&](Variant& variant, CUgraphNode in_variant) {
        return driver_.GraphExecMemcpyNodeSetParams(variant.exec, in_variant,
                                                    &params, context);
      });
}

void LiveGraph::MemsetChanged(CUgraphNode node,
                              const CUDA_MEMSET_NODE_PARAMS& params,
                              CUcontext context) {
  Mirror(
      node, "cuGraphExecMemsetNodeSetParams",
      [&](CUgraphNode copied) {
        SetPointers(copied, {params.dst});
        return driver_.GraphMemsetNodeSetParams(copied, &params);
      },
      [&](Variant& variant, CUgraphNode in_variant) {
        return driver_.GraphExecMemsetNodeSetParams(variant.exec, in_variant,
                                                    &params, context);
      });
}

void LiveGraph::EnabledChanged(CUgraphNode node, unsigned int enabled) {
  // A disabled kernel neither waits nor triggers, which the proof counts on.
  (void)node;
  if (settled() == exec_) return;
  KeepOriginal(absl::StrCat("a node was ", enabled != 0 ? "en" : "dis",
                            "abled by cuGraphNodeSetEnabled"));
}

}  // namespace heddle::live
