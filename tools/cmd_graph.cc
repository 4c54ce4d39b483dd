// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/command.h"
#include "tools/graph_output.h"
#include "tools/graph_picture.h"
#include "tools/output_file.h"
#include "tools/record_json.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

absl::StatusOr<int> Run(Invocation& call) {
  int64_t step = -1;
  std::string by = "auto";
  bool json = false;
  bool dot = false;
  bool all = false;
  bool mangled = false;
  std::string svg;
  std::string output;
  call.flags()
      .Int("step", "N", &step,
           "which step, from 0; -1: the largest that begins with a memory "
           "snapshot")
      .String("by", "SOURCE", &by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], repeat[:N]")
      .Bool("dot", &dot, "a picture for Graphviz's dot")
      .String("svg", "FILE", &svg, "a picture that needs no other program")
      .Bool("json", &json, "one JSON object: operations, edges, numbers")
      .Bool("all", &all,
            "every operation: in the text with what it has to follow, in "
            "pictures instead of one layer for all alike")
      .String("output", "FILE", &output,
              "write text, dot or JSON to this file (default: standard output)")
      .Short('o')
      .Bool("mangled", &mangled, "kernel names as they are in the image");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (json && dot) {
    return call.UsageError("--json and --dot exclude each other");
  }
  if (step < -1) return call.UsageError("--step counts from 0");
  const std::string& path = call.positional()[0];
  auto reader = OpenTrace(path);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<StepAnalysis> analysis =
      AnalyseStep(**reader, step, by, mangled);
  if (!analysis.ok()) return analysis.status();
  if (!svg.empty()) {
    absl::Status status =
        WriteOutput(svg, path, GraphToSvg(*analysis, FoldStep(*analysis, all)));
    if (!status.ok()) return status;
    // Only what was asked for.
    if (!json && !dot && output.empty()) return kExitOk;
  }
  std::string text;
  if (json) {
    text = DumpJson(GraphToJson(*analysis), 1) + "\n";
  } else if (dot) {
    text = GraphToDot(*analysis, FoldStep(*analysis, all));
  } else {
    text = GraphToText(*analysis, all);
  }
  if (absl::Status s = WriteOutput(output, path, text); !s.ok()) return s;
  return kExitOk;
}

}  // namespace

const Command& GraphCommand() {
  static const std::string& help = *new std::string(absl::StrCat(
      "Which operations of a step need which others, and because of which "
      "bytes. A program\nthat submits its work to one stream orders all of it; "
      "most of that order is needed, for\nan operation that reads what another "
      "one wrote (read-after-write), or that writes to\nmemory which another "
      "one read (write-after-read) or wrote (write-after-write). The rest\nis "
      "what could run side by side.\n\nWhat an operation touches is "
      "known from where it says so (copies, fills: declared; tensor\nmaps) and "
      "from its machine code with the parameters of the launch (proved). What "
      "is not\nknown conflicts with everything, so each unknown launch is a "
      "barrier; `heddle explain`\nshows why one is unknown.\n\nEdges are those "
      "that no chain of others implies. The text has their number against "
      "the\nrecorded order, what launches are known by, and the longest chain: "
      "times in a trace are\nthose of the host, so launches are counted.\n\n"
      "Pictures draw the layers of a model, which repeat the same kernels, "
      "once; edges to the\nnext layer are dashed. --all draws every "
      "operation.\n\n  heddle graph --svg step.svg llama.htrace\n  heddle "
      "graph --dot llama.htrace | dot -Tpdf -o step.pdf\n\n--json prints\n",
      kGraphJsonHelp, "and in summary\n", kAccessStatsHelp));
  static const Command kCommand = {
      .name = "graph",
      .synopsis = "which operations of a step need which, by their bytes",
      .arguments = "[flags] TRACE",
      .help = help.c_str(),
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
