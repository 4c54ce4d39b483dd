// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_GRAPH_SHAPE_H_
#define HEDDLE_RUNTIME_PLAN_GRAPH_SHAPE_H_

// What every algorithm of this folder needs to know about a graph first.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/plan/overlap.h"

namespace heddle::plan {

// A graph's edges by node, and its nodes in an order in which every edge leads
// forward (by index where the edges leave a choice).
struct GraphShape {
  std::vector<std::vector<uint32_t>> in;   // per node: indices of edges
  std::vector<std::vector<uint32_t>> out;  // the same
  std::vector<uint32_t> order;             // nodes
};

// InvalidArgument: an index out of range, a cycle, two edges between the same
// nodes, edge data that cuda.h does not allow.
absl::StatusOr<GraphShape> ShapeOf(const std::vector<Node>& nodes,
                                   absl::Span<const Edge> edges);

inline bool IsFull(const Edge& edge) {
  return edge.type == kTypeDefault && edge.from_port == kPortDefault;
}

// Whether `prologue` holds back the body until what precedes the kernel by
// programmatic edges is complete.
inline bool Waits(cubin::Prologue prologue) {
  return prologue != cubin::Prologue::kNone;
}

// Whether the edge's producer is complete, and what it wrote visible, before
// the body of its consumer begins. Why, and why only paths of such edges order
// nodes that no edge joins, is in order.cc.
inline bool IsStrong(const Edge& edge,
                     absl::Span<const cubin::Prologue> prologue) {
  return IsFull(edge) ||
         (edge.type == kTypeProgrammatic && Waits(prologue[edge.to]));
}

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_GRAPH_SHAPE_H_
