// SPDX-License-Identifier: Apache-2.0
#include "tools/layer_fold.h"

#include <algorithm>

#include "runtime/trace/periods.h"

namespace heddle::tools {

Repeat FindRepeat(absl::Span<const uint32_t> kinds) {
  const trace::SequenceHash hash(kinds);
  Repeat best;
  uint64_t saved = 0;
  for (const trace::Repetition& run : trace::FindRepetitions(kinds, hash)) {
    const uint64_t count = (run.end - run.begin) / run.period;
    if ((count - 1) * run.period <= saved) continue;
    saved = (count - 1) * run.period;
    best = {static_cast<uint32_t>(run.begin), static_cast<uint32_t>(run.period),
            static_cast<uint32_t>(count)};
  }
  return best;
}

FoldedGraph Fold(uint32_t operations,
                 absl::Span<const plan::DependencyEdge> edges,
                 const Repeat& repeat) {
  FoldedGraph folded;
  folded.repeat = repeat;
  std::vector<uint32_t> node(operations);
  const auto layer = [&](uint32_t op) {
    return (op - repeat.first) / repeat.period;
  };
  const auto in_layer = [&](uint32_t op) {
    return repeat.count != 0 && op >= repeat.first && op < repeat.end();
  };
  for (uint32_t op = 0; op < operations; ++op) {
    if (in_layer(op) && layer(op) > 0) {
      node[op] = node[op - repeat.period];
      ++folded.nodes[node[op]].count;
      continue;
    }
    node[op] = static_cast<uint32_t>(folded.nodes.size());
    if (in_layer(op)) {
      if (op == repeat.first) folded.layer_begin = node[op];
      folded.layer_end = node[op] + 1;
    }
    folded.nodes.push_back({op, 1});
  }

  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, FoldedEdge> merged;
  for (const plan::DependencyEdge& edge : edges) {
    const uint32_t from = node[edge.from];
    const uint32_t to = node[edge.to];
    const uint32_t distance = in_layer(edge.from) && in_layer(edge.to)
                                  ? layer(edge.to) - layer(edge.from)
                                  : 0;
    uint64_t bytes = 0;
    FoldedEdge& all = merged[{from, to, distance}];
    for (const plan::Reason& reason : edge.reasons) {
      ++all.hazards[static_cast<size_t>(reason.hazard)];
      bytes = std::max(bytes, reason.bytes);
    }
    all.from = from;
    all.to = to;
    all.distance = distance;
    all.least_bytes = all.count == 0 ? bytes : std::min(all.least_bytes, bytes);
    all.most_bytes = std::max(all.most_bytes, bytes);
    ++all.count;
  }
  for (const auto& [key, edge] : merged) folded.edges.push_back(edge);
  return folded;
}

}  // namespace heddle::tools
