// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/report_entry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tools/graph_reports.h"

namespace heddle::tools {
namespace {

void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "the report reader broke a promise: %s\n", what);
  std::abort();
}

}  // namespace

void FuzzGraphReports(absl::string_view text) {
  const auto reports = ParseGraphReports(text, "input");
  if (!reports.ok()) {
    Require(absl::IsInvalidArgument(reports.status()),
            "the status is the documented one");
    return;
  }
  const auto lines =
      static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  Require(reports->size() == lines || reports->size() == lines + 1,
          "every line is a report, the last perhaps");
  const std::string table = GraphReportsToText(*reports);
  Require(!table.empty() && table.back() == '\n', "the table has lines");
}

}  // namespace heddle::tools
