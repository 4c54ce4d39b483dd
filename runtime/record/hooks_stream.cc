// SPDX-License-Identifier: Apache-2.0
// Hooks of streams, events, synchronization, host functions, memory operations
// and the bounds of captures.

#include <dlfcn.h>

#include <cstring>

#include "runtime/record/hooks.h"
#include "runtime/record/hooks_unsupported.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

uint64_t Id(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// ---- streams ----------------------------------------------------------------

void RecordStream(fb::StreamOp op, CUstream stream, unsigned int flags,
                  int priority) {
  WithRecorder([&](Recorder& recorder) {
    fb::StreamT record;
    record.stamp = recorder.StampPtr();
    record.op = op;
    record.handle = Id(stream);
    record.flags = flags;
    record.priority = priority;
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult StreamCreate(CUstream* stream, unsigned int flags) {
  const CUresult result = S::Real(stream, flags);
  if (result == CUDA_SUCCESS) {
    RecordStream(fb::StreamOp::kCreate, *stream, flags, 0);
  }
  return result;
}

template <typename S>
CUresult StreamCreateWithPriority(CUstream* stream, unsigned int flags,
                                  int priority) {
  const CUresult result = S::Real(stream, flags, priority);
  if (result == CUDA_SUCCESS) {
    RecordStream(fb::StreamOp::kCreate, *stream, flags, priority);
  }
  return result;
}

template <typename S>
CUresult StreamDestroy(CUstream stream) {
  RecordStream(fb::StreamOp::kDestroy, stream, 0, 0);
  return S::Real(stream);
}

// ---- events -----------------------------------------------------------------

struct EventCall {
  fb::EventOp op;
  CUevent event;
  CUstream stream = nullptr;
  bool per_thread = false;
  unsigned int flags = 0;
};

void RecordEvent(const EventCall& call) {
  WithRecorder([&](Recorder& recorder) {
    // All of them are work: an event orders what is recorded around it, and
    // programs create and destroy events by the thousand.
    if (!recorder.writes_work()) return;
    const bool work =
        call.op == fb::EventOp::kRecord || call.op == fb::EventOp::kWait;
    fb::EventT record;
    record.stamp = recorder.StampPtr();
    record.op = call.op;
    record.handle = Id(call.event);
    record.flags = call.flags;
    if (work) {
      record.stream = Recorder::StreamId(call.stream, call.per_thread);
      record.capturing = recorder.IsCapturing(call.stream, call.per_thread);
    }
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult EventCreate(CUevent* event, unsigned int flags) {
  const CUresult result = S::Real(event, flags);
  if (result == CUDA_SUCCESS) {
    RecordEvent({.op = fb::EventOp::kCreate, .event = *event, .flags = flags});
  }
  return result;
}

template <typename S>
CUresult EventDestroy(CUevent event) {
  RecordEvent({.op = fb::EventOp::kDestroy, .event = event});
  return S::Real(event);
}

template <typename S>
CUresult EventRecord(CUevent event, CUstream stream) {
  const CUresult result = S::Real(event, stream);
  if (result == CUDA_SUCCESS) {
    RecordEvent({.op = fb::EventOp::kRecord,
                 .event = event,
                 .stream = stream,
                 .per_thread = S::kPerThread});
  }
  return result;
}

template <typename S>
CUresult EventRecordWithFlags(CUevent event, CUstream stream,
                              unsigned int flags) {
  const CUresult result = S::Real(event, stream, flags);
  if (result == CUDA_SUCCESS) {
    RecordEvent({.op = fb::EventOp::kRecord,
                 .event = event,
                 .stream = stream,
                 .per_thread = S::kPerThread,
                 .flags = flags});
  }
  return result;
}

template <typename S>
CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  const CUresult result = S::Real(stream, event, flags);
  if (result == CUDA_SUCCESS) {
    RecordEvent({.op = fb::EventOp::kWait,
                 .event = event,
                 .stream = stream,
                 .per_thread = S::kPerThread,
                 .flags = flags});
  }
  return result;
}

// ---- synchronization --------------------------------------------------------

void RecordSync(fb::SyncOp op, uint64_t handle, CUresult result) {
  WithRecorder([&](Recorder& recorder) {
    if (recorder.writes_work()) {
      fb::SyncT record;
      record.stamp = recorder.StampPtr();
      record.op = op;
      record.handle = handle;
      record.status = static_cast<int>(result);
      recorder.writer().AppendObject(record);
    }
    if (result == CUDA_SUCCESS && recorder.steps().active()) {
      recorder.steps().OnSync(recorder);
    }
  });
}

template <typename S>
CUresult CtxSynchronize() {
  const CUresult result = S::Real();
  RecordSync(fb::SyncOp::kContext, 0, result);
  return result;
}

#if CUDA_VERSION >= 13000
template <typename S>
CUresult CtxSynchronizeV2(CUcontext context) {
  const CUresult result = S::Real(context);
  RecordSync(fb::SyncOp::kContext, Id(context), result);
  return result;
}
#endif

template <typename S>
CUresult StreamSynchronize(CUstream stream) {
  const CUresult result = S::Real(stream);
  RecordSync(fb::SyncOp::kStream, Recorder::StreamId(stream, S::kPerThread),
             result);
  return result;
}

template <typename S>
CUresult EventSynchronize(CUevent event) {
  const CUresult result = S::Real(event);
  RecordSync(fb::SyncOp::kEvent, Id(event), result);
  return result;
}

// Polling: only the answer "done" says anything about order, and programs poll
// in tight loops. It is no end of a step either.
void RecordQuery(uint64_t handle, CUresult result) {
  if (result != CUDA_SUCCESS) return;
  WithRecorder([&](Recorder& recorder) {
    if (!recorder.writes_work()) return;
    fb::SyncT record;
    record.stamp = recorder.StampPtr();
    record.op = fb::SyncOp::kQuery;
    record.handle = handle;
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult StreamQuery(CUstream stream) {
  const CUresult result = S::Real(stream);
  RecordQuery(Recorder::StreamId(stream, S::kPerThread), result);
  return result;
}

template <typename S>
CUresult EventQuery(CUevent event) {
  const CUresult result = S::Real(event);
  RecordQuery(Id(event), result);
  return result;
}

// ---- host functions ---------------------------------------------------------

void RecordHostFunc(const char* api, CUstream stream, bool per_thread,
                    const void* function) {
  WithRecorder([&](Recorder& recorder) {
    if (!recorder.writes_work()) return;
    fb::HostFuncT record;
    record.stamp = recorder.StampPtr();
    record.stream = Recorder::StreamId(stream, per_thread);
    record.function = Id(function);
    Dl_info info;
    if (dladdr(function, &info) != 0 && info.dli_sname != nullptr) {
      record.symbol = info.dli_sname;
    }
    record.capturing = recorder.IsCapturing(stream, per_thread);
    record.api = api;
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult LaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  const CUresult result = S::Real(stream, function, data);
  if (result == CUDA_SUCCESS) {
    RecordHostFunc(S::kName, stream, S::kPerThread,
                   reinterpret_cast<const void*>(function));
  }
  return result;
}

template <typename S>
CUresult StreamAddCallback(CUstream stream, CUstreamCallback function,
                           void* data, unsigned int flags) {
  const CUresult result = S::Real(stream, function, data, flags);
  if (result == CUDA_SUCCESS) {
    RecordHostFunc(S::kName, stream, S::kPerThread,
                   reinterpret_cast<const void*>(function));
  }
  return result;
}

// ---- memory operations ------------------------------------------------------

void RecordMemOps(const char* api, CUstream stream, bool per_thread,
                  const CUstreamBatchMemOpParams* operations,
                  unsigned int count) {
  WithRecorder([&](Recorder& recorder) {
    if (!recorder.writes_work()) return;
    fb::MemOpT record;
    record.stamp = recorder.StampPtr();
    record.stream = Recorder::StreamId(stream, per_thread);
    const auto* bytes = reinterpret_cast<const uint8_t*>(operations);
    record.operations.assign(bytes, bytes + count * sizeof(*operations));
    record.count = count;
    record.capturing = recorder.IsCapturing(stream, per_thread);
    record.api = api;
    recorder.writer().AppendObject(record);
  });
}

// The single forms, in the batch's terms.
template <typename Value>
CUstreamBatchMemOpParams MemOpOf(CUstreamBatchMemOpType operation,
                                 CUdeviceptr address, Value value,
                                 unsigned int flags) {
  CUstreamBatchMemOpParams params;
  std::memset(&params, 0, sizeof(params));
  params.operation = operation;
  // waitValue and writeValue are laid out alike.
  params.writeValue.address = address;
  if constexpr (sizeof(Value) == 8) {
    params.writeValue.value64 = value;
  } else {
    params.writeValue.value = value;
  }
  params.writeValue.flags = flags;
  return params;
}

template <typename S, CUstreamBatchMemOpType kOperation, typename Fn>
struct MemOpHook;
template <typename S, CUstreamBatchMemOpType kOperation, typename Value>
struct MemOpHook<S, kOperation,
                 CUresult (*)(CUstream, CUdeviceptr, Value, unsigned int)> {
  static CUresult Hook(CUstream stream, CUdeviceptr address, Value value,
                       unsigned int flags) {
    const CUresult result = S::Real(stream, address, value, flags);
    if (result == CUDA_SUCCESS) {
      const CUstreamBatchMemOpParams operation =
          MemOpOf(kOperation, address, value, flags);
      RecordMemOps(S::kName, stream, S::kPerThread, &operation, 1);
    }
    return result;
  }
};

template <typename S>
CUresult StreamBatchMemOp(CUstream stream, unsigned int count,
                          CUstreamBatchMemOpParams* operations,
                          unsigned int flags) {
  const CUresult result = S::Real(stream, count, operations, flags);
  if (result == CUDA_SUCCESS) {
    RecordMemOps(S::kName, stream, S::kPerThread, operations, count);
  }
  return result;
}

#define HEDDLE_MEM_OP_ONE(list, symbol, operation)                      \
  AddHook<Symbol<#symbol, decltype(&::symbol)>>(                        \
      list, &MemOpHook<Symbol<#symbol, decltype(&::symbol)>, operation, \
                       decltype(&::symbol)>::Hook)
#define HEDDLE_MEM_OP(list, symbol, operation)       \
  HEDDLE_MEM_OP_ONE(list, symbol, operation);        \
  HEDDLE_MEM_OP_ONE(list, symbol##_ptsz, operation); \
  HEDDLE_MEM_OP_ONE(list, symbol##_v2, operation);   \
  HEDDLE_MEM_OP_ONE(list, symbol##_v2_ptsz, operation)

// ---- captures ---------------------------------------------------------------

void RecordCapture(fb::CaptureOp op, uint64_t stream, unsigned int mode,
                   CUgraph graph, CUresult result) {
  WithRecorder([&](Recorder& recorder) {
    if (op == fb::CaptureOp::kBegin && result == CUDA_SUCCESS) {
      recorder.CaptureBegan();
    }
    // Ending a capture that was invalidated fails, and it is over all the same.
    if (op == fb::CaptureOp::kEnd) recorder.CaptureEnded();
    fb::CaptureT record;
    record.stamp = recorder.StampPtr();
    record.op = op;
    record.stream = stream;
    record.mode = mode;
    record.graph = Id(graph);
    record.status = static_cast<int>(result);
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult StreamBeginCapture(CUstream stream) {
  const CUresult result = S::Real(stream);
  RecordCapture(fb::CaptureOp::kBegin,
                Recorder::StreamId(stream, S::kPerThread), 0, nullptr, result);
  return result;
}

template <typename S>
CUresult StreamBeginCaptureMode(CUstream stream, CUstreamCaptureMode mode) {
  const CUresult result = S::Real(stream, mode);
  RecordCapture(fb::CaptureOp::kBegin,
                Recorder::StreamId(stream, S::kPerThread), mode, nullptr,
                result);
  return result;
}

template <typename S>
CUresult StreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                   const CUgraphNode* dependencies,
                                   const CUgraphEdgeData* edges, size_t count,
                                   CUstreamCaptureMode mode) {
  const CUresult result =
      S::Real(stream, graph, dependencies, edges, count, mode);
  RecordCapture(fb::CaptureOp::kBegin,
                Recorder::StreamId(stream, S::kPerThread), mode, graph, result);
  return result;
}

template <typename S>
CUresult StreamEndCapture(CUstream stream, CUgraph* graph) {
  const CUresult result = S::Real(stream, graph);
  RecordCapture(
      fb::CaptureOp::kEnd, Recorder::StreamId(stream, S::kPerThread), 0,
      result == CUDA_SUCCESS && graph != nullptr ? *graph : nullptr, result);
  return result;
}

}  // namespace

void AddStreamHooks(HookList* list) {
  HEDDLE_HOOK(list, cuStreamCreate, StreamCreate);
  HEDDLE_HOOK(list, cuStreamCreateWithPriority, StreamCreateWithPriority);
  HEDDLE_HOOK(list, cuStreamDestroy, StreamDestroy);
  HEDDLE_HOOK(list, cuStreamDestroy_v2, StreamDestroy);

  HEDDLE_HOOK(list, cuEventCreate, EventCreate);
  HEDDLE_HOOK(list, cuEventDestroy, EventDestroy);
  HEDDLE_HOOK(list, cuEventDestroy_v2, EventDestroy);
  HEDDLE_HOOK_PTSZ(list, cuEventRecord, EventRecord);
  HEDDLE_HOOK_PTSZ(list, cuEventRecordWithFlags, EventRecordWithFlags);
  HEDDLE_HOOK_PTSZ(list, cuStreamWaitEvent, StreamWaitEvent);

  HEDDLE_HOOK(list, cuCtxSynchronize, CtxSynchronize);
#if CUDA_VERSION >= 13000
  HEDDLE_HOOK(list, cuCtxSynchronize_v2, CtxSynchronizeV2);
#endif
  HEDDLE_HOOK_PTSZ(list, cuStreamSynchronize, StreamSynchronize);
  HEDDLE_HOOK(list, cuEventSynchronize, EventSynchronize);
  HEDDLE_HOOK_PTSZ(list, cuStreamQuery, StreamQuery);
  HEDDLE_HOOK(list, cuEventQuery, EventQuery);

  HEDDLE_HOOK_PTSZ(list, cuLaunchHostFunc, LaunchHostFunc);
  HEDDLE_HOOK_PTSZ(list, cuStreamAddCallback, StreamAddCallback);

  HEDDLE_MEM_OP(list, cuStreamWaitValue32, CU_STREAM_MEM_OP_WAIT_VALUE_32);
  HEDDLE_MEM_OP(list, cuStreamWaitValue64, CU_STREAM_MEM_OP_WAIT_VALUE_64);
  HEDDLE_MEM_OP(list, cuStreamWriteValue32, CU_STREAM_MEM_OP_WRITE_VALUE_32);
  HEDDLE_MEM_OP(list, cuStreamWriteValue64, CU_STREAM_MEM_OP_WRITE_VALUE_64);
  HEDDLE_HOOK_PTSZ(list, cuStreamBatchMemOp, StreamBatchMemOp);
  HEDDLE_HOOK_PTSZ(list, cuStreamBatchMemOp_v2, StreamBatchMemOp);

  HEDDLE_HOOK_PTSZ(list, cuStreamBeginCapture, StreamBeginCapture);
  HEDDLE_HOOK_PTSZ(list, cuStreamBeginCapture_v2, StreamBeginCaptureMode);
  HEDDLE_HOOK_PTSZ(list, cuStreamBeginCaptureToGraph,
                   StreamBeginCaptureToGraph);
  HEDDLE_HOOK_PTSZ(list, cuStreamEndCapture, StreamEndCapture);

  HEDDLE_UNSUPPORTED_PTSZ(list, cuStreamUpdateCaptureDependencies);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuStreamUpdateCaptureDependencies_v2);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuGraphicsMapResources);
}

}  // namespace heddle::record
