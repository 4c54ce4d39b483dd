// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/graph.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tests/hostdevice/user_object.h"

namespace heddle::hostdevice {
namespace {

std::unordered_set<const void*>& LiveNodes() {
  static auto& nodes = *new std::unordered_set<const void*>;
  return nodes;
}

std::unordered_set<const void*>& LiveGraphs() {
  static auto& graphs = *new std::unordered_set<const void*>;
  return graphs;
}

}  // namespace

GraphNode::GraphNode() { LiveNodes().insert(this); }
GraphNode::~GraphNode() { LiveNodes().erase(this); }
Graph::Graph() : id(Device::Get().NewId()) { LiveGraphs().insert(this); }
Graph::~Graph() {
  LiveGraphs().erase(this);
  ReleaseUserObjects(user_objects);
}

GraphNode* FindNode(CUgraphNode handle) {
  return LiveNodes().count(handle) != 0 ? reinterpret_cast<GraphNode*>(handle)
                                        : nullptr;
}

Graph* FindGraph(CUgraph handle) {
  return LiveGraphs().count(handle) != 0 ? reinterpret_cast<Graph*>(handle)
                                         : nullptr;
}

GraphNode* Graph::Find(uint64_t node_id) const {
  for (const auto& node : nodes) {
    if (node->id == node_id) return node.get();
  }
  return nullptr;
}

GraphNode* AddNode(Graph* graph, CUgraphNodeType type, Work work) {
  auto node = std::make_unique<GraphNode>();
  node->graph = graph;
  node->id = graph->next_node_id++;
  node->type = type;
  node->work = std::move(work);
  if (auto* kernel = std::get_if<KernelWork>(&node->work)) kernel->BindViews();
  if (auto* child = std::get_if<ChildWork>(&node->work)) {
    child->graph->parent = node.get();
  }
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

CUresult CheckEdgeData(const GraphNode* from, const GraphNode* to,
                       const CUgraphEdgeData& data) {
  if (data.to_port != 0 || data.from_port > 2 || data.type > 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const unsigned char byte : data.reserved) {
    if (byte != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  // cuda.h: only kernel nodes define ports, programmatic dependencies are
  // between kernel nodes and leave by a port, and the programmatic port needs
  // that type.
  const bool from_kernel = from->type == CU_GRAPH_NODE_TYPE_KERNEL;
  if (data.from_port != 0 && !from_kernel) return CUDA_ERROR_INVALID_VALUE;
  if (data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) {
    if (!from_kernel || to->type != CU_GRAPH_NODE_TYPE_KERNEL ||
        data.from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  } else if (data.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult AddEdges(Graph* graph, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData* data, size_t count) {
  if (count == 0) return CUDA_SUCCESS;
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphEdge> added;
  std::set<std::pair<const GraphNode*, const GraphNode*>> known;
  for (const GraphEdge& edge : graph->edges) known.insert({edge.from, edge.to});
  for (size_t i = 0; i < count; ++i) {
    GraphEdge edge{FindNode(from[i]), FindNode(to[i]),
                   data != nullptr ? data[i] : CUgraphEdgeData{}};
    if (edge.from == nullptr || edge.to == nullptr ||
        edge.from->graph != graph || edge.to->graph != graph ||
        edge.from == edge.to) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    HD_TRY(CheckEdgeData(edge.from, edge.to, edge.data));
    if (!known.insert({edge.from, edge.to}).second) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    added.push_back(edge);
  }
  graph->edges.insert(graph->edges.end(), added.begin(), added.end());
  return CUDA_SUCCESS;
}

std::vector<GraphNode*> TopologicalOrder(const Graph& graph) {
  std::unordered_map<const GraphNode*, size_t> pending;
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> consumers;
  for (const GraphEdge& edge : graph.edges) {
    ++pending[edge.to];
    consumers[edge.from].push_back(edge.to);
  }
  std::vector<GraphNode*> order;
  for (const auto& node : graph.nodes) {
    if (pending[node.get()] == 0) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (GraphNode* consumer : consumers[order[i]]) {
      if (--pending[consumer] == 0) order.push_back(consumer);
    }
  }
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

bool HasCycle(const Graph& graph) {
  if (TopologicalOrder(graph).size() != graph.nodes.size()) return true;
  for (const auto& node : graph.nodes) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    if (child != nullptr && HasCycle(*child->graph)) return true;
  }
  return false;
}

std::unique_ptr<Graph> CloneGraph(const Graph& graph) {
  auto clone = std::make_unique<Graph>();
  clone->next_node_id = graph.next_node_id;
  clone->cloned_from = graph.id;
  clone->user_objects = graph.user_objects;
  for (const auto& [object, count] : clone->user_objects) {
    object->references += count;
  }
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : graph.nodes) {
    auto copy = std::make_unique<GraphNode>();
    copy->graph = clone.get();
    copy->id = node->id;
    copy->type = node->type;
    copy->enabled = node->enabled;
    copy->work = node->work;
    if (auto* kernel = std::get_if<KernelWork>(&copy->work)) {
      kernel->BindViews();
    }
    if (auto* child = std::get_if<ChildWork>(&copy->work)) {
      child->graph = CloneGraph(*child->graph);
      child->graph->parent = copy.get();
    }
    copies[node.get()] = copy.get();
    clone->nodes.push_back(std::move(copy));
  }
  for (const GraphEdge& edge : graph.edges) {
    clone->edges.push_back({copies[edge.from], copies[edge.to], edge.data});
  }
  return clone;
}

Port EdgePort(const CUgraphEdgeData& data) {
  switch (data.from_port) {
    case CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC:
      return Port::kTriggered;
    case CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER:
      return Port::kBegun;
    default:
      return Port::kComplete;
  }
}

bool EdgeIsProgrammatic(const CUgraphEdgeData& data) {
  return data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
}

}  // namespace heddle::hostdevice
