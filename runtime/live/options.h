// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_OPTIONS_H_
#define HEDDLE_RUNTIME_LIVE_OPTIONS_H_

// What the program's graphs are to become, from HEDDLE_* environment variables
// (`heddle run` sets them from its flags).

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/overlap.h"
#include "runtime/plan/plan_file.h"

namespace heddle::live {

struct LiveOptions {
  // HEDDLE_OPT=0|1|2. 0: nothing is rewritten; 1: the order of the program's
  // graphs is kept; 2: independent kernels of a graph may run side by side.
  // Without it 0, or 1 if there are plans.
  int level = 0;
  // HEDDLE_PLAN=FILE[,FILE...]: plans to try on the graphs that they fit, by
  // path.
  std::vector<std::pair<std::string, std::shared_ptr<const plan::PlanFile>>>
      plans;
  // HEDDLE_BRANCHES=N[,N...]: most branches that a graph may get at level 2;
  // all are tried, the fastest wins.
  std::vector<uint32_t> branches = {2, 3};
  // HEDDLE_VERIFY=N: how many launches of a graph are run in both forms and
  // compared before the rewritten one is used alone. At least 1.
  int verify_launches = 3;
  // HEDDLE_VERIFY_BYTES (suffixes K, M, G): most device memory to keep aside
  // while comparing; 0 = nine tenths of what is free.
  uint64_t verify_bytes = 0;
  // HEDDLE_LEAST_GAIN: how many times faster than the program's own graph a
  // rewritten one must be to be used. Below 1 also a slower one is (for tests).
  double least_gain = 1.005;
  // HEDDLE_STYLE=auto|programmatic|programmatic-early|launch-order[,...]: forms
  // that are tried; the fastest wins. auto = both programmatic ones. Launch
  // order has to be asked for: the proof that its blocks cannot keep each other
  // off the device (plan/residency.h) counts one such graph at a time, and
  // whether a program runs two at once is not known here.
  std::vector<plan::Style> styles;
  // HEDDLE_REPORT: file to which one JSON line a graph is appended; expanded
  // like HEDDLE_TRACE. Empty = none.
  std::string report_path;
};

// InvalidArgument names the variable, its value and what is allowed, or says
// what is wrong with a plan.
absl::StatusOr<LiveOptions> LiveOptionsFromEnvironment();

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_OPTIONS_H_
