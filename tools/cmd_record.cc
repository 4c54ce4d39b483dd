// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/command.h"
#include "tools/info_text.h"
#include "tools/names.h"
#include "tools/run_program.h"
#include "tools/summary.h"
#include "tools/trace_args.h"
#include "tools/trace_files.h"

namespace heddle::tools {
namespace {

struct RecordFlags {
  std::string output;
  std::string memory = "small";
  std::string images = "all";
  std::string step = "auto";
  std::string range;
  std::string window = "all";
  int64_t compress = 1;
  int64_t max_bytes = 0;
  bool inject = false;
};

void Declare(RecordFlags* options, FlagSet* flags) {
  flags
      ->String("output", "FILE", &options->output,
               "the trace; %p, %h and %r become the process id, host and rank "
               "(default: the program's name.htrace)")
      .Short('o')
      .Choice("memory", {"none", "small", "full"}, &options->memory,
              "what memory to keep at a step: small keeps ranges up to 1 MiB "
              "exactly and describes larger ones")
      .Choice("images", {"all", "own", "none"}, &options->images,
              "which code images to keep: own leaves out those of vendor "
              "libraries")
      .String("step", "N", &options->step,
              "steps at whose begin memory is kept: auto, off, or N[,M...]")
      .String("range", "NAME", &options->range,
              "NVTX range that is a step of the program")
      .Choice("window", {"all", "steps"}, &options->window,
              "record all work, or only that of the chosen steps")
      .Int("compress", "LEVEL", &options->compress,
           "zstd level of code and memory, 0 to 19")
      .Int("max-bytes", "BYTES", &options->max_bytes,
           "stop recording at this size, e.g. 4G; 0 = no limit")
      .Bool("inject", &options->inject,
            "set CUDA_INJECTION64_PATH too, for programs in which preloading "
            "does not work");
}

// Where HEDDLE_TRACE points: absolute, since the program may change directory.
std::string TracePattern(const RecordFlags& options,
                         const std::string& program) {
  namespace fs = std::filesystem;
  std::string name = options.output;
  if (name.empty()) {
    name = absl::StrCat(fs::path(program).filename().string(), ".htrace");
  }
  std::error_code error;
  const fs::path absolute = fs::absolute(name, error);
  return error ? name : absolute.lexically_normal().string();
}

EnvironmentChanges Changes(const RecordFlags& options,
                           const std::string& pattern,
                           const std::string& library,
                           const std::string& preload) {
  EnvironmentChanges changes = {
      {"LD_PRELOAD", preload},
      {"HEDDLE_TRACE", pattern},
      // Processes of one command must not overwrite each other's traces.
      {"HEDDLE_TRACE_KEEP", "1"},
      {"HEDDLE_MEMORY", options.memory},
      {"HEDDLE_IMAGES", options.images},
      {"HEDDLE_STEP", options.step},
      {"HEDDLE_WINDOW", options.window},
      {"HEDDLE_COMPRESS", absl::StrCat(options.compress)},
      {"HEDDLE_MAX_BYTES", absl::StrCat(options.max_bytes)},
      {"HEDDLE_DISABLE", std::nullopt}};
  if (!options.range.empty()) changes["HEDDLE_RANGE"] = options.range;
  // NVTX has one place for a tool; one that the user chose stays.
  if (std::getenv("NVTX_INJECTION64_PATH") == nullptr) {
    changes["NVTX_INJECTION64_PATH"] = library;
  }
  if (options.inject) changes["CUDA_INJECTION64_PATH"] = library;
  return changes;
}

void PrintTrace(const std::string& path) {
  auto reader = OpenTrace(path, /*quiet=*/true);
  if (!reader.ok()) {
    std::fprintf(stderr, "heddle: %s\n",
                 absl::StrCat(reader.status().message()).c_str());
    return;
  }
  std::string text =
      absl::StrCat("heddle: ", path, ": ", Bytes((*reader)->file_size()));
  if (absl::StatusOr<Summary> summary = Summarize(**reader, "auto");
      summary.ok()) {
    absl::StrAppend(&text, ", ", summary->launches, " launches");
    if (summary->graph_launches != 0) {
      absl::StrAppend(&text, ", ", summary->graph_launches, " graph launches");
    }
    absl::StrAppend(&text, ", steps: ", StepsToText(summary->steps));
    const size_t snapshots = summary->snapshots.size();
    if (snapshots != 0) {
      absl::StrAppend(&text, ", ", snapshots,
                      snapshots == 1 ? " snapshot" : " snapshots");
    }
    if (!summary->end_reason.empty()) {
      absl::StrAppend(&text, "; recording ended early: ", summary->end_reason);
    }
  }
  if ((*reader)->truncated()) {
    absl::StrAppend(&text, "; TRUNCATED ", (*reader)->truncation());
  }
  std::fprintf(stderr, "%s\n", text.c_str());
}

void PrintResult(const std::vector<std::string>& traces,
                 const std::vector<std::string>& command) {
  for (const std::string& path : traces) PrintTrace(path);
  const std::string words = absl::StrJoin(command, " ");
  if (traces.empty()) {
    std::fprintf(stderr,
                 "heddle: no trace was written: no CUDA call of `%s` was "
                 "seen.\nheddle: `heddle doctor -- %s` says why.\n",
                 words.c_str(), words.c_str());
  } else {
    std::fprintf(stderr,
                 "heddle: next: `heddle info %s` shows what is in it, `heddle "
                 "replay %s` runs it again\n",
                 traces[0].c_str(), traces[0].c_str());
  }
}

absl::StatusOr<int> Run(Invocation& call) {
  RecordFlags options;
  Declare(&options, &call.flags());
  if (std::optional<int> exit = call.Parse({.rest = true})) return *exit;
  if (options.compress < 0 || options.compress > 19) {
    return call.UsageError("--compress: expected a zstd level, 0 to 19");
  }
  if (options.max_bytes < 0) {
    return call.UsageError("--max-bytes: expected a size, e.g. 4G");
  }
  const std::vector<std::string>& command = call.rest();
  absl::StatusOr<std::string> library = FindPreloadLibrary();
  if (!library.ok()) return library.status();
  absl::StatusOr<std::string> preload = PrependPreload(*library);
  if (!preload.ok()) return preload.status();

  const std::string pattern = TracePattern(options, command[0]);
  const std::string folder =
      std::filesystem::path(pattern).parent_path().string();
  if (!absl::StrContains(folder, "%") && access(folder.c_str(), W_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(
        "cannot write to the folder ", folder, "; choose another with -o"));
  }
  const TraceFiles files(pattern);
  if (absl::Status status = files.RemoveOld(); !status.ok()) return status;
  std::fflush(stdout);
  absl::StatusOr<int> status =
      RunProgram(command, Changes(options, pattern, *library, *preload));
  if (!status.ok()) return status.status();
  if (*status != 0) {
    std::fprintf(stderr, "heddle: %s ended with status %d\n",
                 command[0].c_str(), *status);
  }
  PrintResult(files.New(), command);
  return *status;
}

}  // namespace

const Command& RecordCommand() {
  static constexpr Command kCommand = {
      .name = "record",
      .synopsis = "run a program and record what it does on the GPU",
      .arguments = "[flags] -- PROGRAM [ARGUMENTS]",
      .help =
          "Every process of the program that calls CUDA writes a trace; a "
          "second one gets a\nname of its own, FILE.<pid>.htrace. An older "
          "trace of the same name is replaced.\nThe exit status is the "
          "program's, 128 + n if signal n ended it. A program that is\nkilled "
          "leaves a trace that can be read up to that moment.\n\nThe same "
          "works without this tool: LD_PRELOAD=libheddle_preload.so with\n"
          "HEDDLE_TRACE, HEDDLE_MEMORY, HEDDLE_IMAGES, HEDDLE_STEP, "
          "HEDDLE_RANGE,\nHEDDLE_WINDOW, HEDDLE_COMPRESS and HEDDLE_MAX_BYTES "
          "set as the flags are here.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
