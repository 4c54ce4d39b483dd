// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_CRITICAL_PATH_H_
#define HEDDLE_RUNTIME_PLAN_CRITICAL_PATH_H_

// How fast operations could be if nothing but their order held them back: an
// unbounded device on which each starts when all that it follows have ended.
//
// Durations in any one unit, not negative; with 1 for each, paths are counted
// in operations. Edges as pairs {from, to}, from < to < number of durations,
// those with the same `to` beside each other and in the order of `to`
// (Dependencies::Pairs). Pure functions.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace heddle::plan {

using EdgePairs = absl::Span<const std::pair<uint32_t, uint32_t>>;

struct CriticalPath {
  // The longest path, first operation first: of several that are equally long
  // always the same. Empty if there are no operations.
  std::vector<uint32_t> operations;
  double length = 0;
};

CriticalPath FindCriticalPath(absl::Span<const double> durations,
                              EdgePairs edges);

struct ParallelismProfile {
  // Time during which exactly k operations run, by k; [0] is 0.
  std::vector<double> time_with;
  double sum = 0;     // of all durations
  double length = 0;  // of the whole
  // sum / length; 1 if nothing takes time.
  double Average() const { return length > 0 ? sum / length : 1; }
};

ParallelismProfile ProfileParallelism(absl::Span<const double> durations,
                                      EdgePairs edges);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_CRITICAL_PATH_H_
