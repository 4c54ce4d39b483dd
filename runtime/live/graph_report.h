// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_GRAPH_REPORT_H_
#define HEDDLE_RUNTIME_LIVE_GRAPH_REPORT_H_

// What became of one graph of the program: a log line, and a JSON line for
// `heddle report`.

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::live {

struct GraphReport {
  uint64_t graph = 0;  // number within the process, from 1
  uint32_t nodes = 0;
  uint32_t kernels = 0;
  uint32_t patched = 0;
  uint32_t edges = 0;
  uint32_t converted = 0;
  uint32_t launch_order = 0;
  uint32_t branches = 1;
  std::string level;    // "O1", "O2"
  std::string style;    // the form; empty: the program's own graph is used
  std::string outcome;  // "rewritten", or why not
  uint32_t verified_launches = 0;
  uint64_t saved_bytes = 0;
  uint64_t written_chunks = 0;
  uint64_t unrepeatable_chunks = 0;
  // Launches of the program's own graph that differed from each other, of those
  // made because a rewritten one differed.
  uint64_t unrepeatable_runs = 0;
  double serial_us = 0;  // medians; 0 = not measured
  double rewritten_us = 0;
  double build_ms = 0;  // reading, patching, instantiating
  double trial_ms = 0;  // verifying and timing, all launches
  double analysis_ms = 0;  // finding out what its nodes touch
  std::vector<std::string> notes;

  std::string ToLine() const;  // without newline
  std::string ToJson() const;  // one line, with newline
};

// Logs the line at info level and appends the JSON to `path` (if not empty),
// whole lines at a time.
void Publish(const GraphReport& report, const std::string& path);

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_GRAPH_REPORT_H_
