// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_PROBE_OUTPUT_H_
#define HEDDLE_TOOLS_PROBE_OUTPUT_H_

// What `heddle probe` prints.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/replay/observe.h"
#include "runtime/replay/program_access.h"
#include "runtime/report/report.h"
#include "tools/replay_run.h"

namespace heddle::tools {

struct ProbeResult {
  std::string trace;  // path
  ChosenStep step;
  report::DeviceProperties device;
  double seconds = 0;           // of observing
  std::string instruction_set;  // of the recorded device: "sm_90"
  std::vector<replay::Operation> operations;
  std::vector<std::string> names;  // of operations, for people
  replay::StepAccess predicted;
  replay::StepObservation observed;
  // Of each observation's first byte outside (or dependent), and of each
  // extent that was not watched: "0x7f… + 16 (of 4096 bytes)".
  std::vector<std::string> places;
  std::vector<std::string> unwatched_places;
  // Edges that the bytes ask for, by prediction and with what was observed.
  bool use_observed = false;
  uint64_t predicted_edges = 0;
  uint64_t combined_edges = 0;
  std::vector<std::string> notes;  // one line each
};

inline constexpr size_t kMatches = 4;

struct ProbeTotals {
  std::array<uint64_t, kMatches> matches{};  // operations
  uint64_t predicted = 0;                    // bytes of operations within
  uint64_t observed = 0;
  uint64_t unrepeatable = 0;  // operations

  uint64_t of(replay::Match match) const {
    return matches[static_cast<size_t>(match)];
  }
};
ProbeTotals CountProbe(const ProbeResult& result);

// The bytes for which an operation is worth a look: those outside, those that
// depend on more than is predicted, or all that are written.
const access::ExtentSet& RemarkableBytes(const replay::Observation& seen);

// `all`: a line for every operation, not only those that matter.
std::string ProbeToText(const ProbeResult& result, bool all);
// Keys are only ever added; kProbeJsonHelp is the document.
nlohmann::ordered_json ProbeToJson(const ProbeResult& result);
extern const char kProbeJsonHelp[];

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_PROBE_OUTPUT_H_
