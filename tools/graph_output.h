// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_GRAPH_OUTPUT_H_
#define HEDDLE_TOOLS_GRAPH_OUTPUT_H_

// `heddle graph` as text and as JSON.

#include <string>

#include "nlohmann/json.hpp"
#include "tools/step_analysis.h"

namespace heddle::tools {

// The numbers, and with `all` every operation with what it has to follow.
std::string GraphToText(const StepAnalysis& analysis, bool all);

// Keys are only ever added; kGraphJsonHelp is the document.
nlohmann::ordered_json GraphToJson(const StepAnalysis& analysis);
extern const char kGraphJsonHelp[];

// "read-after-write 4.00 KiB at 0x7f0000000000": the bytes in all, and where
// the first of them is.
std::string ReasonToText(const plan::Reason& reason);
// {"hazard", "address", "size", "bytes"}: the last three if there are bytes;
// address and size are those of the first extent.
nlohmann::ordered_json ReasonToJson(const plan::Reason& reason);

// {"index", "record", "node", "kind", "name", "grid", "block"}, as far as the
// operation has it.
nlohmann::ordered_json OperationToJson(const StepAnalysis& analysis,
                                       uint32_t index);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_GRAPH_OUTPUT_H_
