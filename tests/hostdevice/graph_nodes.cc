// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: adding them, and reading and changing their parameters.

#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/graph_params.h"
#include "tests/hostdevice/module.h"

namespace heddle::hostdevice {
namespace {

CUresult Add(CUgraphNode* out, CUgraph hGraph, const CUgraphNode* dependencies,
             const CUgraphEdgeData* data, size_t count, CUgraphNodeType type,
             Work work) {
  Graph* graph = FindGraph(hGraph);
  if (graph == nullptr || out == nullptr ||
      (count > 0 && dependencies == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode* node = AddNode(graph, type, std::move(work));
  const std::vector<CUgraphNode> to(count, reinterpret_cast<CUgraphNode>(node));
  const CUresult result = AddEdges(graph, dependencies, to.data(), data, count);
  if (result != CUDA_SUCCESS) {
    graph->nodes.pop_back();
    return result;
  }
  *out = reinterpret_cast<CUgraphNode>(node);
  return CUDA_SUCCESS;
}

// The work of a node if it is of this kind.
template <typename T>
T* Get(CUgraphNode handle) {
  GraphNode* node = FindNode(handle);
  return node == nullptr ? nullptr : std::get_if<T>(&node->work);
}

CUresult AddGeneric(CUgraphNode* out, CUgraph hGraph,
                    const CUgraphNode* dependencies,
                    const CUgraphEdgeData* data, size_t count,
                    CUgraphNodeParams* params) {
  HD_ENTER(kContext);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  HD_TRY(ToWork(*params, call.context(), &work));
  if (const auto* alloc = std::get_if<AllocWork>(&work)) {
    params->alloc.dptr = alloc->alloc.dptr;
  }
  HD_TRY(Add(out, hGraph, dependencies, data, count, params->type,
             std::move(work)));
  if (auto* child = Get<ChildWork>(*out)) {
    params->graph.graph = reinterpret_cast<CUgraph>(child->graph.get());
  }
  return CUDA_SUCCESS;
}

}  // namespace

HD_API(cuGraphAddNode, (CUgraphNode * phGraphNode, CUgraph hGraph,
                        const CUgraphNode* dependencies, size_t numDependencies,
                        CUgraphNodeParams* nodeParams)) {
  return AddGeneric(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                    nodeParams);
}

HD_API(cuGraphAddNode_v2,
       (CUgraphNode * phGraphNode, CUgraph hGraph,
        const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
        size_t numDependencies, CUgraphNodeParams* nodeParams)) {
  return AddGeneric(phGraphNode, hGraph, dependencies, dependencyData,
                    numDependencies, nodeParams);
}

HD_API(cuGraphNodeSetParams,
       (CUgraphNode hNode, CUgraphNodeParams* nodeParams)) {
  HD_ENTER(kContext);
  GraphNode* node = FindNode(hNode);
  if (node == nullptr || nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
      node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Work work;
  HD_TRY(ToWork(*nodeParams, call.context(), &work));
  return Replace(std::move(work), node);
}

// The parameters of one kind of node: how they are added, read and changed.
#define HD_NODE_KIND(kind, add_symbol, get_symbol, set_symbol, Params, type,   \
                     WorkType, to_work, from_work)                             \
  HD_API(add_symbol, (CUgraphNode * phGraphNode, CUgraph hGraph,               \
                      const CUgraphNode* dependencies, size_t numDependencies, \
                      const Params* nodeParams)) {                             \
    HD_ENTER(kContext);                                                        \
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;                \
    WorkType work;                                                             \
    HD_TRY(to_work(*nodeParams, call.context(), &work));                       \
    return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,    \
               type, std::move(work));                                         \
  }                                                                            \
  HD_API(get_symbol, (CUgraphNode hNode, Params * nodeParams)) {               \
    HD_ENTER(kContext);                                                        \
    auto* work = Get<WorkType>(hNode);                                         \
    if (work == nullptr || nodeParams == nullptr) {                            \
      return CUDA_ERROR_INVALID_VALUE;                                         \
    }                                                                          \
    return from_work(work, nodeParams);                                        \
  }                                                                            \
  HD_API(set_symbol, (CUgraphNode hNode, const Params* nodeParams)) {          \
    HD_ENTER(kContext);                                                        \
    if (Get<WorkType>(hNode) == nullptr || nodeParams == nullptr) {            \
      return CUDA_ERROR_INVALID_VALUE;                                         \
    }                                                                          \
    WorkType work;                                                             \
    HD_TRY(to_work(*nodeParams, call.context(), &work));                       \
    return Replace(std::move(work), FindNode(hNode));                          \
  }

namespace {

// The pointers in the answer belong to the node.
CUresult FromKernelWork(KernelWork* work, CUDA_KERNEL_NODE_PARAMS_v2* out) {
  *out = {};
  if (work->kernel != nullptr) {
    out->kern = work->kernel;
    out->ctx = reinterpret_cast<CUcontext>(work->context);
  } else {
    out->func = reinterpret_cast<CUfunction>(work->function);
  }
  out->gridDimX = work->grid[0];
  out->gridDimY = work->grid[1];
  out->gridDimZ = work->grid[2];
  out->blockDimX = work->block[0];
  out->blockDimY = work->block[1];
  out->blockDimZ = work->block[2];
  out->sharedMemBytes = work->shared_bytes;
  if (work->via_extra) {
    out->extra = work->extra;
  } else if (!work->param_pointers.empty()) {
    out->kernelParams = work->param_pointers.data();
  }
  return CUDA_SUCCESS;
}

CUresult FromKernelWork(KernelWork* work, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  CUDA_KERNEL_NODE_PARAMS_v2 newer;
  FromKernelWork(work, &newer);
  *out = {};
  // The older struct has no place for a CUkernel.
  out->func = reinterpret_cast<CUfunction>(work->function);
  out->gridDimX = newer.gridDimX;
  out->gridDimY = newer.gridDimY;
  out->gridDimZ = newer.gridDimZ;
  out->blockDimX = newer.blockDimX;
  out->blockDimY = newer.blockDimY;
  out->blockDimZ = newer.blockDimZ;
  out->sharedMemBytes = newer.sharedMemBytes;
  out->kernelParams = newer.kernelParams;
  out->extra = newer.extra;
  return CUDA_SUCCESS;
}

CUresult ToHost(const CUDA_HOST_NODE_PARAMS_v1& params, Context* context,
                HostWork* out) {
  (void)context;
  return ToHostWork(params, out);
}

CUresult FromHost(const HostWork* work, CUDA_HOST_NODE_PARAMS_v1* out) {
  *out = work->host;
  return CUDA_SUCCESS;
}

CUresult FromMemOp(const MemOpWork* work,
                   CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* out) {
  out->ctx = reinterpret_cast<CUcontext>(work->context);
  out->count = static_cast<unsigned>(work->ops.size());
  out->paramArray = const_cast<CUstreamBatchMemOpParams*>(work->ops.data());
  out->flags = work->flags;
  return CUDA_SUCCESS;
}

}  // namespace

HD_NODE_KIND(kernel, cuGraphAddKernelNode, cuGraphKernelNodeGetParams,
             cuGraphKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS_v1,
             CU_GRAPH_NODE_TYPE_KERNEL, KernelWork, ToKernelWork,
             FromKernelWork)
HD_NODE_KIND(kernel, cuGraphAddKernelNode_v2, cuGraphKernelNodeGetParams_v2,
             cuGraphKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS_v2,
             CU_GRAPH_NODE_TYPE_KERNEL, KernelWork, ToKernelWork,
             FromKernelWork)
HD_NODE_KIND(host, cuGraphAddHostNode, cuGraphHostNodeGetParams,
             cuGraphHostNodeSetParams, CUDA_HOST_NODE_PARAMS_v1,
             CU_GRAPH_NODE_TYPE_HOST, HostWork, ToHost, FromHost)
HD_NODE_KIND(memory operation, cuGraphAddBatchMemOpNode,
             cuGraphBatchMemOpNodeGetParams, cuGraphBatchMemOpNodeSetParams,
             CUDA_BATCH_MEM_OP_NODE_PARAMS_v1, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
             MemOpWork, ToMemOpWork, FromMemOp)

HD_API(cuGraphAddMemcpyNode,
       (CUgraphNode * phGraphNode, CUgraph hGraph,
        const CUgraphNode* dependencies, size_t numDependencies,
        const CUDA_MEMCPY3D* copyParams, CUcontext ctx)) {
  HD_ENTER(kContext);
  if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyWork work;
  HD_TRY(ToCopyWork(*copyParams, ctx, call.context(), &work));
  return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
             CU_GRAPH_NODE_TYPE_MEMCPY, std::move(work));
}

HD_API(cuGraphMemcpyNodeGetParams,
       (CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams)) {
  HD_ENTER(kContext);
  const auto* work = Get<CopyWork>(hNode);
  if (work == nullptr || nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *nodeParams = work->copy;
  return CUDA_SUCCESS;
}

HD_API(cuGraphMemcpyNodeSetParams,
       (CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams)) {
  HD_ENTER(kContext);
  const auto* old = Get<CopyWork>(hNode);
  if (old == nullptr || nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyWork work;
  HD_TRY(ToCopyWork(*nodeParams, nullptr, old->context, &work));
  return Replace(std::move(work), FindNode(hNode));
}

HD_API(cuGraphAddMemsetNode,
       (CUgraphNode * phGraphNode, CUgraph hGraph,
        const CUgraphNode* dependencies, size_t numDependencies,
        const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx)) {
  HD_ENTER(kContext);
  if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SetWork work;
  HD_TRY(ToSetWork(*memsetParams, ctx, call.context(), &work));
  return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
             CU_GRAPH_NODE_TYPE_MEMSET, work);
}

HD_API(cuGraphMemsetNodeGetParams,
       (CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams)) {
  HD_ENTER(kContext);
  const auto* work = Get<SetWork>(hNode);
  if (work == nullptr || nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *nodeParams = work->set;
  return CUDA_SUCCESS;
}

HD_API(cuGraphMemsetNodeSetParams,
       (CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams)) {
  HD_ENTER(kContext);
  const auto* old = Get<SetWork>(hNode);
  if (old == nullptr || nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SetWork work;
  HD_TRY(ToSetWork(*nodeParams, nullptr, old->context, &work));
  return Replace(work, FindNode(hNode));
}

HD_API(cuGraphAddEmptyNode,
       (CUgraphNode * phGraphNode, CUgraph hGraph,
        const CUgraphNode* dependencies, size_t numDependencies)) {
  HD_ENTER(kInit);
  return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
             CU_GRAPH_NODE_TYPE_EMPTY, EmptyWork{});
}

HD_API(cuGraphAddChildGraphNode, (CUgraphNode * phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies,
                                  size_t numDependencies, CUgraph childGraph)) {
  HD_ENTER(kInit);
  const Graph* child = FindGraph(childGraph);
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
             CU_GRAPH_NODE_TYPE_GRAPH, ChildWork{CloneGraph(*child)});
}

HD_API(cuGraphChildGraphNodeGetGraph, (CUgraphNode hNode, CUgraph* phGraph)) {
  HD_ENTER(kInit);
  const auto* work = Get<ChildWork>(hNode);
  if (work == nullptr || phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = reinterpret_cast<CUgraph>(work->graph.get());
  return CUDA_SUCCESS;
}

#define HD_EVENT_NODE(add_symbol, get_symbol, set_symbol, type, WorkType)      \
  HD_API(add_symbol, (CUgraphNode * phGraphNode, CUgraph hGraph,               \
                      const CUgraphNode* dependencies, size_t numDependencies, \
                      CUevent event)) {                                        \
    HD_ENTER(kInit);                                                           \
    Event* found = Device::Get().events.Find(event);                           \
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;                     \
    return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,    \
               type, WorkType{found});                                         \
  }                                                                            \
  HD_API(get_symbol, (CUgraphNode hNode, CUevent * event_out)) {               \
    HD_ENTER(kInit);                                                           \
    const auto* work = Get<WorkType>(hNode);                                   \
    if (work == nullptr || event_out == nullptr) {                             \
      return CUDA_ERROR_INVALID_VALUE;                                         \
    }                                                                          \
    *event_out = reinterpret_cast<CUevent>(work->event);                       \
    return CUDA_SUCCESS;                                                       \
  }                                                                            \
  HD_API(set_symbol, (CUgraphNode hNode, CUevent event)) {                     \
    HD_ENTER(kInit);                                                           \
    Event* found = Device::Get().events.Find(event);                           \
    auto* work = Get<WorkType>(hNode);                                         \
    if (work == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;  \
    work->event = found;                                                       \
    return CUDA_SUCCESS;                                                       \
  }

HD_EVENT_NODE(cuGraphAddEventRecordNode, cuGraphEventRecordNodeGetEvent,
              cuGraphEventRecordNodeSetEvent, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
              EventRecordWork)
HD_EVENT_NODE(cuGraphAddEventWaitNode, cuGraphEventWaitNodeGetEvent,
              cuGraphEventWaitNodeSetEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
              EventWaitWork)

HD_API(cuGraphAddMemAllocNode,
       (CUgraphNode * phGraphNode, CUgraph hGraph,
        const CUgraphNode* dependencies, size_t numDependencies,
        CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams)) {
  HD_ENTER(kContext);
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  AllocWork work;
  work.alloc = *nodeParams;
  HD_TRY(AllocateForGraph(call.context(), &work));
  nodeParams->dptr = work.alloc.dptr;
  return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
             CU_GRAPH_NODE_TYPE_MEM_ALLOC, std::move(work));
}

HD_API(cuGraphMemAllocNodeGetParams,
       (CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out)) {
  HD_ENTER(kInit);
  const auto* work = Get<AllocWork>(hNode);
  if (work == nullptr || params_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params_out = work->alloc;
  return CUDA_SUCCESS;
}

HD_API(cuGraphAddMemFreeNode, (CUgraphNode * phGraphNode, CUgraph hGraph,
                               const CUgraphNode* dependencies,
                               size_t numDependencies, CUdeviceptr dptr)) {
  HD_ENTER(kContext);
  return Add(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
             CU_GRAPH_NODE_TYPE_MEM_FREE, FreeWork{dptr});
}

HD_API(cuGraphMemFreeNodeGetParams,
       (CUgraphNode hNode, CUdeviceptr* dptr_out)) {
  HD_ENTER(kInit);
  const auto* work = Get<FreeWork>(hNode);
  if (work == nullptr || dptr_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *dptr_out = work->address;
  return CUDA_SUCCESS;
}

HD_API(cuGraphKernelNodeSetAttribute,
       (CUgraphNode hNode, CUkernelNodeAttrID attr,
        const CUkernelNodeAttrValue* value)) {
  HD_ENTER(kInit);
  auto* work = Get<KernelWork>(hNode);
  if (work == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUlaunchAttribute attribute{};
  attribute.id = attr;
  attribute.value = *value;
  return SetKernelAttribute(attribute, work);
}

HD_API(cuGraphKernelNodeGetAttribute,
       (CUgraphNode hNode, CUkernelNodeAttrID attr,
        CUkernelNodeAttrValue* value_out)) {
  HD_ENTER(kInit);
  const auto* work = Get<KernelWork>(hNode);
  if (work == nullptr || value_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return GetKernelAttribute(attr, *work, value_out);
}

HD_API(cuGraphKernelNodeCopyAttributes, (CUgraphNode dst, CUgraphNode src)) {
  HD_ENTER(kInit);
  auto* to = Get<KernelWork>(dst);
  const auto* from = Get<KernelWork>(src);
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  to->attributes = from->attributes;
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
