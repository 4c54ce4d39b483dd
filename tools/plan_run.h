// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_PLAN_RUN_H_
#define HEDDLE_TOOLS_PLAN_RUN_H_

// The work of `heddle plan`, and what `heddle replay --plan` needs of it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "nlohmann/json_fwd.hpp"
#include "runtime/device/driver.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/plan_file.h"
#include "runtime/replay/program.h"
#include "tools/replay_run.h"

namespace heddle::tools {

struct PlanRunOptions {
  plan::Level level = plan::Level::kO2;
  plan::Style style = plan::Style::kProgrammatic;
  uint32_t max_branches = 2;
  std::string durations;  // a file; empty: measure, or all equal
  bool measure = false;   // on device `device`
  // Plan for a device of this machine, by ordinal; unset: for the recorded one.
  std::optional<int> device;
  bool explain = false;
  std::function<void(const std::string&)> progress;
};

struct PlanRunResult {
  std::string trace;
  ChosenStep step;
  plan::PlanFile file;
  std::vector<std::string> names;  // by operation
  // If asked for: one for each operation but the first.
  std::vector<plan::Boundary> boundaries;
};

// Errors: what reading the trace, its images and the durations say, and the
// device if it is to measure.
absl::StatusOr<PlanRunResult> RunPlan(const trace::Reader& reader,
                                      const ChosenStep& step,
                                      const PlanRunOptions& options);

std::string PlanToText(const PlanRunResult& result);
nlohmann::json PlanToJson(const PlanRunResult& result);

// A plan file that fits a step and a device, with what its operations touch.
struct LoadedPlan {
  plan::PlanFile file;
  std::vector<plan::Effects> effects;  // O2 alone
  std::vector<std::string> notes;
};

// FailedPrecondition: the plan was made for another trace, step or device.
absl::StatusOr<LoadedPlan> LoadPlan(const std::string& path,
                                    const trace::Reader& reader,
                                    const replay::Program& program,
                                    const replay::StepBounds& bounds,
                                    const device::Driver& driver,
                                    CUdevice device);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_PLAN_RUN_H_
