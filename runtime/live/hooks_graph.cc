// SPDX-License-Identifier: Apache-2.0
// Hooks of capture and of executable graphs.

#include "runtime/live/hooks.h"
#include "runtime/live/optimizer.h"

namespace heddle::live {
namespace {

// ---- capture: no trial while one is open ----

void CaptureBegan(CUresult result) {
  if (result != CUDA_SUCCESS) return;
  WithOptimizer([](Optimizer& optimizer) { optimizer.CaptureBegan(); });
}

template <typename S>
CUresult BeginCaptureV1(CUstream stream) {
  const Gate::Pass pass;
  const CUresult result = S::Real(stream);
  CaptureBegan(result);
  return result;
}

template <typename S>
CUresult BeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  const Gate::Pass pass;
  const CUresult result = S::Real(stream, mode);
  CaptureBegan(result);
  return result;
}

template <typename S>
CUresult BeginCaptureToGraph(CUstream stream, CUgraph graph,
                             const CUgraphNode* dependencies,
                             const CUgraphEdgeData* data, size_t count,
                             CUstreamCaptureMode mode) {
  const Gate::Pass pass;
  const CUresult result =
      S::Real(stream, graph, dependencies, data, count, mode);
  CaptureBegan(result);
  return result;
}

template <typename S>
bool Captures(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  WithOptimizer([&](Optimizer& optimizer) {
    optimizer.driver().StreamIsCapturing(
        stream == nullptr && S::kPerThread ? CU_STREAM_PER_THREAD : stream,
        &status);
  });
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

template <typename S>
CUresult EndCapture(CUstream stream, CUgraph* graph) {
  const bool before = Captures<S>(stream);
  const CUresult result = S::Real(stream, graph);
  // An invalidated capture ends with an error; a call from the wrong thread
  // fails too, but leaves the capture open.
  if (before && !Captures<S>(stream)) {
    WithOptimizer([](Optimizer& optimizer) { optimizer.CaptureEnded(); });
  }
  return result;
}

// ---- instantiation, update, end ----

void Instantiated(CUgraphExec exec, CUgraph graph, uint64_t flags) {
  WithOptimizer([&](Optimizer& optimizer) {
    optimizer.Instantiated(exec, graph, flags);
  });
}

template <typename S>
CUresult InstantiateWithLog(CUgraphExec* exec, CUgraph graph,
                            CUgraphNode* error_node, char* log, size_t size) {
  const CUresult result = S::Real(exec, graph, error_node, log, size);
  if (result == CUDA_SUCCESS) Instantiated(*exec, graph, 0);
  return result;
}

template <typename S>
CUresult InstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                              unsigned long long flags) {
  const CUresult result = S::Real(exec, graph, flags);
  if (result == CUDA_SUCCESS) Instantiated(*exec, graph, flags);
  return result;
}

template <typename S>
CUresult InstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                               CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const CUresult result = S::Real(exec, graph, params);
  if (result == CUDA_SUCCESS) {
    Instantiated(*exec, graph, params == nullptr ? 0 : params->flags);
  }
  return result;
}

void Updated(CUgraphExec exec, CUgraph graph) {
  WithOptimizer([&](Optimizer& optimizer) { optimizer.Updated(exec, graph); });
}

template <typename S>
CUresult ExecUpdateV1(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                      CUgraphExecUpdateResult* update) {
  const CUresult result = S::Real(exec, graph, error_node, update);
  if (result == CUDA_SUCCESS) Updated(exec, graph);
  return result;
}

template <typename S>
CUresult ExecUpdate(CUgraphExec exec, CUgraph graph,
                    CUgraphExecUpdateResultInfo* info) {
  const CUresult result = S::Real(exec, graph, info);
  if (result == CUDA_SUCCESS) Updated(exec, graph);
  return result;
}

template <typename S>
CUresult ExecDestroy(CUgraphExec exec) {
  const Gate::Pass pass;
  // First: afterwards the handle may be another thread's.
  WithOptimizer([&](Optimizer& optimizer) { optimizer.Destroyed(exec); });
  return S::Real(exec);
}

// ---- changes of single nodes ----

template <typename Change>
void Changed(CUgraphExec exec, Change change) {
  WithOptimizer([&](Optimizer& optimizer) {
    const std::shared_ptr<LiveGraph> graph = optimizer.Find(exec);
    if (graph == nullptr) return;
    std::lock_guard<std::mutex> lock(graph->mutex());
    change(*graph);
  });
}

template <typename S>
CUresult ExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                 const CUDA_KERNEL_NODE_PARAMS* params) {
  const CUresult result = S::Real(exec, node, params);
  if (result == CUDA_SUCCESS) {
    Changed(exec,
            [&](LiveGraph& graph) { graph.KernelChanged(node, *params); });
  }
  return result;
}

// The older structure ends before the fields for CUkernel handles.
template <typename S>
CUresult ExecKernelNodeSetParamsV1(CUgraphExec exec, CUgraphNode node,
                                   const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  const CUresult result = S::Real(exec, node, params);
  if (result == CUDA_SUCCESS) {
    CUDA_KERNEL_NODE_PARAMS newer{};
    newer.func = params->func;
    newer.gridDimX = params->gridDimX;
    newer.gridDimY = params->gridDimY;
    newer.gridDimZ = params->gridDimZ;
    newer.blockDimX = params->blockDimX;
    newer.blockDimY = params->blockDimY;
    newer.blockDimZ = params->blockDimZ;
    newer.sharedMemBytes = params->sharedMemBytes;
    newer.kernelParams = params->kernelParams;
    newer.extra = params->extra;
    Changed(exec, [&](LiveGraph& graph) { graph.KernelChanged(node, newer); });
  }
  return result;
}

template <typename S>
CUresult ExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                 const CUDA_MEMCPY3D* params,
                                 CUcontext context) {
  const CUresult result = S::Real(exec, node, params, context);
  if (result == CUDA_SUCCESS) {
    Changed(exec, [&](LiveGraph& graph) {
      graph.MemcpyChanged(node, *params, context);
    });
  }
  return result;
}

template <typename S>
CUresult ExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                 const CUDA_MEMSET_NODE_PARAMS* params,
                                 CUcontext context) {
  const CUresult result = S::Real(exec, node, params, context);
  if (result == CUDA_SUCCESS) {
    Changed(exec, [&](LiveGraph& graph) {
      graph.MemsetChanged(node, *params, context);
    });
  }
  return result;
}

template <typename S>
CUresult NodeSetEnabled(CUgraphExec exec, CUgraphNode node,
                        unsigned int enabled) {
  const CUresult result = S::Real(exec, node, enabled);
  if (result == CUDA_SUCCESS) {
    Changed(exec,
            [&](LiveGraph& graph) { graph.EnabledChanged(node, enabled); });
  }
  return result;
}

// Changes that have no mirror: the program's own graph from then on.
template <typename S, typename Fn>
struct DropHook;
template <typename S, typename... Args>
struct DropHook<S, CUresult (*)(CUgraphExec, Args...)> {
  static CUresult Hook(CUgraphExec exec, Args... args) {
    const CUresult result = S::Real(exec, args...);
    if (result == CUDA_SUCCESS) {
      Changed(exec, [](LiveGraph& graph) {
        if (graph.settled() != graph.original()) {
          graph.KeepOriginal(std::string("changed by ") + S::kName);
        }
      });
    }
    return result;
  }
};
#define HEDDLE_LIVE_DROP(list, symbol)         \
  record::AddHook<HEDDLE_LIVE_SYMBOL(symbol)>( \
      list, &DropHook<HEDDLE_LIVE_SYMBOL(symbol), decltype(&::symbol)>::Hook)

// ---- launch ----

template <typename S>
CUresult GraphLaunch(CUgraphExec exec, CUstream stream) {
  const Gate::Pass pass;
  Optimizer* optimizer = Optimizer::Get();
  if (optimizer == nullptr) return S::Real(exec, stream);
  try {
    return optimizer->Launch(exec, stream == nullptr && S::kPerThread
                                       ? CU_STREAM_PER_THREAD
                                       : stream);
  } catch (const std::exception& error) {
    Optimizer::Fail(error.what());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace

void AddGraphHooks(HookList* list) {
  HEDDLE_LIVE_HOOK_PTSZ(list, cuStreamBeginCapture, BeginCaptureV1);
  HEDDLE_LIVE_HOOK_PTSZ(list, cuStreamBeginCapture_v2, BeginCapture);
  HEDDLE_LIVE_HOOK_PTSZ(list, cuStreamBeginCaptureToGraph, BeginCaptureToGraph);
  HEDDLE_LIVE_HOOK_PTSZ(list, cuStreamEndCapture, EndCapture);

  HEDDLE_LIVE_HOOK(list, cuGraphInstantiate, InstantiateWithLog);
  HEDDLE_LIVE_HOOK(list, cuGraphInstantiate_v2, InstantiateWithLog);
  HEDDLE_LIVE_HOOK(list, cuGraphInstantiateWithFlags, InstantiateWithFlags);
  HEDDLE_LIVE_HOOK_PTSZ(list, cuGraphInstantiateWithParams,
                        InstantiateWithParams);
  HEDDLE_LIVE_HOOK(list, cuGraphExecUpdate, ExecUpdateV1);
  HEDDLE_LIVE_HOOK(list, cuGraphExecUpdate_v2, ExecUpdate);
  HEDDLE_LIVE_HOOK(list, cuGraphExecDestroy, ExecDestroy);

  HEDDLE_LIVE_HOOK(list, cuGraphExecKernelNodeSetParams,
                   ExecKernelNodeSetParamsV1);
  HEDDLE_LIVE_HOOK(list, cuGraphExecKernelNodeSetParams_v2,
                   ExecKernelNodeSetParams);
  HEDDLE_LIVE_HOOK(list, cuGraphExecMemcpyNodeSetParams,
                   ExecMemcpyNodeSetParams);
  HEDDLE_LIVE_HOOK(list, cuGraphExecMemsetNodeSetParams,
                   ExecMemsetNodeSetParams);
  HEDDLE_LIVE_HOOK(list, cuGraphNodeSetEnabled, NodeSetEnabled);
  HEDDLE_LIVE_DROP(list, cuGraphExecHostNodeSetParams);
  HEDDLE_LIVE_DROP(list, cuGraphExecChildGraphNodeSetParams);
  HEDDLE_LIVE_DROP(list, cuGraphExecEventRecordNodeSetEvent);
  HEDDLE_LIVE_DROP(list, cuGraphExecEventWaitNodeSetEvent);
  HEDDLE_LIVE_DROP(list, cuGraphExecExternalSemaphoresSignalNodeSetParams);
  HEDDLE_LIVE_DROP(list, cuGraphExecExternalSemaphoresWaitNodeSetParams);
  HEDDLE_LIVE_DROP(list, cuGraphExecBatchMemOpNodeSetParams);
  HEDDLE_LIVE_DROP(list, cuGraphExecNodeSetParams);

  HEDDLE_LIVE_HOOK_PTSZ(list, cuGraphLaunch, GraphLaunch);
}

}  // namespace heddle::live
