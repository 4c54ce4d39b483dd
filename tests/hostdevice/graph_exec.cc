// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiation, updates, launches.

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/graph_params.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

constexpr unsigned long long kInstantiateFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
    CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult InstantiateGraph(CUgraphExec* out, CUgraph hGraph,
                          unsigned long long flags, Context* context) {
  const Graph* graph = FindGraph(hGraph);
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if ((flags & ~kInstantiateFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (HasCycle(*graph)) return CUDA_ERROR_INVALID_VALUE;
  Device& device = Device::Get();
  GraphExec* exec = device.graph_execs.New();
  exec->id = device.NewId();
  exec->flags = flags;
  exec->context = context;
  exec->graph = CloneGraph(*graph);
  exec->source_graph_id = graph->id;
  *out = reinterpret_cast<CUgraphExec>(exec);
  return CUDA_SUCCESS;
}

// The executable's copy of a node of the graph that it was made from, or of a
// child graph in it.
GraphNode* FindInExec(const GraphExec& exec, const GraphNode* node) {
  const Graph* graph = node->graph;
  if (graph->parent == nullptr) {
    return graph->id == exec.source_graph_id ? exec.graph->Find(node->id)
                                             : nullptr;
  }
  const GraphNode* parent = FindInExec(exec, graph->parent);
  if (parent == nullptr) return nullptr;
  return std::get<ChildWork>(parent->work).graph->Find(node->id);
}

// Turns a graph into operations between `begin` and an end that is returned.
class Expansion {
 public:
  Expansion(const GraphExec& exec, const Stream& stream)
      : exec_(exec), stream_(stream) {}

  // Makes all operations, submits none: an error leaves nothing behind.
  CUresult Expand(const Graph& graph, const std::shared_ptr<Op>& begin,
                  uint64_t top_node_id, std::shared_ptr<Op>* end) {
    std::unordered_map<const GraphNode*, Ends> made;
    std::set<const GraphNode*> has_consumer;
    std::set<const GraphNode*> has_producer;
    for (const GraphEdge& edge : graph.edges) {
      has_consumer.insert(edge.from);
      has_producer.insert(edge.to);
    }
    *end = Marker("graph end");
    for (GraphNode* node : TopologicalOrder(graph)) {
      const uint64_t node_id = top_node_id != 0 ? top_node_id : node->id;
      Ends& ends = made[node];
      HD_TRY(MakeNode(*node, node_id, &ends));
      if (has_producer.count(node) == 0) {
        dependencies_.push_back({ends.begin, {begin}});
      }
      for (const GraphEdge& edge : graph.edges) {
        if (edge.to != node) continue;
        dependencies_.push_back(
            {ends.begin, Dependency{made[edge.from].end, EdgePort(edge.data),
                                    EdgeIsProgrammatic(edge.data)}});
      }
      // The end waits for all nodes: one whose consumers do not wait for its
      // end has nobody else who does.
      dependencies_.push_back({*end, {ends.end}});
    }
    if (graph.nodes.empty()) dependencies_.push_back({*end, {begin}});
    return CUDA_SUCCESS;
  }

  // The operations in an order in which each is behind its producers.
  void Submit(const std::shared_ptr<Op>& last) {
    Scheduler& scheduler = Device::Get().scheduler();
    for (const auto& [op, dependency] : dependencies_) {
      scheduler.Depend(op.get(), dependency, op);
    }
    for (const std::shared_ptr<Op>& op : ops_) {
      if (op != last) scheduler.Submit(op);
    }
    for (const auto& [event, op] : records_) {
      event->recorded = true;
      event->capture = nullptr;
      event->last = {op};
    }
  }

  std::shared_ptr<Op> Marker(const char* name) {
    auto op = std::make_shared<Op>();
    op->activity.name = name;
    return Keep(std::move(op), 0);
  }

 private:
  struct Ends {
    std::shared_ptr<Op> begin;
    std::shared_ptr<Op> end;
  };

  std::shared_ptr<Op> Keep(std::shared_ptr<Op> op, uint64_t node_id) {
    op->activity.stream_id = stream_.id;
    op->activity.graph_exec_id = exec_.id;
    op->activity.graph_node_id = node_id;
    ops_.push_back(op);
    return op;
  }

  CUresult MakeNode(const GraphNode& node, uint64_t node_id, Ends* ends) {
    if (const auto* child = std::get_if<ChildWork>(&node.work)) {
      ends->begin = Marker("child graph");
      return Expand(*child->graph, ends->begin, node_id, &ends->end);
    }
    if (!node.enabled) {
      ends->begin = ends->end = Marker("disabled");
      return CUDA_SUCCESS;
    }
    std::shared_ptr<Op> op;
    HD_TRY(MakeOp(node.work, &op));
    ends->begin = ends->end = Keep(std::move(op), node_id);
    if (const auto* record = std::get_if<EventRecordWork>(&node.work)) {
      records_.push_back({record->event, ends->end});
    } else if (const auto* wait = std::get_if<EventWaitWork>(&node.work)) {
      if (wait->event->recorded && wait->event->capture == nullptr) {
        dependencies_.push_back({ends->begin, wait->event->last});
      }
    }
    return CUDA_SUCCESS;
  }

  const GraphExec& exec_;
  const Stream& stream_;
  std::vector<std::shared_ptr<Op>> ops_;
  std::vector<std::pair<std::shared_ptr<Op>, Dependency>> dependencies_;
  std::vector<std::pair<Event*, std::shared_ptr<Op>>> records_;
};

CUresult LaunchGraph(CUgraphExec hGraphExec, CUstream hStream) {
  HD_ENTER(kContext);
  Device& device = Device::Get();
  GraphExec* exec = device.graph_execs.Find(hGraphExec);
  Stream* stream = FindStream(call.context(), hStream);
  if (exec == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    // Captured as a child graph.
    return CaptureWork(stream, CU_GRAPH_NODE_TYPE_GRAPH,
                       ChildWork{CloneGraph(*exec->graph)}, false);
  }
  HD_TRY(CheckLegacy(stream));
  Expansion expansion(*exec, *stream);
  const std::shared_ptr<Op> begin = expansion.Marker("graph begin");
  std::shared_ptr<Op> end;
  HD_TRY(expansion.Expand(*exec->graph, begin, 0, &end));
  DependOnStream(stream, begin, false);
  device.scheduler().Depend(begin.get(), exec->last_launch, begin);
  expansion.Submit(end);
  device.scheduler().Submit(end);
  Advance(stream, end, false);
  exec->last_launch = {end};
  device.scheduler().Breathe(3);
  return CUDA_SUCCESS;
}

// Whether `update` has the same shape as `exec`, and takes its parameters over.
CUgraphExecUpdateResult UpdateFrom(Graph* exec, const Graph& update, bool apply,
                                   GraphNode** error_node) {
  *error_node = nullptr;
  if (exec->nodes.size() != update.nodes.size() ||
      exec->edges.size() != update.edges.size()) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  // Nodes are paired by their order of addition, as the driver pairs the nodes
  // of two captures of one program.
  std::unordered_map<const GraphNode*, const GraphNode*> pair;
  for (size_t i = 0; i < exec->nodes.size(); ++i) {
    GraphNode* old_node = exec->nodes[i].get();
    GraphNode* new_node = update.nodes[i].get();
    pair[new_node] = old_node;
    if (old_node->type != new_node->type) {
      *error_node = new_node;
      return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
    if (auto* child = std::get_if<ChildWork>(&old_node->work)) {
      const CUgraphExecUpdateResult result = UpdateFrom(
          child->graph.get(), *std::get<ChildWork>(new_node->work).graph, apply,
          error_node);
      if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return result;
    }
  }
  for (const GraphEdge& edge : update.edges) {
    const auto same = [&](const GraphEdge& old_edge) {
      return old_edge.from == pair[edge.from] && old_edge.to == pair[edge.to] &&
             old_edge.data.from_port == edge.data.from_port &&
             old_edge.data.type == edge.data.type;
    };
    if (std::none_of(exec->edges.begin(), exec->edges.end(), same)) {
      *error_node = edge.to;
      return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
  }
  if (!apply) return CU_GRAPH_EXEC_UPDATE_SUCCESS;
  for (size_t i = 0; i < exec->nodes.size(); ++i) {
    GraphNode* old_node = exec->nodes[i].get();
    if (std::holds_alternative<ChildWork>(old_node->work)) continue;
    old_node->work = update.nodes[i]->work;
    if (auto* kernel = std::get_if<KernelWork>(&old_node->work)) {
      kernel->BindViews();
    }
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult UpdateExec(CUgraphExec hGraphExec, CUgraph hGraph,
                    CUgraphExecUpdateResult* result, CUgraphNode* error_node) {
  HD_ENTER(kInit);
  GraphExec* exec = Device::Get().graph_execs.Find(hGraphExec);
  const Graph* graph = FindGraph(hGraph);
  *result = CU_GRAPH_EXEC_UPDATE_ERROR;
  *error_node = nullptr;
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* node = nullptr;
  *result = UpdateFrom(exec->graph.get(), *graph, false, &node);
  *error_node = reinterpret_cast<CUgraphNode>(node);
  if (*result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  UpdateFrom(exec->graph.get(), *graph, true, &node);
  return CUDA_SUCCESS;
}

// The node of an executable that a Set call means, if it holds this kind of
// work.
template <typename T>
CUresult FindWork(CUgraphExec hGraphExec, CUgraphNode hNode, GraphNode** out) {
  const GraphExec* exec = Device::Get().graph_execs.Find(hGraphExec);
  const GraphNode* node = FindNode(hNode);
  if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = FindInExec(*exec, node);
  if (*out == nullptr || !std::holds_alternative<T>((*out)->work)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

HD_API(cuGraphInstantiate,
       (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
        char* logBuffer, size_t bufferSize)) {
  HD_ENTER(kContext);
  if (phErrorNode != nullptr) *phErrorNode = nullptr;
  if (logBuffer != nullptr && bufferSize > 0) *logBuffer = 0;
  return InstantiateGraph(phGraphExec, hGraph, 0, call.context());
}

HD_API(cuGraphInstantiate_v2,
       (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
        char* logBuffer, size_t bufferSize)) {
  return cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer,
                            bufferSize);
}

HD_API(cuGraphInstantiateWithFlags,
       (CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags)) {
  HD_ENTER(kContext);
  return InstantiateGraph(phGraphExec, hGraph, flags, call.context());
}

HD_API(cuGraphInstantiateWithParams,
       (CUgraphExec * phGraphExec, CUgraph hGraph,
        CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams)) {
  HD_ENTER(kContext);
  if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  instantiateParams->hErrNode_out = nullptr;
  const CUresult result = InstantiateGraph(
      phGraphExec, hGraph, instantiateParams->flags, call.context());
  instantiateParams->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
      : FindGraph(hGraph) != nullptr && HasCycle(*FindGraph(hGraph))
          ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
          : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}
HD_API(cuGraphInstantiateWithParams_ptsz,
       (CUgraphExec * phGraphExec, CUgraph hGraph,
        CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams)) {
  return cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
}

HD_API(cuGraphExecGetFlags, (CUgraphExec hGraphExec, cuuint64_t* flags)) {
  HD_ENTER(kInit);
  const GraphExec* exec = Device::Get().graph_execs.Find(hGraphExec);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

HD_API(cuGraphExecDestroy, (CUgraphExec hGraphExec)) {
  HD_ENTER(kInit);
  GraphExec* exec = Device::Get().graph_execs.Find(hGraphExec);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // What was launched holds its own copies.
  Device::Get().graph_execs.Delete(exec);
  return CUDA_SUCCESS;
}

HD_API(cuGraphExecUpdate,
       (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
        CUgraphExecUpdateResult* updateResult_out)) {
  CUgraphExecUpdateResult result;
  CUgraphNode node;
  const CUresult status = UpdateExec(hGraphExec, hGraph, &result, &node);
  if (hErrorNode_out != nullptr) *hErrorNode_out = node;
  if (updateResult_out != nullptr) *updateResult_out = result;
  return status;
}

HD_API(cuGraphExecUpdate_v2, (CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo)) {
  CUgraphExecUpdateResult result;
  CUgraphNode node;
  const CUresult status = UpdateExec(hGraphExec, hGraph, &result, &node);
  if (resultInfo != nullptr) {
    resultInfo->result = result;
    resultInfo->errorNode = node;
    resultInfo->errorFromNode = nullptr;
  }
  return status;
}

HD_API(cuGraphExecKernelNodeSetParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode,
        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<KernelWork>(hGraphExec, hNode, &node));
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelWork work;
  HD_TRY(ToKernelWork(*nodeParams, call.context(), &work));
  return Replace(std::move(work), node);
}

HD_API(cuGraphExecKernelNodeSetParams_v2,
       (CUgraphExec hGraphExec, CUgraphNode hNode,
        const CUDA_KERNEL_NODE_PARAMS_v2* nodeParams)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<KernelWork>(hGraphExec, hNode, &node));
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelWork work;
  HD_TRY(ToKernelWork(*nodeParams, call.context(), &work));
  return Replace(std::move(work), node);
}

HD_API(cuGraphExecMemcpyNodeSetParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode,
        const CUDA_MEMCPY3D* copyParams, CUcontext ctx)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<CopyWork>(hGraphExec, hNode, &node));
  if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyWork work;
  HD_TRY(ToCopyWork(*copyParams, ctx, call.context(), &work));
  return Replace(std::move(work), node);
}

HD_API(cuGraphExecMemsetNodeSetParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode,
        const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<SetWork>(hGraphExec, hNode, &node));
  if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SetWork work;
  HD_TRY(ToSetWork(*memsetParams, ctx, call.context(), &work));
  return Replace(work, node);
}

HD_API(cuGraphExecHostNodeSetParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode,
        const CUDA_HOST_NODE_PARAMS* nodeParams)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<HostWork>(hGraphExec, hNode, &node));
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostWork work;
  HD_TRY(ToHostWork(*nodeParams, &work));
  return Replace(work, node);
}

HD_API(cuGraphExecBatchMemOpNodeSetParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode,
        const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<MemOpWork>(hGraphExec, hNode, &node));
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MemOpWork work;
  HD_TRY(ToMemOpWork(*nodeParams, call.context(), &work));
  return Replace(std::move(work), node);
}

HD_API(cuGraphExecChildGraphNodeSetParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<ChildWork>(hGraphExec, hNode, &node));
  const Graph* child = FindGraph(childGraph);
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* error_node = nullptr;
  Graph* old_child = std::get<ChildWork>(node->work).graph.get();
  if (UpdateFrom(old_child, *child, false, &error_node) !=
      CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  UpdateFrom(old_child, *child, true, &error_node);
  return CUDA_SUCCESS;
}

HD_API(cuGraphExecEventRecordNodeSetEvent,
       (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<EventRecordWork>(hGraphExec, hNode, &node));
  Event* found = Device::Get().events.Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->work = EventRecordWork{found};
  return CUDA_SUCCESS;
}

HD_API(cuGraphExecEventWaitNodeSetEvent,
       (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)) {
  HD_ENTER(kContext);
  GraphNode* node = nullptr;
  HD_TRY(FindWork<EventWaitWork>(hGraphExec, hNode, &node));
  Event* found = Device::Get().events.Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->work = EventWaitWork{found};
  return CUDA_SUCCESS;
}

HD_API(cuGraphExecNodeSetParams, (CUgraphExec hGraphExec, CUgraphNode hNode,
                                  CUgraphNodeParams* nodeParams)) {
  HD_ENTER(kContext);
  const GraphExec* exec = Device::Get().graph_execs.Find(hGraphExec);
  const GraphNode* node = FindNode(hNode);
  if (exec == nullptr || node == nullptr || nodeParams == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode* found = FindInExec(*exec, node);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (found->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
      found->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Work work;
  HD_TRY(ToWork(*nodeParams, call.context(), &work));
  return Replace(std::move(work), found);
}

HD_API(cuGraphNodeSetEnabled,
       (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)) {
  HD_ENTER(kInit);
  const GraphExec* exec = Device::Get().graph_execs.Find(hGraphExec);
  const GraphNode* node = FindNode(hNode);
  if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* found = FindInExec(*exec, node);
  // cuda.h: kernel, memset and memcpy nodes only.
  if (found == nullptr || (found->type != CU_GRAPH_NODE_TYPE_KERNEL &&
                           found->type != CU_GRAPH_NODE_TYPE_MEMSET &&
                           found->type != CU_GRAPH_NODE_TYPE_MEMCPY)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  found->enabled = isEnabled != 0;
  return CUDA_SUCCESS;
}

HD_API(cuGraphNodeGetEnabled,
       (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled)) {
  HD_ENTER(kInit);
  const GraphExec* exec = Device::Get().graph_execs.Find(hGraphExec);
  const GraphNode* node = FindNode(hNode);
  if (exec == nullptr || node == nullptr || isEnabled == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const GraphNode* found = FindInExec(*exec, node);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *isEnabled = found->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuGraphUpload, (CUgraphExec hGraphExec, CUstream hStream),
              (hGraphExec, hStream)) {
  HD_ENTER(kContext);
  if (Device::Get().graph_execs.Find(hGraphExec) == nullptr ||
      FindStream(call.context(), hStream) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;  // it is here already
}

HD_STREAM_API(cuGraphLaunch, (CUgraphExec hGraphExec, CUstream hStream),
              (hGraphExec, hStream)) {
  return LaunchGraph(hGraphExec, hStream);
}

}  // namespace heddle::hostdevice
