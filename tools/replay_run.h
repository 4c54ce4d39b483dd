// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_REPLAY_RUN_H_
#define HEDDLE_TOOLS_REPLAY_RUN_H_

// The work of `heddle replay`: a step on a device, rewritten, verified, timed,
// watched.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/device/driver.h"
#include "runtime/plan/overlap.h"
#include "runtime/replay/program.h"
#include "runtime/replay/timing.h"
#include "runtime/replay/verifier.h"
#include "runtime/report/report.h"
#include "runtime/rewrite/rewriter.h"
#include "runtime/trace/steps.h"

namespace heddle::tools {

struct ReplayOptions {
  bool serial = true;
  bool graph = true;
  // Also the graph as rewritten at this level: 0 (not at all) or 1.
  int opt = 0;
  // How at level 1; unset: in each style that may be the fastest.
  std::optional<plan::Style> style;
  bool verify = false;
  bool compare = false;  // print how the modes compare with the graph
  bool watch = false;    // record what the device does, for a report
  int device = 0;
  int warm_up = 3;
  int loop = 20;
  int64_t drop_dependency = -1;  // see replay::GraphOptions
  std::string plan;              // also the graph of this plan file
  // Random orders of the plan that are compared when verifying, and which.
  int orders = 0;
  uint64_t seed = 1;
  std::function<void(const std::string&)> progress;
};

// The step that is replayed, and what it is called.
struct ChosenStep {
  replay::StepBounds bounds;
  int64_t index = -1;  // among `total`; -1: the whole trace
  uint64_t total = 0;
  std::string source;
};

// Step `number` of the trace, or (-1) the first that begins with a memory
// snapshot, else the first after one, else the first; the whole trace if it has
// no steps. `by` as in trace::StepOptions. Errors: InvalidArgument.
absl::StatusOr<ChosenStep> ChooseStep(const trace::Reader& reader,
                                      int64_t number, const std::string& by);

// The graph in one rewritten form.
struct RewrittenForm {
  std::string name;                 // of its executor
  std::string skipped;              // why it was not run; empty if it was
  rewrite::RewriteSummary summary;  // if it was run
};

struct Rewriting {
  std::vector<RewrittenForm> forms;
  // Images with variables that all modes run in their patched form.
  uint64_t replaced_modules = 0;
  // The mode of least median, graph and rewritten forms alone, that has not
  // failed verification; empty if nothing was timed.
  std::string fastest;
};

struct ReplayResult {
  std::string trace;
  ChosenStep step;
  report::DeviceProperties device;
  uint64_t launches = 0;
  uint64_t operations = 0;
  uint64_t dependencies = 0;
  uint64_t streams = 0;
  uint64_t kernels = 0;
  uint64_t images = 0;
  uint64_t memory_bytes = 0;
  uint64_t described_bytes = 0;  // filled with seeded values
  std::vector<std::string> warnings;
  std::vector<replay::Timing> timings;
  bool compare = false;  // the text holds ratios
  std::optional<Rewriting> rewriting;
  std::optional<replay::VerifyResult> verify;
  std::vector<report::Timeline> timelines;
};

// How much faster than the graph each of `timings` is, by index; nullopt for
// the graph itself, and for all if the graph was not timed.
std::vector<std::optional<replay::Speedup>> AgainstGraph(
    const std::vector<replay::Timing>& timings);

// Errors: what reading the trace, the device and the replay say. A failed
// verification is no error but a result.
absl::StatusOr<ReplayResult> RunReplay(const trace::Reader& reader,
                                       const ChosenStep& step,
                                       const ReplayOptions& options);

// One line: did it verify, and how.
std::string Conclusion(const ReplayResult& result);
report::Report ToReport(const ReplayResult& result);
std::string ReplayToText(const ReplayResult& result);
nlohmann::json ReplayToJson(const ReplayResult& result);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_REPLAY_RUN_H_
