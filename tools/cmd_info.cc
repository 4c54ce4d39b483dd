// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/command.h"
#include "tools/info_json.h"
#include "tools/info_text.h"
#include "tools/step_analysis.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

std::string AccessToText(const StepAnalysis& analysis) {
  std::string text = absl::StrCat("\nstep ", analysis.step.index, ", ",
                                  analysis.size(), " operations:\n");
  for (const auto& [label, line] : StatsToLines(CountAccesses(analysis))) {
    absl::StrAppendFormat(&text, "  %-11s %s\n", label, Printable(line));
  }
  return text;
}

Json AccessToJson(const StepAnalysis& analysis) {
  Json json = {{"step", analysis.step.index}};
  json.update(StatsToJson(CountAccesses(analysis)));
  return json;
}

absl::StatusOr<int> Run(Invocation& call) {
  bool json = false;
  std::string steps_by = "auto";
  InfoDetail detail;
  bool access = false;
  int64_t step = -1;
  call.flags()
      .Bool("json", &json, "one JSON object instead of text, with all details")
      .Bool("steps", &detail.steps, "list every step")
      .Bool("params", &detail.params,
            "list every parameter that differs from step to step")
      .Bool("kernels", &detail.kernels, "list the kernels by launches")
      .Bool("access", &access,
            "of how many launches of a step the memory accesses are known, "
            "and what order they need: takes a while")
      .Int("step", "N", &step,
           "--access: which step, from 0; -1: the largest that begins with a "
           "memory snapshot")
      .Bool("mangled", &detail.mangled, "kernel names as they are in the image")
      .String("by", "SOURCE", &steps_by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], "
              "repeat[:N]");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (step < -1) return call.UsageError("--step counts from 0");
  if (call.flags().WasSet("step") && !access) {
    return call.UsageError("--step needs --access");
  }

  auto reader = OpenTrace(call.positional()[0], /*quiet=*/true);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<Summary> summary = Summarize(**reader, steps_by);
  if (!summary.ok()) return summary.status();
  const KernelNames names(**reader, detail.mangled);
  std::optional<StepAnalysis> analysis;
  if (access) {
    absl::StatusOr<StepAnalysis> analysed =
        AnalyseStep(**reader, step, steps_by, detail.mangled);
    if (!analysed.ok()) return analysed.status();
    analysis = *std::move(analysed);
  }
  std::string text;
  if (json) {
    Json object = InfoToJson(**reader, *summary, names);
    if (analysis) object["access"] = AccessToJson(*analysis);
    text = DumpJson(object, 2) + "\n";
  } else {
    text = InfoToText(**reader, *summary, names, detail);
    if (analysis) text += AccessToText(*analysis);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

}  // namespace

const Command& InfoCommand() {
  static constexpr Command kCommand = {
      .name = "info",
      .synopsis = "what a trace holds, on one screen",
      .arguments = "[flags] TRACE",
      .help =
          "Device, program, modules, kernels, work, graphs, memory by kind "
          "with its peak,\nsteps, snapshots, what is unsupported, and whether "
          "the trace is complete.\n\nA step is the repeating unit of the "
          "program (a decode step, an iteration). It is\nfound by itself "
          "(--by=auto): the launches of one graph if they are most of the\n"
          "work; NVTX ranges of one name if they hold nearly all work; else "
          "the launch\nsequence's own repetition, a unit of N operations with "
          "--by=repeat:N. A parameter\nthat is \"affine\" grows by the same "
          "amount from each step to the next.\n\n--access reads the machine "
          "code of one step's kernels: the first lines of `heddle graph`, "
          "where its JSON is described, too (\"access\": {step, numbers}).\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
