// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/info_json.h"
#include "tools/info_text.h"
#include "tools/summary.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

absl::StatusOr<int> Run(Invocation& call) {
  bool json = false;
  std::string steps_by = "auto";
  InfoDetail detail;
  call.flags()
      .Bool("json", &json, "one JSON object instead of text, with all details")
      .Bool("steps", &detail.steps, "list every step")
      .Bool("params", &detail.params,
            "list every parameter that differs from step to step")
      .Bool("kernels", &detail.kernels, "list the kernels by launches")
      .Bool("mangled", &detail.mangled, "kernel names as they are in the image")
      .String("by", "SOURCE", &steps_by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], "
              "repeat[:N]");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;

  auto reader = OpenTrace(call.positional()[0], /*quiet=*/true);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<Summary> summary = Summarize(**reader, steps_by);
  if (!summary.ok()) return summary.status();
  const KernelNames names(**reader, detail.mangled);
  const std::string text =
      json ? DumpJson(InfoToJson(**reader, *summary, names), 2) + "\n"
           : InfoToText(**reader, *summary, names, detail);
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
          "amount from each step to the next.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
