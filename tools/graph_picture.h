// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_GRAPH_PICTURE_H_
#define HEDDLE_TOOLS_GRAPH_PICTURE_H_

// Pictures of what a step's operations need of each other.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/layer_fold.h"
#include "tools/step_analysis.h"

namespace heddle::tools {

std::string BlocksText(const replay::LaunchWork& launch);  // "132 blocks"

// With `all` every operation by itself, else with the repeated layer once.
FoldedGraph FoldStep(const StepAnalysis& analysis, bool all);

// What an edge is drawn like: the strongest of its hazards.
enum class EdgeColor : uint8_t {
  kData,     // read-after-write
  kReuse,    // memory is used again: write-after-read, write-after-write
  kUnknown,  // unknown access, ordering point
};
EdgeColor ColorOf(const FoldedEdge& edge);

// "read-after-write, 8.00 KiB", "next layer: write-after-read, 23 times".
std::string EdgeText(const FoldedGraph& graph, const FoldedEdge& edge);

// For Graphviz's dot. An edge to the next layer is dashed.
std::string GraphToDot(const StepAnalysis& analysis, const FoldedGraph& graph);

// A picture that stands by itself. Titles of nodes and edges say more.
std::string GraphToSvg(const StepAnalysis& analysis, const FoldedGraph& graph);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_GRAPH_PICTURE_H_
