// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/chrome_export.h"
#include "tools/command.h"
#include "tools/dot_export.h"
#include "tools/output_file.h"
#include "tools/progress.h"
#include "tools/record_json.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

struct ConvertFlags {
  std::string to = "jsonl";
  std::string output;
  int64_t graph = -1;
  int64_t step = -1;
  bool mangled = false;
};

void WriteJsonLines(const trace::Reader& reader, const RecordFilter& filter,
                    bool mangled, OutputFile* output) {
  RecordContext context(reader, mangled);
  Progress progress("converting", reader.records().size());
  for (const trace::Record& record : reader.records()) {
    if (record.index > filter.last()) break;
    if (filter.Contains(record, context.names())) {
      output->Write(DumpJson(RecordToJson(record, context)) + "\n");
    }
    context.Follow(record);
    progress.Update(record.index);
  }
}

absl::Status WriteChrome(const trace::Reader& reader,
                         const RecordFilter& filter, bool mangled,
                         OutputFile* output) {
  absl::StatusOr<trace::StepList> steps =
      trace::FindSteps(reader, {.by = filter.steps_by()});
  if (!steps.ok()) return steps.status();
  const KernelNames names(reader, mangled);
  ExportChrome(
      reader, *steps,
      [&](const trace::Record& record) {
        return filter.Contains(record, names);
      },
      mangled, [output](const std::string& text) { output->Write(text); });
  return absl::OkStatus();
}

absl::Status WriteDot(const trace::Reader& reader, const RecordFilter& filter,
                      const ConvertFlags& options, OutputFile* output) {
  if (options.step < 0) {
    const auto graph =
        static_cast<uint32_t>(std::max<int64_t>(0, options.graph));
    absl::StatusOr<std::string> dot =
        GraphsToDot(reader, graph, options.mangled);
    if (!dot.ok()) return dot.status();
    output->Write(*dot);
    return absl::OkStatus();
  }
  absl::StatusOr<trace::StepList> steps =
      trace::FindSteps(reader, {.by = filter.steps_by()});
  if (!steps.ok()) return steps.status();
  if (options.step >= static_cast<int64_t>(steps->steps.size())) {
    return absl::OutOfRangeError(
        absl::StrCat("there is no step ", options.step, " in ", reader.path(),
                     ", which has ", steps->steps.size()));
  }
  output->Write(StepToDot(reader, steps->steps[options.step], options.mangled));
  return absl::OkStatus();
}

absl::StatusOr<int> Run(Invocation& call) {
  ConvertFlags options;
  RecordFilter filter;
  call.flags()
      .Choice("to", {"jsonl", "chrome", "dot"}, &options.to, "the format")
      .String("output", "FILE", &options.output,
              "write to this file (default: standard output)")
      .Short('o');
  filter.Declare(&call.flags());
  call.flags()
      .Int("graph", "ID", &options.graph, "dot: only this graph")
      .Int("step", "N", &options.step,
           "dot: the order of a step's work instead of graphs")
      .Bool("mangled", &options.mangled,
            "kernel names as they are in the image");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  for (const char* flag : {"graph", "step"}) {
    if (call.flags().WasSet(flag) && options.to != "dot") {
      return call.UsageError(absl::StrCat("--", flag, " needs --to dot"));
    }
  }
  auto reader = OpenTrace(call.positional()[0]);
  if (!reader.ok()) return reader.status();
  if (absl::Status status = filter.Prepare(**reader); !status.ok()) {
    return status;
  }
  OutputFile output;
  if (absl::Status status = output.Open(options.output, call.positional()[0]);
      !status.ok()) {
    return status;
  }
  absl::Status status;
  if (options.to == "jsonl") {
    WriteJsonLines(**reader, filter, options.mangled, &output);
  } else if (options.to == "chrome") {
    status = WriteChrome(**reader, filter, options.mangled, &output);
  } else {
    status = WriteDot(**reader, filter, options, &output);
  }
  if (!status.ok()) return status;
  if (status = output.Close(); !status.ok()) return status;
  return kExitOk;
}

}  // namespace

const Command& ConvertCommand() {
  static const std::string& help = *new std::string(absl::StrCat(
      "  jsonl   every record as a JSON object (below)\n"
      "  chrome  the host's timeline, for ui.perfetto.dev: a lane for each "
      "thread and\n          stream; times of the device come from `heddle "
      "replay --report`\n"
      "  dot     graphs with their nodes and edges, or with --step the work of "
      "a step\n          and what orders it, for Graphviz\n\n",
      kRecordJsonHelp, "\n", kCallSetHelp));
  static const Command kCommand = {
      .name = "convert",
      .synopsis = "a trace as JSON Lines, Chrome trace or dot",
      .arguments = "[--to FORMAT] [flags] TRACE",
      .help = help.c_str(),
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
