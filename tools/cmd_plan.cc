// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_file.h"
#include "runtime/rewrite/rewriter.h"
#include "tools/command.h"
#include "tools/plan_run.h"
#include "tools/retry_layout.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

struct PlanFlags {
  std::string out;
  int64_t step = -1;
  std::string by = "auto";
  int64_t level = 2;
  int64_t branches = 2;
  std::string style = "programmatic";
  std::string durations;
  bool measure = false;
  int64_t device = 0;
  bool explain = false;
  bool json = false;
  bool quiet = false;
};

void Declare(PlanFlags* flags, FlagSet* set) {
  set->String("output", "FILE", &flags->out,
              "write the plan there (FILE.hplan); without it, only say what it "
              "would be")
      .Short('o')
      .Int("step", "N", &flags->step,
           "which step, from 0; -1: the largest that begins with a memory "
           "snapshot")
      .String("by", "SOURCE", &flags->by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], repeat[:N]")
      .Int("opt", "LEVEL", &flags->level,
           "1: the program's order, kernels start early; 2: also independent "
           "operations on branches of their own")
      .Short('O')
      .Int("branches", "N", &flags->branches,
           "at most so many operations at a time, for level 2")
      .Choice("style", {"programmatic", "programmatic-early", "launch-order"},
              &flags->style, "how kernels start early, see `heddle replay`")
      .String("durations", "FILE", &flags->durations,
              "how long operations take: a report of `heddle replay --report "
              "FILE.json` with a serial run of this step, or a plan of it")
      .Bool("measure", &flags->measure,
            "replay the step on the device and measure that")
      .Int("device", "N", &flags->device,
           "plan for this device of the machine; without it and --measure, for "
           "the recorded one")
      .Bool("explain", &flags->explain,
            "for every operation and the one before it: the bytes that force "
            "their order, how it is kept, the estimated gain")
      .Bool("json", &flags->json, "print the result as JSON")
      .Bool("quiet", &flags->quiet, "no progress on stderr")
      .Short('q');
}

absl::StatusOr<int> Run(Invocation& call) {
  PlanFlags flags;
  Declare(&flags, &call.flags());
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (flags.step < -1) return call.UsageError("--step counts from 0");
  if (flags.level != 1 && flags.level != 2) {
    return call.UsageError("--opt must be 1 or 2");
  }
  if (flags.branches < 1 || flags.branches > plan::kMaxBranches) {
    return call.UsageError(
        absl::StrCat("--branches must be between 1 and ", plan::kMaxBranches));
  }
  if (flags.level == 1 && call.flags().WasSet("branches")) {
    return call.UsageError(
        "--branches needs -O2: O1 keeps the program's order");
  }
  if (flags.measure && !flags.durations.empty()) {
    return call.UsageError("--measure and --durations exclude each other");
  }
  if (flags.device < 0 || flags.device > 1023) {
    return call.UsageError("--device must be an ordinal");
  }
  PlanRunOptions options;
  options.level = static_cast<plan::Level>(flags.level);
  options.max_branches = static_cast<uint32_t>(flags.branches);
  options.durations = flags.durations;
  options.measure = flags.measure;
  if (call.flags().WasSet("device")) {
    options.device = static_cast<int>(flags.device);
  }
  options.explain = flags.explain;
  for (const plan::Style style :
       {plan::Style::kProgrammatic, plan::Style::kProgrammaticEarly,
        plan::Style::kLaunchOrder}) {
    if (rewrite::StyleName(style) == flags.style) options.style = style;
  }
  if (!flags.quiet) {
    options.progress = [](const std::string& line) {
      std::fprintf(stderr, "heddle plan: %s\n", line.c_str());
    };
  }
  setenv("CUDA_MODULE_LOADING", "LAZY", 0);  // see cmd_replay.cc

  auto reader = OpenTrace(call.positional()[0]);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<ChosenStep> step = ChooseStep(**reader, flags.step, flags.by);
  if (!step.ok()) return step.status();
  absl::StatusOr<PlanRunResult> result = RunPlan(**reader, *step, options);
  if (!result.ok()) {
    RunAgainOnCollision(result.status());
    return result.status();
  }
  if (!flags.out.empty()) {
    if (absl::Status s = plan::WritePlanFile(result->file, flags.out);
        !s.ok()) {
      return s;
    }
  }
  const std::string text =
      flags.json
          ? PlanToJson(*result).dump(2, ' ', false,
                                     nlohmann::json::error_handler_t::replace) +
                "\n"
          : PlanToText(*result);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!flags.out.empty() && !flags.quiet) {
    std::fprintf(stderr, "heddle plan: wrote %s\n", flags.out.c_str());
  }
  return kExitOk;
}

}  // namespace

const Command& PlanCommand() {
  static constexpr Command kCommand = {
      .name = "plan",
      .synopsis = "work out how a step could run with less waiting",
      .arguments = "[flags] TRACE",
      .help =
          "Plans one step of a trace as a CUDA graph and writes the plan for "
          "`heddle replay --plan`. Needs no device, unless it is to measure.\n"
          "\n-O1 keeps the program's order; kernels start before the ones that "
          "they wait for have ended. -O2 first looks at which bytes each "
          "operation reads and writes, keeps the order that those force and no "
          "other, and puts independent operations on branches. What it does "
          "not know the bytes of stays in order with everything. `heddle "
          "graph` shows that order, `heddle explain` where one operation's "
          "bytes come from.\n"
          "\nWhich operation goes to which branch is decided by an estimate: "
          "durations, and a cost for each edge (more between branches, so "
          "that very short operations are not worth one). Without durations "
          "all operations count the same. Measure them on the device that the "
          "plan is for:\n"
          "\n  heddle plan llama.htrace -O2 --measure -o llama.hplan\n"
          "  heddle replay llama.htrace --plan llama.hplan --compare --verify\n"
          "\nor once for several plans:\n"
          "\n  heddle replay llama.htrace --mode serial --report serial.json\n"
          "  heddle plan llama.htrace --durations serial.json --branches 3 -o "
          "a.hplan\n"
          "\nThe estimate knows nothing of memory bandwidth that branches "
          "share: compare plans by replaying them.\n"
          "\nEvery plan is checked by a second, independent method before it "
          "is written, and again before it is run. It is bound to its trace, "
          "step and kind of device.\n"
          "\n--explain prints two lines for each operation but the first: the "
          "one before it and itself; how it waits (full: for the end; "
          "programmatic, launch-order: inside, its blocks are there earlier; "
          "by way of others; unordered; turned round), the bytes that force "
          "it, and how much sooner it is estimated to begin than right behind "
          "the one before with a full edge.\n"
          "\n--json: {schema: 1, trace, step: {index, total, source, "
          "first_record, end_record}, level, style, branches, max_branches, "
          "operations, kernels, patched, edges: {total, early, launch_order}, "
          "graph_us, estimate_us, durations_from, notes}, and with "
          "--explain boundaries: [{earlier, later, earlier_name, later_name, "
          "relation, mechanism, reasons: [{hazard, bytes, first: {address, "
          "size}}], gain_us}].\n"
          "\nExit code: 0 planned; 2 wrong usage, a trace that cannot be "
          "planned, durations of another step, or no device to measure on.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
