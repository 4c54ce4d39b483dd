// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/report/report.h"
#include "runtime/rewrite/rewriter.h"
#include "tools/command.h"
#include "tools/replay_run.h"
#include "tools/retry_layout.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Nothing for "auto".
std::optional<plan::Style> StyleOf(const std::string& name) {
  for (const plan::Style style :
       {plan::Style::kProgrammatic, plan::Style::kProgrammaticEarly,
        plan::Style::kLaunchOrder}) {
    if (rewrite::StyleName(style) == name) return style;
  }
  return std::nullopt;
}

absl::StatusOr<int> Run(Invocation& call) {
  ReplayOptions options;
  std::string mode = "both";
  std::string by = "auto";
  std::string style = "auto";
  int64_t opt = 0;
  std::vector<std::string> reports;
  int64_t step_number = -1;
  int64_t loop = options.loop;
  int64_t device = 0;
  int64_t orders = 0;
  int64_t seed = 1;
  bool json = false;
  bool quiet = false;
  call.flags()
      .Int("step", "N", &step_number,
           "which step, from 0; -1: the largest that begins with a memory "
           "snapshot")
      .String("by", "SOURCE", &by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], repeat[:N]")
      .Choice("mode", {"serial", "graph", "both"}, &mode,
              "stream launches, one CUDA graph, or both in turn")
      .Int("opt", "LEVEL", &opt,
           "1: also run the graph rewritten so that each kernel starts before "
           "the one that it waits for has ended")
      .Choice("style",
              {"auto", "programmatic", "programmatic-early", "launch-order"},
              &style,
              "how kernels start early at --opt 1; auto tries programmatic "
              "and, where it is proved to be safe, launch-order")
      .Int("loop", "N", &loop, "runs that are timed; 0: none")
      .String("plan", "FILE", &options.plan,
              "also run the graph of this plan of the step, from `heddle plan`")
      .Int("orders", "N", &orders,
           "also verify N random orders of the plan, one operation at a time; "
           "implies --verify")
      .Int("seed", "S", &seed, "which random orders")
      .Bool("compare", &options.compare,
            "print how many times as fast as the graph each mode is")
      .Bool("verify", &options.verify,
            "compare memory after serial, graph and rewritten runs, on two "
            "inputs")
      .List("report", "FILE", &reports,
            "what the device did, as .txt, .json, .trace.json "
            "(chrome://tracing, ui.perfetto.dev) or .svg; - for the terminal")
      .Int("device", "N", &device, "ordinal of the device")
      .Bool("json", &json, "print the result as JSON")
      .Bool("quiet", &quiet, "no progress on stderr")
      .Short('q')
      .Int("drop-dependency", "N", &options.drop_dependency,
           "leave out edge N of the graph, to see that --verify finds it");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (loop < 0 || loop > 1000000) {
    return call.UsageError("--loop must be between 0 and 1000000");
  }
  if (step_number < -1) return call.UsageError("--step counts from 0");
  if (device < 0 || device > 1023) {
    return call.UsageError("--device must be an ordinal");
  }
  for (const std::string& path : reports) {
    if (path == "-") continue;
    if (absl::Status s = report::CheckReportName(path); !s.ok()) {
      return call.UsageError(s.message());
    }
  }
  if (opt != 0 && opt != 1) {
    return call.UsageError("--opt must be 0 or 1");
  }
  if (opt == 0 && call.flags().WasSet("style")) {
    return call.UsageError("--style needs --opt 1");
  }
  if (orders < 0 || orders > 1000000 || seed < 0) {
    return call.UsageError(
        "--orders must be between 0 and 1000000, --seed not negative");
  }
  if (options.plan.empty() && (orders > 0 || call.flags().WasSet("seed"))) {
    return call.UsageError("--orders and --seed need --plan");
  }
  if (options.compare && (mode == "serial" || loop == 0)) {
    return call.UsageError(
        "--compare needs timed runs of the graph: no --mode serial, no "
        "--loop 0");
  }
  options.orders = static_cast<int>(orders);
  options.seed = static_cast<uint64_t>(seed);
  options.verify |= orders > 0;
  options.opt = static_cast<int>(opt);
  options.style = StyleOf(style);
  options.serial = mode != "graph";
  options.graph = mode != "serial";
  options.loop = static_cast<int>(loop);
  options.device = static_cast<int>(device);
  options.watch = !reports.empty();
  if (!quiet) {
    options.progress = [](const std::string& line) {
      std::fprintf(stderr, "heddle replay: %s\n", line.c_str());
    };
  }
  // Images hold thousands of kernels of which a step uses a few. The program
  // may say otherwise.
  setenv("CUDA_MODULE_LOADING", "LAZY", 0);

  auto reader = OpenTrace(call.positional()[0]);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<ChosenStep> step = ChooseStep(**reader, step_number, by);
  if (!step.ok()) return step.status();
  absl::StatusOr<ReplayResult> result = RunReplay(**reader, *step, options);
  if (!result.ok()) {
    RunAgainOnCollision(result.status());
    return result.status();
  }
  for (const std::string& warning : result->warnings) {
    std::fprintf(stderr, "heddle replay: note: %s\n", warning.c_str());
  }
  if (json) {
    Print(ReplayToJson(*result).dump(2, ' ', false,
                                     nlohmann::json::error_handler_t::replace) +
          "\n");
  } else {
    Print(ReplayToText(*result));
  }
  const report::Report report = ToReport(*result);
  for (const std::string& path : reports) {
    if (path == "-") {
      Print("\n" + report::ToText(report, /*launches=*/false));
      continue;
    }
    if (absl::Status s = report::WriteReport(report, path); !s.ok()) return s;
    if (!quiet) {
      std::fprintf(stderr, "heddle replay: wrote %s\n", path.c_str());
    }
  }
  return result->verify && !result->verify->passed ? kExitNo : kExitOk;
}

}  // namespace

const Command& ReplayCommand() {
  static constexpr Command kCommand = {
      .name = "replay",
      .synopsis =
          "run a step of a trace again: as it was, as a graph, rewritten",
      .arguments = "[flags] TRACE",
      .help =
          "Loads the recorded images, puts memory at the recorded addresses "
          "and runs one step\nas stream launches (serial) and as one CUDA "
          "graph that is built node by node.\nEvery timed run starts from the "
          "same memory on an idle device; the time is that\nbetween two "
          "events around it (median, and half the range of the middle half).\n"
          "\n--opt 1 adds the graph in a rewritten form (O1): in front of "
          "every "
          "kernel's first instruction stands a wait for the kernels before it, "
          "so that its blocks can be on the device already while those still "
          "run. The order of the work stays. The styles differ in when that "
          "is: with programmatic, once all blocks of the kernel before have "
          "passed their own wait; with programmatic-early, once they have "
          "begun, so that several kernels may wait behind each other; with "
          "launch-order, as soon as the device gets to it, and only between "
          "kernels whose blocks provably fit on the device together. Which is "
          "fastest depends on the kernels: --style auto --compare measures it. "
          "A kernel that cannot be patched is left as it is, with the reason; "
          "where nothing can be rewritten (before sm_90), the level is not "
          "run.\n"
          "\n--plan FILE adds the graph of a plan that `heddle plan` made of "
          "this step. The plan is checked against the step, the device and "
          "what the operations touch before it runs. --orders N proves its "
          "order another way: the operations run one at a time in N random "
          "orders that the plan allows (another N for each --seed), and must "
          "leave what the recorded order leaves.\n"
          "\n--compare prints how many times as fast as the graph each mode "
          "is: "
          "the ratio of the medians of runs that took turns in this process, "
          "and half the range of the middle half of the ratios turn by turn.\n"
          "\n--verify runs all modes several times on two inputs and compares "
          "all memory byte\nfor byte. Kernels that are not repeatable "
          "themselves are named; they are no\nfailure. Where the trace holds "
          "all memory after the step, it is compared with that\ntoo.\n\n"
          "Ranges of which the trace knows only statistics (--memory small) "
          "are filled with\nseeded values. Exit code: 0 done and, with "
          "--verify, all the same; 1 not the same;\n2 wrong usage, a trace "
          "that "
          "cannot be replayed, or no device.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
