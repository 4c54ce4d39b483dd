// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_PLAN_DURATIONS_H_
#define HEDDLE_TOOLS_PLAN_DURATIONS_H_

// How long each operation of a step takes, from what measured it.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan_file.h"
#include "runtime/replay/program.h"
#include "runtime/report/report.h"

namespace heddle::tools {

// One activity of a serial run, in the order of submission.
struct MeasuredActivity {
  std::string name;  // kernels: mangled
  bool kernel = false;
  double us = 0;
};

// By index of operation; 0 for those that do nothing. FailedPrecondition: the
// activities of `source` are not those of the step.
absl::StatusOr<std::vector<double>> MatchDurations(
    const std::vector<MeasuredActivity>& activities,
    const replay::Program& program, const std::string& source);

std::vector<MeasuredActivity> ActivitiesOf(const report::Timeline& timeline);

// The serial run in a report of `heddle replay --report FILE.json`.
// InvalidArgument: it is none, or has none.
absl::StatusOr<std::vector<MeasuredActivity>> ParseReportDurations(
    const std::string& text, const std::string& name);

// From a report as above, or from a plan (its own durations) of a step with
// the operations `operations`.
absl::StatusOr<std::vector<double>> ReadDurations(
    const std::string& path, const replay::Program& program,
    const std::vector<plan::OperationIdentity>& operations);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_PLAN_DURATIONS_H_
