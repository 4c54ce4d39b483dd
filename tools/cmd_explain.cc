// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/command.h"
#include "tools/explain.h"
#include "tools/record_json.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

// The buffers that are live at a record.
Buffers BuffersAt(const trace::Reader& reader, uint64_t record) {
  Buffers buffers;
  for (const trace::Record& before : reader.records()) {
    if (before.index >= record) break;
    buffers.Follow(before);
  }
  return buffers;
}

absl::StatusOr<int> Run(Invocation& call) {
  int64_t launch = -1;
  std::string record;
  int64_t step = -1;
  std::string by = "auto";
  bool json = false;
  bool mangled = false;
  call.flags()
      .Int("launch", "N", &launch,
           "operation N of the step, as `heddle graph` counts them from 0")
      .String("call", "N[.M]", &record,
              "record N, as `heddle dump` counts; node M of the graph that it "
              "launches")
      .Int("step", "N", &step,
           "which step, from 0; -1: the largest that begins with a memory "
           "snapshot")
      .String("by", "SOURCE", &by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], repeat[:N]")
      .Bool("json", &json, "one JSON object instead of text")
      .Bool("mangled", &mangled, "kernel names as they are in the image");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (call.flags().WasSet("launch") == call.flags().WasSet("call")) {
    return call.UsageError("give either --launch or --call");
  }
  if (step < -1) return call.UsageError("--step counts from 0");
  auto reader = OpenTrace(call.positional()[0]);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<StepAnalysis> analysis =
      AnalyseStep(**reader, step, by, mangled);
  if (!analysis.ok()) return analysis.status();
  uint32_t operation = 0;
  if (call.flags().WasSet("call")) {
    absl::StatusOr<uint32_t> found = FindCall(*analysis, record);
    if (!found.ok()) return found.status();
    operation = *found;
  } else {
    if (launch < 0 || launch >= int64_t{analysis->size()}) {
      return absl::OutOfRangeError(
          absl::StrCat("--launch ", launch, ": ", analysis->Title(), " has ",
                       analysis->size(), " operations, counted from 0"));
    }
    operation = static_cast<uint32_t>(launch);
  }
  const Explanation explanation = Explain(*analysis, operation);
  const Buffers buffers =
      BuffersAt(**reader, analysis->operation(operation).record);
  const std::string text =
      json ? DumpJson(ExplanationToJson(*analysis, explanation, buffers), 1) +
                 "\n"
           : ExplanationToText(*analysis, explanation, buffers);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

}  // namespace

const Command& ExplainCommand() {
  static const std::string& help = *new std::string(absl::StrCat(
      "Every access of one operation: whether it reads, writes or does both "
      "atomically, which\nbytes and of which allocation, how that is known and "
      "from what. Then the operations that\nit has to wait for, and those that "
      "have to wait for it, with the bytes that make them.\n\n  declared    "
      "copies and fills say what they touch\n  tensor map  a tensor map among "
      "the parameters describes it\n  proved      from the machine code, with "
      "the values of this launch\n  observed    measured on a device\n  "
      "assumed "
      "    the whole allocation that a pointer leads to\n\n  heddle explain "
      "--launch 12 llama.htrace\n  heddle explain --call 40.12 llama.htrace  # "
      "node "
      "12 of that graph\n\n--json prints\n",
      kExplainJsonHelp));
  static const Command kCommand = {
      .name = "explain",
      .synopsis = "what one operation touches, and who waits for whom",
      .arguments = "(--launch N | --call N[.M]) [flags] TRACE",
      .help = help.c_str(),
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
