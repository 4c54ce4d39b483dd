// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_GRAPH_REPORTS_H_
#define HEDDLE_TOOLS_GRAPH_REPORTS_H_

// What became of a program's graphs: the lines that the live optimizer writes
// (HEDDLE_REPORT), read and shown.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace heddle::tools {

// The reports in `path` behind its first `skip` bytes, one JSON object a line.
// NotFound for what cannot be read as a file; else as ParseGraphReports.
absl::StatusOr<std::vector<nlohmann::json>> ReadGraphReports(
    const std::string& path, uint64_t skip = 0);

// The same of a file's content, `name` for messages. A killed program may leave
// half a line at the end, which is left out, unless it is all there is. What
// the runtime does not write is InvalidArgument with the line's number.
absl::StatusOr<std::vector<nlohmann::json>> ParseGraphReports(
    absl::string_view text, absl::string_view name);

// A table, one row a graph, below it the notes on all of them with their
// counts. Graphs that were not timed share a row if they are of one kind.
// `reports` are as ParseGraphReports returns them.
std::string GraphReportsToText(const std::vector<nlohmann::json>& reports);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_GRAPH_REPORTS_H_
