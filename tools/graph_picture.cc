// SPDX-License-Identifier: Apache-2.0
#include "tools/graph_picture.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/dot_text.h"
#include "tools/names.h"

namespace heddle::tools {
namespace {

// What an operation runs, whatever its shape.
std::string KindOf(const replay::Operation& operation) {
  if (const replay::LaunchWork* launch = operation.launch()) {
    return absl::StrCat("k", launch->kernel);
  }
  if (const replay::CopyWork* copy = operation.copy()) {
    return absl::StrCat("c", copy->dst.host, copy->src.host);
  }
  return operation.fill() != nullptr ? "f" : "e";
}

uint32_t Hazards(const FoldedEdge& edge, plan::Hazard hazard) {
  return edge.hazards[static_cast<size_t>(hazard)];
}

std::vector<std::string> NodeLines(const StepAnalysis& analysis,
                                   const FoldedNode& node) {
  const replay::Operation& operation = analysis.operation(node.operation);
  std::vector<std::string> lines = {
      absl::StrCat(node.operation, " ",
                   DotShorten(ShortName(analysis.names[node.operation], 48)))};
  if (const replay::LaunchWork* launch = operation.launch()) {
    lines.push_back(BlocksText(*launch));
  }
  const access::AccessSet& set = analysis.access[node.operation];
  if (!set.reads_known() || !set.writes_known()) {
    lines.push_back(set.reads_known()    ? "writes unknown"
                    : set.writes_known() ? "reads unknown"
                                         : "reads and writes unknown");
  }
  return lines;
}

const char* DotColor(const FoldedEdge& edge) {
  switch (ColorOf(edge)) {
    case EdgeColor::kData:
      return "\"#0969da\"";
    case EdgeColor::kReuse:
      return "\"#bf8700\"";
    case EdgeColor::kUnknown:
      return "\"#cf222e\"";
  }
  return "black";
}

}  // namespace

std::string BlocksText(const replay::LaunchWork& launch) {
  const uint64_t blocks =
      uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  return absl::StrCat(blocks, blocks == 1 ? " block" : " blocks");
}

FoldedGraph FoldStep(const StepAnalysis& analysis, bool all) {
  Repeat repeat;
  if (!all) {
    absl::flat_hash_map<std::string, uint32_t> numbers;
    std::vector<uint32_t> kinds;
    for (uint32_t op = 0; op < analysis.size(); ++op) {
      kinds.push_back(numbers
                          .try_emplace(KindOf(analysis.operation(op)),
                                       static_cast<uint32_t>(numbers.size()))
                          .first->second);
    }
    repeat = FindRepeat(kinds);
  }
  return Fold(analysis.size(), analysis.needed.edges, repeat);
}

EdgeColor ColorOf(const FoldedEdge& edge) {
  if (Hazards(edge, plan::Hazard::kReadAfterWrite) != 0) {
    return EdgeColor::kData;
  }
  if (Hazards(edge, plan::Hazard::kWriteAfterRead) != 0 ||
      Hazards(edge, plan::Hazard::kWriteAfterWrite) != 0) {
    return EdgeColor::kReuse;
  }
  return EdgeColor::kUnknown;
}

std::string EdgeText(const FoldedGraph& graph, const FoldedEdge& edge) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < edge.hazards.size(); ++i) {
    if (edge.hazards[i] == 0) continue;
    parts.emplace_back(plan::HazardName(static_cast<plan::Hazard>(i)));
  }
  if (edge.most_bytes != 0) {
    parts.push_back(edge.least_bytes == edge.most_bytes
                        ? Bytes(edge.most_bytes)
                        : absl::StrCat(Bytes(edge.least_bytes), " to ",
                                       Bytes(edge.most_bytes)));
  }
  // Once in each layer, or from each to the next, needs no mention.
  const uint32_t usual = graph.repeat.count - edge.distance;
  const bool inside = edge.from >= graph.layer_begin &&
                      edge.from < graph.layer_end &&
                      edge.to >= graph.layer_begin && edge.to < graph.layer_end;
  if (inside ? edge.count != usual : edge.count != 1) {
    parts.push_back(edge.count == 1 ? "once"
                                    : absl::StrCat(edge.count, " times"));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (edge.distance == 1) return absl::StrCat("next layer: ", text);
  if (edge.distance > 1) {
    return absl::StrCat(edge.distance, " layers on: ", text);
  }
  return text;
}

std::string GraphToDot(const StepAnalysis& analysis, const FoldedGraph& graph) {
  std::string dot = absl::StrCat(
      "digraph step {\n  rankdir=TB;\n  node [shape=box];\n"
      "  labelloc=t;\n  label=",
      DotQuote(absl::StrCat(analysis.Title(), ": what needs what")), ";\n");
  const auto add_nodes = [&](uint32_t begin, uint32_t end, const char* indent) {
    for (uint32_t i = begin; i < end; ++i) {
      absl::StrAppend(&dot, indent, "n", i, " [label=",
                      DotQuoteLines(NodeLines(analysis, graph.nodes[i])),
                      "];\n");
    }
  };
  const auto nodes = static_cast<uint32_t>(graph.nodes.size());
  add_nodes(0, graph.layer_begin, "  ");
  if (graph.repeat.count != 0) {
    absl::StrAppend(
        &dot, "  subgraph cluster_layer {\n    style=dashed;\n", "    label=",
        DotQuote(absl::StrCat("x", graph.repeat.count, ", ",
                              graph.repeat.period, " operations each")),
        ";\n");
    add_nodes(graph.layer_begin, graph.layer_end, "    ");
    absl::StrAppend(&dot, "  }\n");
  }
  add_nodes(graph.layer_end, nodes, "  ");
  for (const FoldedEdge& edge : graph.edges) {
    absl::StrAppend(&dot, "  n", edge.from, " -> n", edge.to,
                    " [color=", DotColor(edge),
                    ", label=", DotQuote(EdgeText(graph, edge)));
    if (edge.distance != 0) {
      absl::StrAppend(&dot, ", style=dashed, constraint=false");
    }
    absl::StrAppend(&dot, "];\n");
  }
  return dot + "}\n";
}

}  // namespace heddle::tools
