// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_EXPLAIN_H_
#define HEDDLE_TOOLS_EXPLAIN_H_

// `heddle explain`: what one operation of a step touches, how that is known,
// and who has to wait for whom because of it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tools/names.h"
#include "tools/step_analysis.h"

namespace heddle::tools {

// Index of the operation that "N" or "N.M" names: of record N as `heddle dump`
// counts, of node M of the graph that it launches. Errors: InvalidArgument, and
// NotFound for a record that has none, or several, in the step.
absl::StatusOr<uint32_t> FindCall(const StepAnalysis& analysis,
                                  const std::string& call);

// An operation that conflicts with another one.
struct Conflict {
  uint32_t operation = 0;
  bool needed = false;  // else other edges imply it
  std::vector<plan::Reason> reasons;
};

// Everything about one operation.
struct Explanation {
  uint32_t operation = 0;
  std::vector<Conflict> before;  // it waits for these, by index
  std::vector<Conflict> after;   // these wait for it
};

Explanation Explain(const StepAnalysis& analysis, uint32_t operation);

// `buffers`: those that are live when the operation is submitted.
std::string ExplanationToText(const StepAnalysis& analysis,
                              const Explanation& explanation,
                              const Buffers& buffers);
// Keys are only ever added; kExplainJsonHelp is the document.
nlohmann::ordered_json ExplanationToJson(const StepAnalysis& analysis,
                                         const Explanation& explanation,
                                         const Buffers& buffers);
extern const char kExplainJsonHelp[];

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_EXPLAIN_H_
