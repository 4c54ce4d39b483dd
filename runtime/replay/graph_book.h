// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_GRAPH_BOOK_H_
#define HEDDLE_RUNTIME_REPLAY_GRAPH_BOOK_H_

// What an executable graph of the program held when it was launched: the
// structure from its Graph record, changed by the updates that came after.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/replay/operation.h"

namespace heddle::replay {

// A node of a graph with its child graphs laid open. Nodes come in an order in
// which every dependency has a smaller index.
struct ExpandedNode {
  // nullptr: no work (entry and exit of a child graph, a disabled node).
  const fb::GraphNode* node = nullptr;
  int32_t index = -1;  // in its own graph
  std::vector<Dependency> dependencies;
};

// The nodes from `first` on whose end no other of them waits for: when they
// have ended, all have. A node that only has programmatic successors is one.
std::vector<Dependency> LastNodes(const std::vector<ExpandedNode>& nodes,
                                  size_t first);

class GraphBook {
 public:
  static constexpr size_t kMaxNodes = 1u << 20;
  static constexpr int kMaxDepth = 16;

  void Observe(const fb::Graph& graph);
  void Observe(const fb::GraphExec& exec);

  // The content of executable graph `exec` now; `hint` is the Graph.id of the
  // launch record, for executables whose creation the trace does not hold.
  // Errors: NotFound (no such graph), InvalidArgument (edges that make no
  // sense), ResourceExhausted (more than kMaxNodes).
  absl::StatusOr<std::vector<ExpandedNode>> Expand(uint64_t exec,
                                                   uint32_t hint) const;

 private:
  using NodeKey = std::pair<uint32_t, uint32_t>;  // Graph.id, node index
  struct Exec {
    uint32_t instantiated = 0;  // Graph.id
    uint32_t current = 0;       // Graph.id of the last update
    std::map<NodeKey, const fb::GraphNode*> updates;
    std::map<NodeKey, bool> enabled;
  };

  absl::Status ExpandInto(uint32_t graph_id, const Exec* exec, int depth,
                          const Dependency* entry,
                          std::vector<ExpandedNode>& out) const;

  absl::flat_hash_map<uint32_t, const fb::Graph*> graphs_;
  absl::flat_hash_map<uint64_t, Exec> execs_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_GRAPH_BOOK_H_
