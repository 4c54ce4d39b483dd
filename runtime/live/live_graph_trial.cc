// SPDX-License-Identifier: Apache-2.0
// Trials: a launch of the program, made in every form from the same memory,
// compared and timed.

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/live/live_graph.h"
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

}  // namespace

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
  if (report_.verified_launches == 0) {
    absl::Status status = BuildBranches(keeper, stream);
    if (!status.ok()) return status;
  }
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
      report_.notes.push_back(absl::StrCat(
          variant->form.Name(), " gave another result at ", difference));
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

void LiveGraph::ReportOf(const Variant& variant) {
  const rewrite::RewriteSummary& summary = variant.rewritten.summary;
  report_.serial_us = serial_us_;
  report_.rewritten_us = variant.median_us;
  report_.patched = summary.patched;
  report_.edges = summary.edges;
  report_.converted = summary.converted;
  report_.launch_order = summary.launch_order;
  report_.level = std::string(plan::LevelName(variant.form.level));
  report_.branches = variant.form.branches;
  report_.style = variant.form.Name();
}

// Keeps the fastest variant, and if that one rests on what the nodes touch, the
// fastest of those that do not.
void LiveGraph::Choose() {
  if (variants_.empty()) return;
  std::sort(
      variants_.begin(), variants_.end(),
      [](const auto& a, const auto& b) { return a->median_us < b->median_us; });
  std::vector<std::unique_ptr<Variant>> kept;
  for (auto& variant : variants_) {
    const bool fallback =
        kept.size() == 1 && kept[0]->rests_on_effects() &&
        !variant->rests_on_effects() &&
        variant->median_us * tools_.options->least_gain <= serial_us_;
    if (!kept.empty()) {
      report_.notes.push_back(absl::StrCat(variant->form.Name(), " took ",
                                           variant->median_us, " us"));
    }
    if (kept.empty() || fallback) {
      kept.push_back(std::move(variant));
    } else {
      Drop(variant.get());
    }
  }
  variants_ = std::move(kept);
  const rewrite::RewriteSummary& summary = variants_[0]->rewritten.summary;
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
        ReportOf(*variants_[0]);
        KeepOriginal("not faster");
      } else if (report_.verified_launches >=
                 static_cast<uint32_t>(tools_.options->verify_launches)) {
        ReportOf(*variants_[0]);
        Settle(variants_[0]->exec, "rewritten");
      }
    }
  }
  if (keeper.ok()) keeper->reset();
  if (own != nullptr) driver_.StreamDestroy(own);
  if (kernels.ok()) driver_.ModuleUnload(kernels->module);
  return result;
}

}  // namespace heddle::live
