// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPORT_SUMMARY_H_
#define HEDDLE_RUNTIME_REPORT_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/report/activity.h"

namespace heddle::report {

// All activities of one name.
struct NameTotal {
  std::string name;
  ActivityKind kind = ActivityKind::kKernel;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  double share = 0;  // of the sum of all durations
};

// A time in which the device did nothing, between two activities.
struct Gap {
  size_t after = 0;   // index in Timeline::activities: the one that ended last
  size_t before = 0;  // the one that starts next
  uint64_t ns = 0;
};

struct Summary {
  uint64_t span_ns = 0;  // from the first start to the last end
  uint64_t busy_ns = 0;  // in which at least one activity ran
  uint64_t sum_ns = 0;   // of all durations; more than busy_ns: overlap
  uint64_t gap_ns = 0;   // span - busy
  uint64_t kernels = 0;
  std::vector<Gap> gaps;          // longest first
  std::vector<NameTotal> totals;  // most time first
};

// `timeline` must be sorted by start (NumberActivities).
Summary Summarize(const Timeline& timeline);

// "void at::native::vectorized_elementwise_kernel<4, ...>(int, ...)" for a
// mangled name; other names unchanged.
std::string Demangle(const std::string& name);
// At most `width` characters of it: arguments and template arguments go first.
std::string ShortName(const std::string& name, size_t width);

}  // namespace heddle::report

#endif  // HEDDLE_RUNTIME_REPORT_SUMMARY_H_
