// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_PLAN_RANDOM_GRAPH_H_
#define HEDDLE_TESTS_UNIT_PLAN_RANDOM_GRAPH_H_

#include <cstdint>
#include <random>

#include "runtime/plan/overlap.h"

namespace heddle::plan {

using Random = std::mt19937;

inline uint32_t Below(Random& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}
inline bool OneIn(Random& random, uint32_t n) { return random() % n == 0; }

struct GraphMix {
  uint32_t min_nodes = 1;
  uint32_t max_nodes = 6;
  uint32_t max_blocks = 4;
  // One node in so many, 0 for none: copies and the like, kernels that cannot
  // be patched, kernels with PDL of their own, cooperative launches.
  uint32_t others = 6;
  uint32_t unpatchable = 6;
  uint32_t own_pdl = 5;
  uint32_t cooperative = 12;
  uint32_t shared_image = 0;  // the kernel is from one of three such images
  // One edge between two kernels with PDL of their own in so many is not full.
  uint32_t own_edges = 2;
  // Whether those may use the launch-order port.
  bool own_launch_order = true;
};

// Edges lead from lower to higher numbers. Long chains, wide graphs and all in
// between occur.
Graph RandomGraph(Random& random, const GraphMix& mix);

// A plan for `graph` that need not be a good one: conversions and prologues at
// random, all of them edge data and prologues that a driver would take.
OverlapPlan RandomPlan(Random& random, const Graph& graph);

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_UNIT_PLAN_RANDOM_GRAPH_H_
