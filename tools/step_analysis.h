// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_STEP_ANALYSIS_H_
#define HEDDLE_TOOLS_STEP_ANALYSIS_H_

// A step with what is known about the memory of its operations, and the order
// that follows from it: for `heddle graph`, `explain` and `info --access`.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "nlohmann/json.hpp"
#include "runtime/access/access_set.h"
#include "runtime/plan/dependencies.h"
#include "runtime/replay/program.h"
#include "tools/replay_run.h"

namespace heddle::tools {

struct StepAnalysis {
  std::string trace;  // path
  ChosenStep step;
  replay::OperationList operations;
  std::vector<std::string> names;  // of operations, for people
  // By operation. Accesses of unknown sides are those that are known anyway.
  std::vector<access::AccessSet> access;
  std::vector<plan::Effects> effects;
  plan::Dependencies needed;
  std::vector<std::string> notes;  // what a reader must know, one line each

  const replay::Operation& operation(uint32_t i) const {
    return operations.operations[i];
  }
  uint32_t size() const {
    return static_cast<uint32_t>(operations.operations.size());
  }
  // "llama.htrace, step 2 (graph, 16 in all)".
  std::string Title() const;
};

// Errors: those of ChooseStep, BuildProgram and FindAccesses.
absl::StatusOr<StepAnalysis> AnalyseStep(const trace::Reader& reader,
                                         int64_t step, const std::string& by,
                                         bool mangled);

// Finds effects and order; everything else is there.
void FindOrder(StepAnalysis& analysis);

// "nn::gemv<128>" as "gemv<128>", or as "gemv" where that is too long; at most
// `width` characters.
std::string ShortName(const std::string& name, size_t width);

inline constexpr size_t kHazards = 5;
inline constexpr size_t kProvenances = 5;

// A step in numbers.
struct AccessStats {
  uint64_t operations = 0;
  uint64_t launches = 0;
  uint64_t copies = 0;
  uint64_t fills = 0;

  uint64_t recorded_edges = 0;  // of the order that the program asked for
  // Those of them that no chain of needed edges asks for.
  uint64_t recorded_only = 0;
  uint64_t needed_edges = 0;
  // Those of them between operations that the program leaves unordered: it has
  // a race, or less is touched than what is known allows for.
  uint64_t needed_only = 0;
  std::array<uint64_t, kHazards> hazards{};  // needed edges that have it

  // Launches, by which sides are known.
  uint64_t known = 0;
  uint64_t reads_only = 0;
  uint64_t writes_only = 0;
  uint64_t unknown = 0;
  std::map<std::string, uint64_t> reasons;  // launches that are not known by it
  // Of launches, bytes by provenance: each access counts.
  std::array<uint64_t, kProvenances> read_bytes{};
  std::array<uint64_t, kProvenances> written_bytes{};

  // On the longest chain of needed edges, launches.
  uint64_t chain = 0;
  // Share of the time that k launches run beside each other, by k, if all take
  // equally long and nothing but needed edges holds them back.
  std::vector<double> beside;
};

AccessStats CountAccesses(const StepAnalysis& analysis);

// Lines of text without an indent, {label, value}; a label may be empty.
std::vector<std::pair<std::string, std::string>> StatsToLines(
    const AccessStats& stats);
// Keys are only ever added; kAccessStatsHelp is the document.
nlohmann::ordered_json StatsToJson(const AccessStats& stats);
extern const char kAccessStatsHelp[];

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_STEP_ANALYSIS_H_
