// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_DOT_EXPORT_H_
#define HEDDLE_TOOLS_DOT_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/trace/steps.h"

namespace heddle::tools {

// Pictures for Graphviz's dot.

// Every Graph of the trace, or the one of that id (0: all), as a digraph with
// a cluster for each. NotFound if there is none.
absl::StatusOr<std::string> GraphsToDot(const trace::Reader& reader,
                                        uint32_t id, bool mangled);

// The work of a step and what orders it: streams, events, synchronization. A
// column for each stream.
std::string StepToDot(const trace::Reader& reader, const trace::Step& step,
                      bool mangled);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_DOT_EXPORT_H_
