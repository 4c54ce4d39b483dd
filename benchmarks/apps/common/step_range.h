// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_STEP_RANGE_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_STEP_RANGE_H_

#include <nvtx3/nvToolsExt.h>

namespace apps {

// Marks what this thread launches during its life as one step, for profilers.
class StepRange {
 public:
  explicit StepRange(bool enabled) : enabled_(enabled) {
    if (enabled_) nvtxRangePushA("step");
  }
  ~StepRange() {
    if (enabled_) nvtxRangePop();
  }
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;

 private:
  const bool enabled_;
};

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_STEP_RANGE_H_
