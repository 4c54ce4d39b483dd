// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_TIMING_H_
#define HEDDLE_RUNTIME_REPLAY_TIMING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/replay/executor.h"
#include "runtime/replay/session.h"

namespace heddle::replay {

struct Timing {
  std::string name;        // of the executor
  std::vector<double> us;  // one value a run, in order
  double median_us = 0;
  double spread_us = 0;  // half the range of the middle half of the runs
  double min_us = 0;
};

// Runs each executor `loop` times, in turn (one run of each, then the next of
// each), after `warm_up` runs that are not counted, and measures the time
// between two events around each run.
//
// Every run starts from the same memory and on an idle device: what the step
// has written (Session::written) is put back before it, outside the measured
// time. Back-to-back runs would overlap at their ends, and a decode step
// would go on to the next token. The caches hold what the restore left there.
absl::StatusOr<std::vector<Timing>> TimeExecutors(
    Session& session, const std::vector<Executor*>& executors, int warm_up,
    int loop);

// How many times as fast as `baseline` the other one is: 1.15 means that it
// takes 1/1.15 of the time.
struct Speedup {
  double ratio = 0;   // of the medians
  double spread = 0;  // half the range of the middle half of the ratios by turn
};
// For timings of one TimeExecutors call. Ratios of runs in the same turn let
// what drifts slowly (clocks, heat) cancel out. All zeros if there is nothing
// to compare.
Speedup CompareTimings(const Timing& baseline, const Timing& other);

// Fills in the statistics of `timing` from its values.
void Summarize(Timing& timing);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_TIMING_H_
