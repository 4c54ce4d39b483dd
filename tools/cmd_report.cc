// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "tools/command.h"
#include "tools/graph_reports.h"

namespace heddle::tools {
namespace {

absl::StatusOr<int> Run(Invocation& call) {
  bool json = false;
  call.flags().Bool("json", &json, "print one JSON array");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1024})) {
    return *exit;
  }
  std::vector<nlohmann::json> all;
  for (const std::string& path : call.positional()) {
    absl::StatusOr<std::vector<nlohmann::json>> reports =
        ReadGraphReports(path);
    if (!reports.ok()) return reports.status();
    all.insert(all.end(), reports->begin(), reports->end());
  }
  const std::string text =
      json ? nlohmann::json(all).dump(
                 2, ' ', false, nlohmann::json::error_handler_t::replace) +
                 "\n"
           : GraphReportsToText(all);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

}  // namespace

const Command& ReportCommand() {
  static constexpr Command kCommand = {
      .name = "report",
      .synopsis = "show what became of the graphs of a program",
      .arguments = "[flags] FILE...",
      .help =
          "FILE is what `heddle run --report FILE` (or HEDDLE_REPORT) wrote: "
          "one line of JSON for every CUDA graph that the program "
          "instantiated. The table shows how many kernels got a prologue, how "
          "many edges were converted, both times (medians, interleaved, from "
          "the same memory), on how many launches the two forms were compared, "
          "and which of them is used or why the program's own was kept.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
