// SPDX-License-Identifier: Apache-2.0
// libheddle_runtime.so's entry: what the interposer calls at the program's
// first CUDA call.

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/device/driver.h"
#include "runtime/live/hooks.h"
#include "runtime/live/optimizer.h"
#include "runtime/live/options.h"
#include "runtime/record/doctor.h"
#include "runtime/record/hook_table.h"
#include "runtime/record/hooks.h"
#include "runtime/record/log.h"
#include "runtime/record/measure.h"
#include "runtime/record/options.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

const HeddleInterposer* g_interposer = nullptr;

std::string DoctorPath() {
  const char* pattern = std::getenv("HEDDLE_DOCTOR");
  return pattern == nullptr ? "" : ExpandPath(pattern, RankFromEnvironment());
}

void AtExit() {
  if (Recorder* recorder = Recorder::Current()) recorder->Finish("");
  if (live::Optimizer* optimizer = live::Optimizer::Get()) optimizer->Finish();
  if (const std::string path = DoctorPath(); !path.empty()) {
    if (absl::Status s = WriteDoctorReport(
            *g_interposer, path,
            [](const char* symbol) { return IsHooked(symbol); });
        !s.ok()) {
      Log(LogLevel::kError, absl::StrCat("doctor: ", s.message()));
    }
  }
}

void AfterForkChild() {
  live::Optimizer::LeaveChild();
  if (Recorder* recorder = Recorder::Current()) recorder->LeaveToParent();
}

void RangePush(uint64_t domain, const char* name) {
  WithRecorder([&](Recorder& recorder) {
    recorder.RangePush(domain, name == nullptr ? "" : name);
  });
}
void RangePop(uint64_t domain) {
  WithRecorder([&](Recorder& recorder) { recorder.RangePop(domain); });
}
void RangeOther(fb::RangeOp op, uint64_t domain, uint64_t id,
                const char* name) {
  WithRecorder([&](Recorder& recorder) {
    recorder.WriteRange(op, domain, id, name == nullptr ? "" : name);
  });
}

// 0 active, 1 nothing to do, -1 error.
int Attach(const HeddleInterposer* interposer, HeddleRuntime* runtime) {
  if (interposer->abi_version != HEDDLE_HOOK_ABI_VERSION ||
      interposer->struct_size < sizeof(HeddleInterposer) ||
      runtime->struct_size < sizeof(HeddleRuntime)) {
    Log(LogLevel::kError,
        "libheddle_preload.so and libheddle_runtime.so are of different "
        "versions; heddle is off. Install both from one build.");
    return -1;
  }
  g_interposer = interposer;
  absl::StatusOr<RecordOptions> options = OptionsFromEnvironment();
  if (!options.ok()) {
    Log(LogLevel::kError,
        absl::StrCat(options.status().message(), "; not recording"));
    return -1;
  }
  absl::StatusOr<live::LiveOptions> live_options =
      live::LiveOptionsFromEnvironment();
  if (!live_options.ok()) {
    Log(LogLevel::kError,
        absl::StrCat(live_options.status().message(), "; heddle is off"));
    return -1;
  }
  const bool doctor = !DoctorPath().empty();
  if (doctor) interposer->enable_counting(1);
  const bool optimize = live_options->level > 0;
  if (options->trace_path.empty() && !optimize) {
    if (!doctor) return 1;
    runtime->at_exit = AtExit;
    return 0;
  }
  absl::StatusOr<device::Driver> driver = device::Driver::FromResolver(
      [interposer](const char* symbol) { return interposer->real(symbol); },
      "the CUDA driver");
  absl::Status status = driver.status();
  if (status.ok() && optimize) {
    live::Optimizer::Start(*std::move(live_options), *driver,
                           reinterpret_cast<live::CtxRecordEventFn>(
                               interposer->real("cuCtxRecordEvent")));
    InstallHooksBelow(interposer, live::AllHooks());
    runtime->at_exit = AtExit;
    runtime->after_fork_child = AfterForkChild;
    runtime->own_graphs = [](int own) {
      live::Optimizer* optimizer = live::Optimizer::Get();
      return optimizer == nullptr ? -1 : optimizer->UseOwnGraphs(own != 0);
    };
    if (options->trace_path.empty()) return 0;
  }
  if (status.ok()) {
    status = Recorder::Start(*options, interposer, *std::move(driver));
  }
  if (!status.ok()) {
    Log(LogLevel::kError, absl::StrCat("not recording: ", status.message()));
    return -1;
  }
  InstallHooks(interposer);
  runtime->at_exit = AtExit;
  runtime->after_fork_child = AfterForkChild;
  runtime->nvtx_push = RangePush;
  runtime->nvtx_pop = RangePop;
  runtime->nvtx_start = [](uint64_t domain, uint64_t id, const char* name) {
    RangeOther(fb::RangeOp::kStart, domain, id, name);
  };
  runtime->nvtx_end = [](uint64_t domain, uint64_t id) {
    RangeOther(fb::RangeOp::kEnd, domain, id, nullptr);
  };
  runtime->nvtx_mark = [](uint64_t domain, const char* name) {
    RangeOther(fb::RangeOp::kMark, domain, 0, name);
  };
  runtime->measure = Measure;
  return 0;
}

}  // namespace
}  // namespace heddle::record

extern "C" __attribute__((visibility("default"))) int heddle_runtime_attach(
    const HeddleInterposer* interposer, HeddleRuntime* runtime) {
  try {
    return heddle::record::Attach(interposer, runtime);
  } catch (...) {
    heddle::record::Log(heddle::record::LogLevel::kError,
                        "internal error while starting; heddle is off");
    return -1;
  }
}
