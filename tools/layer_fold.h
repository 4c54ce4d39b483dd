// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_LAYER_FOLD_H_
#define HEDDLE_TOOLS_LAYER_FOLD_H_

// A dependency graph that a person can look at: the layers of a model, which
// run the same kernels one after another, become one layer.

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/dependencies.h"

namespace heddle::tools {

// Operations [first, first + period * count) are `count` times the same.
struct Repeat {
  uint32_t first = 0;
  uint32_t period = 0;
  uint32_t count = 0;  // 0: nothing is repeated
  uint32_t end() const { return first + period * count; }
};

// The repetition that leaves the fewest operations to draw. `kinds`: what each
// operation runs, equal numbers for the same.
Repeat FindRepeat(absl::Span<const uint32_t> kinds);

struct FoldedNode {
  uint32_t operation = 0;  // the first one that it stands for
  uint32_t count = 1;      // how many it stands for
};

// Edges between operations of two nodes that are equally far apart.
struct FoldedEdge {
  uint32_t from = 0;  // indices of nodes
  uint32_t to = 0;
  // Layers from one to the other; 0: none, or one of the two is in no layer.
  uint32_t distance = 0;
  uint32_t count = 0;                 // of edges
  std::array<uint32_t, 5> hazards{};  // edges that have it, by plan::Hazard
  // Of the reason of an edge that has most.
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
};

struct FoldedGraph {
  Repeat repeat;
  std::vector<FoldedNode> nodes;  // by operation
  std::vector<FoldedEdge> edges;  // by from, to, distance
  uint32_t layer_begin = 0;       // nodes of the layer, half open
  uint32_t layer_end = 0;
};

// `repeat` with count 0: each operation is a node of its own.
FoldedGraph Fold(uint32_t operations,
                 absl::Span<const plan::DependencyEdge> edges,
                 const Repeat& repeat);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_LAYER_FOLD_H_
