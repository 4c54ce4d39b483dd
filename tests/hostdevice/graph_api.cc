// SPDX-License-Identifier: Apache-2.0
// Graphs as a whole: making, copying, nodes and edges.

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/graph.h"
#include "tests/hostdevice/module.h"

namespace heddle::hostdevice {
namespace {

CUgraphNode Handle(GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(node);
}

// The driver's way to return lists: a null array asks for the count, a longer
// one is filled up with null.
template <typename T>
void FillList(const std::vector<T>& list, T* out, size_t capacity) {
  if (out == nullptr) return;
  for (size_t i = 0; i < capacity; ++i) {
    out[i] = i < list.size() ? list[i] : T{};
  }
}

CUresult ReturnNodes(const std::vector<CUgraphNode>& list, CUgraphNode* nodes,
                     size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FillList(list, nodes, *count);
  *count = nodes == nullptr ? list.size() : std::min(*count, list.size());
  return CUDA_SUCCESS;
}

// v1 of the edge functions cannot tell edge data: they refuse graphs that have
// some.
bool HasEdgeData(const GraphEdge& edge) {
  return edge.data.from_port != 0 || edge.data.type != 0;
}

CUresult ReturnEdges(const std::vector<GraphEdge>& edges, bool with_data,
                     CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                     size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> from_list;
  std::vector<CUgraphNode> to_list;
  std::vector<CUgraphEdgeData> data_list;
  bool lossy = false;
  for (const GraphEdge& edge : edges) {
    from_list.push_back(Handle(edge.from));
    to_list.push_back(Handle(edge.to));
    data_list.push_back(edge.data);
    lossy = lossy || HasEdgeData(edge);
  }
  const bool asked = from != nullptr || to != nullptr;
  if (asked && lossy && (!with_data || data == nullptr)) {
    return CUDA_ERROR_LOSSY_QUERY;
  }
  FillList(from_list, from, *count);
  FillList(to_list, to, *count);
  FillList(data_list, data, *count);
  *count = asked ? std::min(*count, edges.size()) : edges.size();
  return CUDA_SUCCESS;
}

CUresult GraphEdges(CUgraph hGraph, bool with_data, CUgraphNode* from,
                    CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  HD_ENTER(kInit);
  const Graph* graph = FindGraph(hGraph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ReturnEdges(graph->edges, with_data, from, to, data, count);
}

// The edges into a node (or out of it), as the other end's list.
CUresult Neighbours(CUgraphNode hNode, bool into, bool with_data,
                    CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  HD_ENTER(kInit);
  const GraphNode* node = FindNode(hNode);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphEdge> edges;
  for (const GraphEdge& edge : node->graph->edges) {
    if ((into ? edge.to : edge.from) == node) edges.push_back(edge);
  }
  return ReturnEdges(edges, with_data, into ? nodes : nullptr,
                     into ? nullptr : nodes, data, count);
}

CUresult AddDependencies(CUgraph hGraph, const CUgraphNode* from,
                         const CUgraphNode* to, const CUgraphEdgeData* data,
                         size_t count) {
  HD_ENTER(kInit);
  Graph* graph = FindGraph(hGraph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddEdges(graph, from, to, data, count);
}

CUresult RemoveDependencies(CUgraph hGraph, const CUgraphNode* from,
                            const CUgraphNode* to, const CUgraphEdgeData* data,
                            size_t count) {
  HD_ENTER(kInit);
  Graph* graph = FindGraph(hGraph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) return CUDA_SUCCESS;
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUgraphEdgeData wanted =
        data != nullptr ? data[i] : CUgraphEdgeData{};
    const auto it = std::find_if(
        graph->edges.begin(), graph->edges.end(), [&](const GraphEdge& edge) {
          return Handle(edge.from) == from[i] && Handle(edge.to) == to[i] &&
                 edge.data.from_port == wanted.from_port &&
                 edge.data.type == wanted.type;
        });
    if (it == graph->edges.end()) return CUDA_ERROR_INVALID_VALUE;
    graph->edges.erase(it);
  }
  return CUDA_SUCCESS;
}

}  // namespace

HD_API(cuGraphCreate, (CUgraph * phGraph, unsigned int flags)) {
  HD_ENTER(kInit);
  if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = reinterpret_cast<CUgraph>(Device::Get().graphs.New());
  return CUDA_SUCCESS;
}

HD_API(cuGraphDestroy, (CUgraph hGraph)) {
  HD_ENTER(kInit);
  Graph* graph = Device::Get().graphs.Find(hGraph);
  if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  Device::Get().graphs.Delete(graph);
  return CUDA_SUCCESS;
}

HD_API(cuGraphClone, (CUgraph * phGraphClone, CUgraph originalGraph)) {
  HD_ENTER(kInit);
  const Graph* graph = FindGraph(originalGraph);
  if (graph == nullptr || phGraphClone == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *phGraphClone =
      reinterpret_cast<CUgraph>(Device::Get().graphs.Add(CloneGraph(*graph)));
  return CUDA_SUCCESS;
}

HD_API(cuGraphNodeFindInClone, (CUgraphNode * phNode, CUgraphNode hOriginalNode,
                                CUgraph hClonedGraph)) {
  HD_ENTER(kInit);
  const GraphNode* original = FindNode(hOriginalNode);
  const Graph* clone = FindGraph(hClonedGraph);
  if (original == nullptr || clone == nullptr || phNode == nullptr ||
      clone->cloned_from != original->graph->id) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode* found = clone->Find(original->id);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *phNode = Handle(found);
  return CUDA_SUCCESS;
}

HD_API(cuGraphDestroyNode, (CUgraphNode hNode)) {
  HD_ENTER(kInit);
  GraphNode* node = FindNode(hNode);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // cuda.h: nodes that allocate or free memory stay.
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
      node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Graph* graph = node->graph;
  std::erase_if(graph->edges, [node](const GraphEdge& edge) {
    return edge.from == node || edge.to == node;
  });
  std::erase_if(graph->nodes,
                [node](const auto& n) { return n.get() == node; });
  return CUDA_SUCCESS;
}

HD_API(cuGraphNodeGetType, (CUgraphNode hNode, CUgraphNodeType* type)) {
  HD_ENTER(kInit);
  const GraphNode* node = FindNode(hNode);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

HD_API(cuGraphGetNodes,
       (CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes)) {
  HD_ENTER(kInit);
  const Graph* graph = FindGraph(hGraph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> list;
  for (const auto& node : graph->nodes) list.push_back(Handle(node.get()));
  return ReturnNodes(list, nodes, numNodes);
}

HD_API(cuGraphGetRootNodes,
       (CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes)) {
  HD_ENTER(kInit);
  const Graph* graph = FindGraph(hGraph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> list;
  for (const auto& node : graph->nodes) {
    if (std::none_of(graph->edges.begin(), graph->edges.end(),
                     [&](const GraphEdge& e) { return e.to == node.get(); })) {
      list.push_back(Handle(node.get()));
    }
  }
  return ReturnNodes(list, rootNodes, numRootNodes);
}

HD_API(cuGraphGetEdges,
       (CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges)) {
  return GraphEdges(hGraph, false, from, to, nullptr, numEdges);
}

HD_API(cuGraphGetEdges_v2, (CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edgeData, size_t* numEdges)) {
  return GraphEdges(hGraph, true, from, to, edgeData, numEdges);
}

HD_API(cuGraphNodeGetDependencies,
       (CUgraphNode hNode, CUgraphNode* dependencies,
        size_t* numDependencies)) {
  return Neighbours(hNode, true, false, dependencies, nullptr, numDependencies);
}

HD_API(cuGraphNodeGetDependencies_v2,
       (CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData,
        size_t* numDependencies)) {
  return Neighbours(hNode, true, true, dependencies, edgeData, numDependencies);
}

HD_API(cuGraphNodeGetDependentNodes,
       (CUgraphNode hNode, CUgraphNode* dependentNodes,
        size_t* numDependentNodes)) {
  return Neighbours(hNode, false, false, dependentNodes, nullptr,
                    numDependentNodes);
}

HD_API(cuGraphNodeGetDependentNodes_v2,
       (CUgraphNode hNode, CUgraphNode* dependentNodes,
        CUgraphEdgeData* edgeData, size_t* numDependentNodes)) {
  return Neighbours(hNode, false, true, dependentNodes, edgeData,
                    numDependentNodes);
}

HD_API(cuGraphAddDependencies,
       (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
        size_t numDependencies)) {
  return AddDependencies(hGraph, from, to, nullptr, numDependencies);
}

HD_API(cuGraphAddDependencies_v2,
       (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
        const CUgraphEdgeData* edgeData, size_t numDependencies)) {
  return AddDependencies(hGraph, from, to, edgeData, numDependencies);
}

HD_API(cuGraphRemoveDependencies,
       (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
        size_t numDependencies)) {
  return RemoveDependencies(hGraph, from, to, nullptr, numDependencies);
}

HD_API(cuGraphRemoveDependencies_v2,
       (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
        const CUgraphEdgeData* edgeData, size_t numDependencies)) {
  return RemoveDependencies(hGraph, from, to, edgeData, numDependencies);
}

HD_API(cuGraphDebugDotPrint,
       (CUgraph hGraph, const char* path, unsigned int flags)) {
  HD_ENTER(kInit);
  (void)flags;  // how much detail
  const Graph* graph = FindGraph(hGraph);
  if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fprintf(file, "digraph graph_%llu {\n",
               static_cast<unsigned long long>(graph->id));
  for (const auto& node : graph->nodes) {
    const auto* kernel = std::get_if<KernelWork>(&node->work);
    const std::string label = kernel != nullptr
                                  ? kernel->function->name
                                  : "type " + std::to_string(node->type);
    std::fprintf(file, "  n%llu [label=\"%s\"];\n",
                 static_cast<unsigned long long>(node->id), label.c_str());
  }
  for (const GraphEdge& edge : graph->edges) {
    std::fprintf(file, "  n%llu -> n%llu [label=\"%d/%d\"];\n",
                 static_cast<unsigned long long>(edge.from->id),
                 static_cast<unsigned long long>(edge.to->id),
                 edge.data.from_port, edge.data.type);
  }
  std::fputs("}\n", file);
  return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace heddle::hostdevice
