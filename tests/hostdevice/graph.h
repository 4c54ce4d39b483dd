// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_GRAPH_H_
#define HEDDLE_TESTS_HOSTDEVICE_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/hostdevice/device.h"
#include "tests/hostdevice/work.h"

namespace heddle::hostdevice {

struct GraphNode;

struct GraphEdge {
  GraphNode* from = nullptr;
  GraphNode* to = nullptr;
  CUgraphEdgeData data{};
};

// What a CUgraphNode points to.
struct GraphNode {
  GraphNode();
  ~GraphNode();
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;

  Graph* graph = nullptr;
  uint64_t id = 0;  // in its graph, from 1; clones keep it
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work;
  bool enabled = true;  // in executable graphs
};

// What a CUgraph points to.
struct Graph {
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  uint64_t id = 0;
  uint64_t next_node_id = 1;
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in order of addition
  std::vector<GraphEdge> edges;                   // the same
  uint64_t cloned_from = 0;                       // id of the original
  GraphNode* parent = nullptr;  // of a child graph: the node that owns it
  bool capturing = false;
  std::map<UserObject*, unsigned> user_objects;  // references held

  GraphNode* Find(uint64_t node_id) const;
};

// What a CUgraphExec points to: a copy of the graph, changed by updates.
struct GraphExec {
  uint64_t id = 0;
  uint64_t flags = 0;
  Context* context = nullptr;
  std::shared_ptr<Graph> graph;
  uint64_t source_graph_id = 0;
  Dependency last_launch;  // launches of one executable follow one another
};

// Every live node, child graphs included, for checking handles.
GraphNode* FindNode(CUgraphNode handle);
// A graph or a child graph.
Graph* FindGraph(CUgraph handle);

GraphNode* AddNode(Graph* graph, CUgraphNodeType type, Work work);
// CUDA_ERROR_INVALID_VALUE for nodes of other graphs, an edge that exists
// already, edge data that the nodes do not allow, or a cycle.
CUresult AddEdges(Graph* graph, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData* data, size_t count);
CUresult CheckEdgeData(const GraphNode* from, const GraphNode* to,
                       const CUgraphEdgeData& data);
bool HasCycle(const Graph& graph);

// A deep copy with the same node ids. Its nodes are live handles.
std::unique_ptr<Graph> CloneGraph(const Graph& graph);

// Nodes such that every edge leads forward; empty if there is a cycle.
std::vector<GraphNode*> TopologicalOrder(const Graph& graph);

Port EdgePort(const CUgraphEdgeData& data);
bool EdgeIsProgrammatic(const CUgraphEdgeData& data);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_GRAPH_H_
