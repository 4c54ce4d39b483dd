// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {
namespace {

bool Happens(Random& random, uint32_t one_in) {
  return one_in != 0 && OneIn(random, one_in);
}

}  // namespace

Graph RandomGraph(Random& random, const GraphMix& mix) {
  Graph graph;
  const uint32_t count =
      mix.min_nodes + Below(random, mix.max_nodes - mix.min_nodes + 1);
  for (uint32_t i = 0; i < count; ++i) {
    Node node;
    node.kernel = !Happens(random, mix.others);
    if (node.kernel) {
      node.patchable = !Happens(random, mix.unpatchable);
      node.has_own_pdl = Happens(random, mix.own_pdl);
      node.shared_image =
          Happens(random, mix.shared_image) ? 1 + Below(random, 3) : 0;
      node.needs.blocks = 1 + Below(random, mix.max_blocks);
      node.needs.threads = 32;
      node.needs.registers = 32;
      node.needs.cooperative = Happens(random, mix.cooperative);
    }
    graph.nodes.push_back(node);
  }
  // Of three: mostly a chain, sparse, dense.
  const uint32_t shape = Below(random, 3);
  for (uint32_t to = 1; to < count; ++to) {
    for (uint32_t from = 0; from < to; ++from) {
      const bool next = from + 1 == to;
      if (shape == 0 ? !next && !OneIn(random, 8)
                     : !OneIn(random, shape == 1 ? 4 : 2)) {
        continue;
      }
      Edge edge{from, to};
      if (graph.nodes[from].has_own_pdl && graph.nodes[to].has_own_pdl &&
          Happens(random, mix.own_edges)) {
        edge.type = kTypeProgrammatic;
        edge.from_port = kPortProgrammatic;
        if (mix.own_launch_order && OneIn(random, 3)) {
          edge.from_port = kPortLaunchOrder;
          if (OneIn(random, 3)) edge.type = kTypeDefault;
        }
      }
      graph.edges.push_back(edge);
    }
  }
  return graph;
}

OverlapPlan RandomPlan(Random& random, const Graph& graph) {
  OverlapPlan plan;
  plan.edges = graph.edges;
  plan.prologue.resize(graph.nodes.size());
  // How much is tampered with: plans that are nearly right matter most.
  const uint32_t calm = 1 + Below(random, 4);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kernel && graph.nodes[i].patchable &&
        !OneIn(random, 2 + calm)) {
      plan.prologue[i] = static_cast<cubin::Prologue>(Below(random, 4));
    }
  }
  for (Edge& edge : plan.edges) {
    if (OneIn(random, calm) || !graph.nodes[edge.from].kernel) continue;
    const bool kernels = graph.nodes[edge.to].kernel;
    if (!kernels || OneIn(random, 10)) {
      edge.type = kTypeDefault;
      edge.from_port = OneIn(random, 2) ? kPortDefault : kPortLaunchOrder;
    } else {
      edge.type = kTypeProgrammatic;
      edge.from_port = OneIn(random, 2) ? kPortProgrammatic : kPortLaunchOrder;
    }
  }
  return plan;
}

}  // namespace heddle::plan
