// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/command.h"
#include "tools/graph_reports.h"
#include "tools/run_program.h"

namespace heddle::tools {
namespace {

struct RunFlags {
  int64_t level = 1;
  int64_t verify = 3;
  int64_t verify_bytes = 0;
  std::string style = "auto";
  std::string report;
  std::string log = "warn";
  bool quiet = false;
};

void Declare(RunFlags* options, FlagSet* flags) {
  flags
      ->Int("opt", "N", &options->level,
            "0: nothing is rewritten; 1: order-preserving overlap")
      .Short('O')
      .Int("verify", "N", &options->verify,
           "launches of each graph that are run in both forms and compared "
           "before the rewritten one is used alone")
      .Int("verify-bytes", "BYTES", &options->verify_bytes,
           "most device memory to keep aside meanwhile, e.g. 8G; 0: nine "
           "tenths of what is free")
      .String("style", "STYLE", &options->style,
              "forms to try: auto, or a list of programmatic, "
              "programmatic-early and launch-order")
      .String("report", "FILE", &options->report,
              "one line of JSON a graph, for `heddle report`; %p, %h and %r "
              "become the process id, host and rank")
      .Choice("log", {"error", "warn", "info", "debug"}, &options->log,
              "what the runtime prints while the program runs; info: a line a "
              "graph")
      .Bool("quiet", &options->quiet, "no summary after the program")
      .Short('q');
}

// Absolute, since the program may change directory.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// A file of its own for the summary, removed at the end.
class TemporaryReport {
 public:
  TemporaryReport() {
    const char* folder = std::getenv("TMPDIR");
    path_ = absl::StrCat(folder == nullptr ? "/tmp" : folder,
                         "/heddle-report-XXXXXX");
    const int file = mkstemp(path_.data());
    if (file < 0) {
      path_.clear();
    } else {
      close(file);
    }
  }
  ~TemporaryReport() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryReport(const TemporaryReport&) = delete;
  TemporaryReport& operator=(const TemporaryReport&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

absl::StatusOr<int> Run(Invocation& call) {
  RunFlags options;
  Declare(&options, &call.flags());
  if (std::optional<int> exit = call.Parse({.rest = true})) return *exit;
  if (options.level != 0 && options.level != 1) {
    return call.UsageError("-O: levels 0 and 1 are there");
  }
  if (options.verify < 1 || options.verify > 1000) {
    return call.UsageError("--verify: expected 1 to 1000 launches");
  }
  if (options.verify_bytes < 0) {
    return call.UsageError("--verify-bytes: expected a size, e.g. 8G");
  }
  absl::StatusOr<std::string> library = FindPreloadLibrary();
  if (!library.ok()) return library.status();
  absl::StatusOr<std::string> preload = PrependPreload(*library);
  if (!preload.ok()) return preload.status();
  const TemporaryReport temporary;
  const std::string report =
      options.report.empty() ? temporary.path() : Absolute(options.report);
  EnvironmentChanges changes = {
      {"LD_PRELOAD", *preload},
      {"HEDDLE_OPT", absl::StrCat(options.level)},
      {"HEDDLE_VERIFY", absl::StrCat(options.verify)},
      {"HEDDLE_VERIFY_BYTES", absl::StrCat(options.verify_bytes)},
      {"HEDDLE_STYLE", options.style},
      {"HEDDLE_LOG", options.log},
      {"HEDDLE_DISABLE", std::nullopt}};
  if (!report.empty()) changes["HEDDLE_REPORT"] = report;
  // The runtime appends; what earlier programs left is not this one's.
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(report, error);
  const uint64_t before = error ? 0 : size;
  std::fflush(stdout);
  absl::StatusOr<int> status = RunProgram(call.rest(), changes);
  if (!status.ok()) return status.status();
  if (options.quiet || options.level == 0) return *status;
  // A pattern names files of processes that are not known here.
  if (!absl::StrContains(report, "%")) {
    absl::StatusOr<std::vector<nlohmann::json>> reports =
        ReadGraphReports(report, before);
    if (reports.ok() && !reports->empty()) {
      std::fprintf(stderr, "heddle: %s", GraphReportsToText(*reports).c_str());
    } else if (reports.ok() || absl::IsNotFound(reports.status())) {
      std::fprintf(stderr,
                   "heddle: no CUDA graph of the program was seen; if it has "
                   "some, `heddle doctor -- PROGRAM` says why\n");
    } else {
      std::fprintf(stderr, "heddle: %s\n",
                   absl::StrCat(reports.status().message()).c_str());
    }
  }
  return *status;
}

}  // namespace

const Command& RunCommand() {
  static constexpr Command kCommand = {
      .name = "run",
      .synopsis = "run a program with its CUDA graphs rewritten",
      .arguments = "[flags] -- PROGRAM [ARGUMENTS]",
      .help =
          "At -O1 every kernel of a graph that the program instantiates gets a "
          "prologue that waits for the kernels before it, and the edges "
          "between kernels become programmatic, so that a kernel is on its "
          "multiprocessors before the one before it has drained. The order in "
          "which kernels see each other's results stays the same.\n\nThe "
          "first launches of a graph are trials: both forms run from the same "
          "memory, what they wrote is compared byte for byte, and both are "
          "timed. The program's own graph stays where it is faster, where the "
          "results differ, and where a trial is not possible (host functions "
          "in the graph, memory shared with other processes, too little free "
          "memory).\n\nThe exit status is the program's, 128 + n if signal n "
          "ended it.\n\nThe same works without this tool: "
          "LD_PRELOAD=libheddle_preload.so HEDDLE_OPT=1, with HEDDLE_VERIFY, "
          "HEDDLE_VERIFY_BYTES, HEDDLE_STYLE, HEDDLE_REPORT and HEDDLE_LOG set "
          "as the flags are here.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
