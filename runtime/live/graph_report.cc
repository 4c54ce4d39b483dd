// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/graph_report.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/record/log.h"

namespace heddle::live {

std::string GraphReport::ToLine() const {
  std::string line = absl::StrFormat(
      "graph %d: %d nodes, %d of %d kernels patched, %d of %d edges converted",
      graph, nodes, patched, kernels, converted, edges);
  if (!style.empty()) {
    absl::StrAppend(&line, ", ", style, ", verified ", verified_launches,
                    verified_launches == 1 ? " time" : " times");
    if (unrepeatable_chunks > 0 || unrepeatable_runs > 0) {
      absl::StrAppend(&line, " (the program's own graph is not repeatable)");
    }
  }
  if (rewritten_us > 0) {
    absl::StrAppendFormat(&line, ", %.1f -> %.1f us (x%.3f)", serial_us,
                          rewritten_us, serial_us / rewritten_us);
  }
  absl::StrAppend(&line, ": ", outcome);
  return line;
}

std::string GraphReport::ToJson() const {
  const nlohmann::json json = {{"pid", getpid()},
                               {"graph", graph},
                               {"nodes", nodes},
                               {"kernels", kernels},
                               {"patched", patched},
                               {"edges", edges},
                               {"converted", converted},
                               {"launch_order", launch_order},
                               {"level", level},
                               {"branches", branches},
                               {"style", style},
                               {"outcome", outcome},
                               {"verified_launches", verified_launches},
                               {"saved_bytes", saved_bytes},
                               {"written_chunks", written_chunks},
                               {"unrepeatable_chunks", unrepeatable_chunks},
                               {"unrepeatable_runs", unrepeatable_runs},
                               {"serial_us", serial_us},
                               {"rewritten_us", rewritten_us},
                               {"build_ms", build_ms},
                               {"trial_ms", trial_ms},
                               {"analysis_ms", analysis_ms},
                               {"notes", notes}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

void Publish(const GraphReport& report, const std::string& path) {
  record::Log(record::LogLevel::kInfo, report.ToLine());
  for (const std::string& note : report.notes) {
    record::Log(record::LogLevel::kDebug,
                absl::StrCat("graph ", report.graph, ": ", note));
  }
  if (path.empty()) return;
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  const std::string json = report.ToJson();
  // One write: lines of several processes do not mix.
  [[maybe_unused]] const ssize_t written =
      write(file, json.data(), json.size());
  close(file);
}

}  // namespace heddle::live
