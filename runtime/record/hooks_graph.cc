// SPDX-License-Identifier: Apache-2.0
// Hooks of executable graphs. How a graph came to be (capture, node by node,
// clone) does not matter: it is read back when it is instantiated.

#include "runtime/record/graph_record.h"
#include "runtime/record/hooks.h"
#include "runtime/record/hooks_unsupported.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

uint64_t Id(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

struct ExecCall {
  const char* api;
  fb::GraphExecOp op;
  CUgraphExec exec;
  uint64_t flags = 0;
  CUresult result = CUDA_SUCCESS;
};

fb::GraphExecT MakeExec(Recorder& recorder, const ExecCall& call) {
  fb::GraphExecT record;
  record.stamp = recorder.StampPtr();
  record.op = call.op;
  record.handle = Id(call.exec);
  record.flags = call.flags;
  record.api = call.api;
  record.status = static_cast<int>(call.result);
  return record;
}

// ---- instantiation and update of the whole ----------------------------------

void RecordContent(const ExecCall& call, CUgraph graph) {
  WithRecorder([&](Recorder& recorder) {
    GraphSummary summary = WriteGraph(recorder, graph);
    fb::GraphExecT record = MakeExec(recorder, call);
    record.graph = summary.id;
    recorder.writer().AppendObject(record);
    std::lock_guard<std::mutex> lock(recorder.mutex());
    Recorder::ExecInfo& info = recorder.execs()[Id(call.exec)];
    if (call.op == fb::GraphExecOp::kInstantiate) info = {};
    info.graph_id = summary.id;
    info.kernels = summary.kernels;
    // An update leaves the nodes of the instantiated graph the ones that the
    // program names in later calls.
    if (call.op == fb::GraphExecOp::kInstantiate) {
      info.node_index = std::move(summary.node_index);
    }
  });
}

template <typename S>
CUresult InstantiateWithLog(CUgraphExec* exec, CUgraph graph,
                            CUgraphNode* error_node, char* log, size_t size) {
  const CUresult result = S::Real(exec, graph, error_node, log, size);
  if (result == CUDA_SUCCESS) {
    RecordContent(
        {.api = S::kName, .op = fb::GraphExecOp::kInstantiate, .exec = *exec},
        graph);
  }
  return result;
}

template <typename S>
CUresult InstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                              unsigned long long flags) {
  const CUresult result = S::Real(exec, graph, flags);
  if (result == CUDA_SUCCESS) {
    RecordContent({.api = S::kName,
                   .op = fb::GraphExecOp::kInstantiate,
                   .exec = *exec,
                   .flags = flags},
                  graph);
  }
  return result;
}

template <typename S>
CUresult InstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                               CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const CUresult result = S::Real(exec, graph, params);
  if (result == CUDA_SUCCESS) {
    RecordContent({.api = S::kName,
                   .op = fb::GraphExecOp::kInstantiate,
                   .exec = *exec,
                   .flags = params == nullptr ? 0 : params->flags},
                  graph);
  }
  return result;
}

template <typename S>
CUresult ExecUpdateV1(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                      CUgraphExecUpdateResult* update) {
  const CUresult result = S::Real(exec, graph, error_node, update);
  if (result == CUDA_SUCCESS) {
    RecordContent(
        {.api = S::kName, .op = fb::GraphExecOp::kUpdate, .exec = exec}, graph);
  }
  return result;
}

template <typename S>
CUresult ExecUpdate(CUgraphExec exec, CUgraph graph,
                    CUgraphExecUpdateResultInfo* info) {
  const CUresult result = S::Real(exec, graph, info);
  if (result == CUDA_SUCCESS) {
    RecordContent(
        {.api = S::kName, .op = fb::GraphExecOp::kUpdate, .exec = exec}, graph);
  }
  return result;
}

template <typename S>
CUresult ExecDestroy(CUgraphExec exec) {
  WithRecorder([&](Recorder& recorder) {
    recorder.writer().AppendObject(MakeExec(
        recorder,
        {.api = S::kName, .op = fb::GraphExecOp::kDestroy, .exec = exec}));
    std::lock_guard<std::mutex> lock(recorder.mutex());
    recorder.execs().erase(Id(exec));
  });
  return S::Real(exec);
}

// ---- update of one node -----------------------------------------------------

// `fill` writes the node's new parameters.
template <typename Fill>
void RecordNodeUpdate(const char* api, CUgraphExec exec, CUgraphNode node,
                      CUgraphNodeType type, Fill&& fill) {
  WithRecorder([&](Recorder& recorder) {
    fb::GraphExecT record = MakeExec(
        recorder,
        {.api = api, .op = fb::GraphExecOp::kNodeUpdate, .exec = exec});
    if (!recorder.FindNode(Id(exec), Id(node), &record.graph, &record.node)) {
      recorder.Unsupported(api, "the node of an unknown graph was updated");
      return;
    }
    record.update = std::make_unique<fb::GraphNodeT>();
    record.update->type = static_cast<uint32_t>(type);
    fill(recorder, record.update.get());
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult ExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                 const CUDA_KERNEL_NODE_PARAMS* params) {
  const CUresult result = S::Real(exec, node, params);
  if (result == CUDA_SUCCESS) {
    RecordNodeUpdate(S::kName, exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
                     [&](Recorder& recorder, fb::GraphNodeT* update) {
                       update->launch = LaunchOfNode(recorder, *params);
                     });
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
    RecordNodeUpdate(S::kName, exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
                     [&](Recorder& recorder, fb::GraphNodeT* update) {
                       update->launch = LaunchOfNode(recorder, newer);
                     });
  }
  return result;
}

template <typename S>
CUresult ExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                 const CUDA_MEMCPY3D* params,
                                 CUcontext context) {
  const CUresult result = S::Real(exec, node, params, context);
  if (result == CUDA_SUCCESS) {
    RecordNodeUpdate(S::kName, exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                     [&](Recorder& recorder, fb::GraphNodeT* update) {
                       update->memcpy = MemcpyOfNode(recorder, *params);
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
    RecordNodeUpdate(S::kName, exec, node, CU_GRAPH_NODE_TYPE_MEMSET,
                     [&](Recorder& recorder, fb::GraphNodeT* update) {
                       update->memset = MemsetOfNode(recorder, *params);
                     });
  }
  return result;
}

template <typename S>
CUresult NodeSetEnabled(CUgraphExec exec, CUgraphNode node,
                        unsigned int enabled) {
  const CUresult result = S::Real(exec, node, enabled);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      fb::GraphExecT record = MakeExec(
          recorder,
          {.api = S::kName, .op = fb::GraphExecOp::kNodeEnable, .exec = exec});
      if (!recorder.FindNode(Id(exec), Id(node), &record.graph, &record.node)) {
        return;
      }
      record.enabled = enabled != 0;
      recorder.writer().AppendObject(record);
    });
  }
  return result;
}

// ---- launch -----------------------------------------------------------------

template <typename S>
CUresult GraphUpload(CUgraphExec exec, CUstream stream) {
  const CUresult result = S::Real(exec, stream);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      recorder.writer().AppendObject(MakeExec(
          recorder,
          {.api = S::kName, .op = fb::GraphExecOp::kUpload, .exec = exec}));
    });
  }
  return result;
}

template <typename S>
CUresult GraphLaunch(CUgraphExec exec, CUstream stream) {
  uint32_t graph = 0;
  WithRecorder([&](Recorder& recorder) {
    uint64_t launches = 0;
    uint32_t kernels = 0;
    {
      std::lock_guard<std::mutex> lock(recorder.mutex());
      const auto it = recorder.execs().find(Id(exec));
      if (it == recorder.execs().end()) return;
      graph = it->second.graph_id;
      launches = it->second.launches++;
      kernels = it->second.kernels;
    }
    // A graph of a kernel or two is part of a step, not a step.
    if (recorder.steps().active() && kernels >= StepWatch::kMinLaunches) {
      recorder.steps().BeforeGraphLaunch(recorder, Id(exec), launches, kernels);
    }
  });
  const CUresult result = S::Real(exec, stream);
  WithRecorder([&](Recorder& recorder) {
    if (recorder.steps().active()) recorder.steps().OnLaunch(Id(exec));
    if (recorder.writes_work()) {
      fb::GraphLaunchT record;
      record.stamp = recorder.StampPtr();
      record.exec = Id(exec);
      record.graph = graph;
      record.stream = Recorder::StreamId(stream, S::kPerThread);
      record.status = static_cast<int>(result);
      record.capturing = recorder.IsCapturing(stream, S::kPerThread);
      recorder.writer().AppendObject(record);
    }
    if (recorder.steps().active()) {
      recorder.steps().AfterGraphLaunch(recorder, Id(exec));
    }
  });
  return result;
}

}  // namespace

void AddGraphHooks(HookList* list) {
  HEDDLE_HOOK(list, cuGraphInstantiate, InstantiateWithLog);
  HEDDLE_HOOK(list, cuGraphInstantiate_v2, InstantiateWithLog);
  HEDDLE_HOOK(list, cuGraphInstantiateWithFlags, InstantiateWithFlags);
  HEDDLE_HOOK_PTSZ(list, cuGraphInstantiateWithParams, InstantiateWithParams);
  HEDDLE_HOOK(list, cuGraphExecUpdate, ExecUpdateV1);
  HEDDLE_HOOK(list, cuGraphExecUpdate_v2, ExecUpdate);
  HEDDLE_HOOK(list, cuGraphExecDestroy, ExecDestroy);

  HEDDLE_HOOK(list, cuGraphExecKernelNodeSetParams, ExecKernelNodeSetParamsV1);
  HEDDLE_HOOK(list, cuGraphExecKernelNodeSetParams_v2, ExecKernelNodeSetParams);
  HEDDLE_HOOK(list, cuGraphExecMemcpyNodeSetParams, ExecMemcpyNodeSetParams);
  HEDDLE_HOOK(list, cuGraphExecMemsetNodeSetParams, ExecMemsetNodeSetParams);
  HEDDLE_HOOK(list, cuGraphNodeSetEnabled, NodeSetEnabled);

  HEDDLE_HOOK_PTSZ(list, cuGraphUpload, GraphUpload);
  HEDDLE_HOOK_PTSZ(list, cuGraphLaunch, GraphLaunch);

  HEDDLE_UNSUPPORTED(list, cuGraphExecHostNodeSetParams);
  HEDDLE_UNSUPPORTED(list, cuGraphExecChildGraphNodeSetParams);
  HEDDLE_UNSUPPORTED(list, cuGraphExecEventRecordNodeSetEvent);
  HEDDLE_UNSUPPORTED(list, cuGraphExecEventWaitNodeSetEvent);
  HEDDLE_UNSUPPORTED(list, cuGraphExecExternalSemaphoresSignalNodeSetParams);
  HEDDLE_UNSUPPORTED(list, cuGraphExecExternalSemaphoresWaitNodeSetParams);
  HEDDLE_UNSUPPORTED(list, cuGraphExecBatchMemOpNodeSetParams);
  HEDDLE_UNSUPPORTED(list, cuGraphExecNodeSetParams);
}

}  // namespace heddle::record
