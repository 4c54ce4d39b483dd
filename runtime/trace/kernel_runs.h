// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_KERNEL_RUNS_H_
#define HEDDLE_RUNTIME_TRACE_KERNEL_RUNS_H_

// Every kernel that a trace runs, whether launched by itself or by a graph.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "heddle/trace.h"

namespace heddle::trace {

// Follows the graphs and executable graphs of a trace. Feed it every record in
// order.
class GraphState {
 public:
  void Follow(const Record& record);

  // The kernel nodes that `launch` runs, in the order of the graph's nodes,
  // those of child graphs in place: with the parameters that the executable
  // graph has by now, without nodes that were switched off. Empty if the trace
  // lacks the graph.
  std::vector<const fb::Launch*> Kernels(const fb::GraphLaunch& launch) const;

  const fb::Graph* Find(uint32_t graph_id) const;

 private:
  // Of one executable graph, by {Graph.id, node index}.
  struct Exec {
    absl::flat_hash_map<std::pair<uint32_t, uint32_t>, const fb::GraphNode*>
        updates;
    absl::flat_hash_map<std::pair<uint32_t, uint32_t>, bool> enabled;
  };
  void Expand(uint32_t graph_id, const Exec& exec,
              std::vector<const fb::Launch*>* kernels) const;

  absl::flat_hash_map<uint32_t, const fb::Graph*> graphs_;
  absl::flat_hash_map<uint64_t, Exec> execs_;
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_KERNEL_RUNS_H_
