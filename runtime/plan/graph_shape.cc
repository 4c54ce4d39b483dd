// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/graph_shape.h"

#include <functional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heddle::plan {
namespace {

// What cuda.h says about CUgraphEdgeData; null if `edge` keeps to it.
const char* WrongEdgeData(const Edge& edge, const Node& from, const Node& to) {
  if (edge.to_port != 0) return "no node has another incoming port than 0";
  if (edge.type > kTypeProgrammatic) return "unknown type";
  if (edge.from_port > kPortLaunchOrder) return "unknown port";
  if (edge.from_port != kPortDefault && !from.kernel) {
    return "only kernels have ports other than 0";
  }
  if (edge.from_port == kPortProgrammatic && edge.type != kTypeProgrammatic) {
    return "the programmatic port needs the programmatic type";
  }
  if (edge.type == kTypeProgrammatic) {
    if (!from.kernel || !to.kernel) {
      return "the programmatic type is for edges between kernels";
    }
    if (edge.from_port == kPortDefault) {
      return "the programmatic type needs a port other than 0";
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<GraphShape> ShapeOf(const std::vector<Node>& nodes,
                                   absl::Span<const Edge> edges) {
  GraphShape shape;
  shape.in.resize(nodes.size());
  shape.out.resize(nodes.size());
  absl::flat_hash_set<std::pair<uint32_t, uint32_t>> known;
  for (uint32_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    const char* wrong = nullptr;
    if (edge.from >= nodes.size() || edge.to >= nodes.size()) {
      wrong = "there is no such node";
    } else if (!known.insert({edge.from, edge.to}).second) {
      wrong = "there are two of them";
    } else {
      wrong = WrongEdgeData(edge, nodes[edge.from], nodes[edge.to]);
    }
    if (wrong != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "edge ", i, " (", edge.from, " to ", edge.to, "): ", wrong));
    }
    shape.out[edge.from].push_back(i);
    shape.in[edge.to].push_back(i);
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  std::vector<size_t> pending(nodes.size());
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    pending[node] = shape.in[node].size();
    if (pending[node] == 0) ready.push(node);
  }
  shape.order.reserve(nodes.size());
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    shape.order.push_back(node);
    for (const uint32_t i : shape.out[node]) {
      if (--pending[edges[i].to] == 0) ready.push(edges[i].to);
    }
  }
  if (shape.order.size() != nodes.size()) {
    return absl::InvalidArgumentError("the edges form a cycle");
  }
  return shape;
}

}  // namespace heddle::plan
