// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/happens_before.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/graph_shape.h"

namespace heddle::plan {

absl::StatusOr<HappensBefore> HappensBefore::Create(
    const std::vector<Node>& nodes, absl::Span<const Edge> edges,
    absl::Span<const cubin::Prologue> prologue) {
  if (prologue.size() != nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(prologue.size(), " prologues for ", nodes.size(),
                     " nodes: give one a node"));
  }
  const absl::StatusOr<GraphShape> shape = ShapeOf(nodes, edges);
  if (!shape.ok()) return shape.status();
  HappensBefore order;
  order.chain_.resize(nodes.size());
  order.position_.resize(nodes.size());
  order.reach_.resize(nodes.size());
  size_t numbers = 0;
  for (const uint32_t node : shape->order) {
    std::vector<uint32_t>& row = order.reach_[node];
    for (const uint32_t i : shape->in[node]) {
      const uint32_t from = edges[i].from;
      if (!IsStrong(edges[i], prologue)) continue;
      const std::vector<uint32_t>& before = order.reach_[from];
      row.resize(std::max(
          {row.size(), before.size(), size_t{order.chain_[from]} + 1}));
      for (size_t c = 0; c < before.size(); ++c) {
        row[c] = std::max(row[c], before[c]);
      }
      uint32_t& own = row[order.chain_[from]];
      own = std::max(own, order.position_[from] + 1);
    }
    // The first chain all of which comes before the node.
    uint32_t chain = 0;
    while (chain < row.size() && row[chain] != order.chains_[chain].size()) {
      ++chain;
    }
    if (chain == row.size()) {
      chain = static_cast<uint32_t>(order.chains_.size());
      order.chains_.emplace_back();
    }
    order.chain_[node] = chain;
    order.position_[node] = static_cast<uint32_t>(order.chains_[chain].size());
    order.chains_[chain].push_back(node);
    numbers += row.size();
    if (numbers > kMaxNumbers) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the order of ", nodes.size(), " nodes is too wide to be checked (",
          order.chains_.size(), " independent chains): plan fewer branches"));
    }
  }
  return order;
}

}  // namespace heddle::plan
