// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/branches.h"
#include "runtime/plan/plan_file.h"
#include "tools/command.h"
#include "tools/graph_reports.h"
#include "tools/run_program.h"

namespace heddle::tools {
namespace {

struct RunFlags {
  int64_t level = 1;
  std::vector<std::string> plans;
  std::vector<std::string> branches;
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
            "0: nothing is rewritten; 1: kernels start early, in the "
            "program's order; 2: also, kernels that share no memory run side "
            "by side")
      .Short('O')
      .List("plan", "FILE", &options->plans,
            "a plan of `heddle plan`, tried on the graphs that it fits; may be "
            "repeated")
      .List("branches", "N[,N]", &options->branches,
            "most branches of a graph at -O2, all of them are tried (default: "
            "2,3)")
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

// What is wrong with the flags, empty if nothing is. Plans become absolute. The
// runtime would refuse the same, but then the program has begun.
std::string CheckFlags(RunFlags* options) {
  if (options->level < 0 || options->level > 2) {
    return "-O: levels 0, 1 and 2 are there";
  }
  if (!options->branches.empty() && options->level < 2) {
    return "--branches needs -O2: -O1 keeps the program's order";
  }
  for (const std::string& text : options->branches) {
    uint32_t count = 0;
    if (!absl::SimpleAtoi(text, &count) || count < 1 ||
        count > plan::kMaxBranches) {
      return absl::StrCat("--branches: expected numbers from 1 to ",
                          plan::kMaxBranches);
    }
  }
  if (!options->plans.empty() && options->level == 0) {
    return "--plan: nothing is rewritten at -O0";
  }
  for (std::string& path : options->plans) {
    if (absl::StatusOr<plan::PlanFile> file = plan::ReadPlanFile(path);
        !file.ok()) {
      return absl::StrCat("--plan: ", file.status().message());
    }
    path = Absolute(path);
    if (absl::StrContains(path, ",")) {
      return absl::StrCat("--plan: ", path,
                          ": a path with a comma cannot be passed on");
    }
  }
  return "";
}

absl::StatusOr<int> Run(Invocation& call) {
  RunFlags options;
  Declare(&options, &call.flags());
  if (std::optional<int> exit = call.Parse({.rest = true})) return *exit;
  if (const std::string wrong = CheckFlags(&options); !wrong.empty()) {
    return call.UsageError(wrong);
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
      {"HEDDLE_PLAN", std::nullopt},
      {"HEDDLE_BRANCHES", std::nullopt},
      {"HEDDLE_VERIFY", absl::StrCat(options.verify)},
      {"HEDDLE_VERIFY_BYTES", absl::StrCat(options.verify_bytes)},
      {"HEDDLE_STYLE", options.style},
      {"HEDDLE_LOG", options.log},
      {"HEDDLE_DISABLE", std::nullopt}};
  if (!report.empty()) changes["HEDDLE_REPORT"] = report;
  if (!options.plans.empty()) {
    changes["HEDDLE_PLAN"] = absl::StrJoin(options.plans, ",");
  }
  if (!options.branches.empty()) {
    changes["HEDDLE_BRANCHES"] = absl::StrJoin(options.branches, ",");
  }
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
          "Every kernel of a graph that the program instantiates gets a "
          "prologue that waits for the kernels before it, and the edges "
          "between kernels become programmatic, so that a kernel is on its "
          "multiprocessors before the one before it has drained.\n\n"
          "-O1 keeps the order of the program's graph. -O2 also tries graphs "
          "with branches: it works out which bytes each node reads and writes, "
          "from the machine code of the kernels, their parameters and the "
          "memory that the program has at the graph's first launch, and keeps "
          "the order that those bytes force. What a node may touch that is not "
          "known conflicts with everything and stays in order. Graphs that let "
          "nodes run at once although they share memory are left to -O1.\n\n"
          "What -O2 knows holds while the graph and its memory stay as they "
          "were. When the program changes a node, updates the graph or gives "
          "up memory that the graph uses, heddle goes back to the -O1 form for "
          "good, before the next launch.\n\n"
          "--plan tries a plan that was made before, with measured durations "
          "and as many branches as were asked for:\n"
          "\n  heddle record -o d.htrace -- PROGRAM\n"
          "  heddle plan d.htrace -O2 --measure -o d.hplan\n"
          "  heddle run --plan d.hplan -- PROGRAM\n"
          "\nA plan is used for graphs that it fits: the same kernels, from "
          "the same images, with the same grids, blocks and shared memory, in "
          "the same order, on the same kind of device. It is checked against "
          "the memory that the nodes touch in this process, so one that leaves "
          "out an order that is needed here is refused. The report's notes say "
          "why a plan was not used.\n\n"
          "The first launches of a graph are trials: all forms run from the "
          "same memory, what they wrote is compared byte for byte, and they "
          "are timed. The fastest is used. The program's own graph stays where "
          "it is faster, where the results differ, and where a trial is not "
          "possible (host functions in the graph, memory shared with other "
          "processes, too little free memory).\n\n"
          "The exit status is the program's, 128 + n if signal n ended it.\n"
          "\nThe same works without this tool: "
          "LD_PRELOAD=libheddle_preload.so HEDDLE_OPT=1, with HEDDLE_PLAN, "
          "HEDDLE_BRANCHES, HEDDLE_VERIFY, HEDDLE_VERIFY_BYTES, HEDDLE_STYLE, "
          "HEDDLE_REPORT and HEDDLE_LOG set as the flags are here.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
