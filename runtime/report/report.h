// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPORT_REPORT_H_
#define HEDDLE_RUNTIME_REPORT_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"
#include "runtime/report/activity.h"

namespace heddle::report {

// Wall-clock time of a way to run the step, from events around it.
struct Measurement {
  std::string name;
  double median_us = 0;
  double spread_us = 0;  // half the range of the middle half
  double min_us = 0;
  uint64_t runs = 0;
};

struct Report {
  std::string title;       // "step 12 of llama.htrace"
  std::string conclusion;  // "serial and graph left identical memory ..."
  DeviceProperties device;
  std::vector<Measurement> measurements;
  std::vector<Timeline> timelines;
  std::vector<std::string> notes;
};

// Totals by name, gaps, busy time and span of every timeline. `launches`: also
// every activity in order.
std::string ToText(const Report& report, bool launches);

// The same as data; every activity is in it.
nlohmann::json ToJson(const Report& report);

// Trace-event JSON for chrome://tracing and ui.perfetto.dev: one process a
// timeline, one thread a stream, all starting at 0; argument names and
// categories are those of PyTorch's profiler (Kineto), so that tools which
// read its traces read this one.
nlohmann::json ToChromeTrace(const Report& report);

// A picture of the timelines over one time axis, for a README: one file, no
// scripts, light and dark.
std::string ToSvg(const Report& report);

// Writes the form that the name asks for: .trace.json or .perfetto.json a
// trace, .json data, .svg a picture, .txt text with every launch.
// Errors: InvalidArgument (another extension), and what the file system says.
absl::Status WriteReport(const Report& report, const std::string& path);
// Whether WriteReport knows the extension.
absl::Status CheckReportName(const std::string& path);

// Share of a multiprocessor's warps that the kernel can keep busy, 0 to 100:
// what its blocks leave room for, or as many as the grid has. -1 if the device
// or the kernel is not known well enough.
int EstimatedOccupancy(const DeviceProperties& device,
                       const Activity& activity);

}  // namespace heddle::report

#endif  // HEDDLE_RUNTIME_REPORT_REPORT_H_
