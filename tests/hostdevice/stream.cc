// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/stream.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"

namespace heddle::hostdevice {
namespace {

// How far the device gets on its own after each submission, at most.
constexpr int kStepsAfterSubmit = 3;

Stream* NewStream(Context* context, unsigned flags, int priority) {
  Device& device = Device::Get();
  Stream* stream = device.streams.New();
  stream->context = context;
  stream->id = device.NewId();
  stream->handle = reinterpret_cast<CUstream>(stream);
  stream->flags = flags;
  stream->priority = priority;
  context->streams.insert(stream);
  return stream;
}

Stream* PerThreadStream(Context* context) {
  // By context id: a context may be made anew at the address of an old one.
  static thread_local std::map<uint64_t, Stream*> streams;
  Stream*& stream = streams[context->id];
  if (stream == nullptr) {
    stream = NewStream(context, CU_STREAM_DEFAULT, 0);
    stream->is_default = true;
    stream->handle = CU_STREAM_PER_THREAD;
  }
  return stream;
}

Stream* LegacyStream(Context* context) {
  if (context->legacy == nullptr) {
    context->legacy = NewStream(context, CU_STREAM_DEFAULT, 0);
    context->legacy->is_default = true;
    context->legacy->handle = CU_STREAM_LEGACY;
  }
  return context->legacy;
}

bool IsKernel(const Stream::Tail& tail) {
  return tail.dependency.op->grid != nullptr;
}

CUresult CreateStream(CUstream* phStream, unsigned flags, int priority) {
  HD_ENTER(kContext);
  if (phStream == nullptr ||
      (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Stream* stream =
      NewStream(call.context(), flags, std::clamp(priority, -5, 0));
  *phStream = stream->handle;
  return CUDA_SUCCESS;
}

}  // namespace

Stream* FindStream(Context* context, CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    return LegacyStream(context);
  }
  if (handle == CU_STREAM_PER_THREAD) return PerThreadStream(context);
  return Device::Get().streams.Find(handle);
}

void DependOnStream(Stream* stream, const std::shared_ptr<Op>& op,
                    bool programmatic) {
  Scheduler& scheduler = Device::Get().scheduler();
  const auto depend_on_all = [&](const Stream& other) {
    for (const Stream::Tail& tail : other.tails) {
      scheduler.Depend(op.get(), tail.dependency, op);
    }
  };
  // The legacy stream and the blocking streams of its context wait for each
  // other.
  Stream* legacy = stream->context->legacy;
  if (stream == legacy) {
    for (const Stream* other : stream->context->streams) {
      if (other != stream && other->blocking()) depend_on_all(*other);
    }
  } else if (legacy != nullptr && stream->blocking()) {
    depend_on_all(*legacy);
  }
  if (!programmatic) {
    depend_on_all(*stream);
    return;
  }
  const Stream::Tail* previous = nullptr;
  for (const Stream::Tail& tail : stream->tails) {
    if (tail.foreign) {
      scheduler.Depend(op.get(), tail.dependency, op);
    } else {
      previous = &tail;
    }
  }
  if (previous == nullptr) return;
  Dependency dependency = previous->dependency;
  if (IsKernel(*previous)) {
    dependency.port = Port::kTriggered;
    dependency.programmatic = true;
  }
  scheduler.Depend(op.get(), dependency, op);
}

void Advance(Stream* stream, const std::shared_ptr<Op>& op, bool programmatic) {
  std::vector<Stream::Tail>& tails = stream->tails;
  if (programmatic) {
    // `op` says nothing about the end of what it may overtake: an operation
    // with a full dependency waits for that as well.
    std::erase_if(tails, [](const Stream::Tail& tail) {
      return tail.foreign || tail.dependency.op->complete;
    });
  } else {
    tails.clear();
  }
  tails.push_back({Dependency{op, Port::kComplete, false}, false});
}

void Submit(Stream* stream, const std::shared_ptr<Op>& op,
            const SubmitOptions& options) {
  Scheduler& scheduler = Device::Get().scheduler();
  op->activity.stream_id = stream->id;
  op->activity.graph_exec_id = options.graph_exec_id;
  op->activity.graph_node_id = options.graph_node_id;
  DependOnStream(stream, op, options.programmatic);
  scheduler.Submit(op);
  Advance(stream, op, options.programmatic);
  scheduler.Breathe(kStepsAfterSubmit);
}

CUresult Enqueue(Stream* stream, Work work, std::shared_ptr<Op>* op,
                 const SubmitOptions& options) {
  HD_TRY(CheckLegacy(stream));
  std::shared_ptr<Op> made;
  HD_TRY(MakeOp(work, &made));
  Submit(stream, made, options);
  if (op != nullptr) *op = std::move(made);
  return CUDA_SUCCESS;
}

bool Idle(Stream* stream) {
  return std::all_of(stream->tails.begin(), stream->tails.end(),
                     [](const Stream::Tail& tail) {
                       return Scheduler::Reached(tail.dependency);
                     });
}

CUresult Synchronize(Stream* stream) {
  // On the legacy stream this covers the streams that it synchronizes with.
  auto marker = std::make_shared<Op>();
  marker->activity.name = "synchronize";
  DependOnStream(stream, marker, false);
  Device::Get().scheduler().Submit(marker);
  return Device::Get().scheduler().Wait({marker});
}

CUresult SynchronizeContext(Context* context) {
  // There is one device: its other contexts' work is done along the way.
  (void)context;
  return Device::Get().scheduler().WaitAll();
}

HD_API(cuStreamCreate, (CUstream * phStream, unsigned int Flags)) {
  return CreateStream(phStream, Flags, 0);
}

HD_API(cuStreamCreateWithPriority,
       (CUstream * phStream, unsigned int flags, int priority)) {
  return CreateStream(phStream, flags, priority);
}

HD_API(cuStreamDestroy_v2, (CUstream hStream)) {
  HD_ENTER(kContext);
  Stream* stream = Device::Get().streams.Find(hStream);
  if (stream == nullptr || stream->is_default) return CUDA_ERROR_INVALID_HANDLE;
  // Work that is still in it goes on without it.
  AbandonCapture(stream);
  stream->context->streams.erase(stream);
  Device::Get().streams.Delete(stream);
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuStreamSynchronize, (CUstream hStream), (hStream)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HD_TRY(RefuseInCapture(stream));
  HD_TRY(CheckLegacy(stream));
  return Synchronize(stream);
}

HD_STREAM_API(cuStreamQuery, (CUstream hStream), (hStream)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HD_TRY(RefuseInCapture(stream));
  HD_TRY(CheckLegacy(stream));
  if (Idle(stream)) return CUDA_SUCCESS;
  // A program that polls must get there some day, host functions included.
  HD_TRY(Device::Get().scheduler().Progress());
  return Idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

HD_STREAM_API(cuStreamGetPriority, (CUstream hStream, int* priority),
              (hStream, priority)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuStreamGetFlags, (CUstream hStream, unsigned int* flags),
              (hStream, flags)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuStreamGetId, (CUstream hStream, unsigned long long* streamId),
              (hStream, streamId)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (streamId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *streamId = stream->id;
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuStreamGetCtx, (CUstream hStream, CUcontext* pctx),
              (hStream, pctx)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12050
HD_STREAM_API(cuStreamGetCtx_v2,
              (CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx),
              (hStream, pCtx, pGreenCtx)) {
  if (pGreenCtx != nullptr) *pGreenCtx = nullptr;
  return cuStreamGetCtx_body(hStream, pCtx);
}
#endif

#if CUDA_VERSION >= 12080
HD_STREAM_API(cuStreamGetDevice, (CUstream hStream, CUdevice* device),
              (hStream, device)) {
  HD_ENTER(kContext);
  if (FindStream(call.context(), hStream) == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}
#endif

HD_STREAM_API(cuStreamGetAttribute,
              (CUstream hStream, CUstreamAttrID attr,
               CUstreamAttrValue* value_out),
              (hStream, attr, value_out)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value_out->accessPolicyWindow = stream->access_window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value_out->syncPolicy = stream->sync_policy;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value_out->priority = stream->priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value_out->memSyncDomain = stream->sync_domain;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value_out->memSyncDomainMap = stream->sync_domain_map;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

HD_STREAM_API(cuStreamSetAttribute,
              (CUstream hStream, CUstreamAttrID attr,
               const CUstreamAttrValue* value),
              (hStream, attr, value)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      stream->access_window = value->accessPolicyWindow;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      stream->sync_policy = value->syncPolicy;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      stream->priority = std::clamp(value->priority, -5, 0);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      stream->sync_domain = value->memSyncDomain;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      stream->sync_domain_map = value->memSyncDomainMap;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

HD_EXPORT CUresult CUDAAPI cuStreamCopyAttributes(CUstream dst, CUstream src) {
  HD_ENTER(kContext);
  Stream* to = FindStream(call.context(), dst);
  Stream* from = FindStream(call.context(), src);
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  to->access_window = from->access_window;
  to->sync_policy = from->sync_policy;
  to->sync_domain = from->sync_domain;
  to->sync_domain_map = from->sync_domain_map;
  return CUDA_SUCCESS;
}
HD_EXPORT CUresult CUDAAPI cuStreamCopyAttributes_ptsz(CUstream dst,
                                                       CUstream src) {
  return cuStreamCopyAttributes(dst == nullptr ? CU_STREAM_PER_THREAD : dst,
                                src == nullptr ? CU_STREAM_PER_THREAD : src);
}

HD_STREAM_API(cuStreamAttachMemAsync,
              (CUstream hStream, CUdeviceptr dptr, size_t length,
               unsigned int flags),
              (hStream, dptr, length, flags)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  (void)length;
  (void)flags;  // every stream and the host may always use managed memory
  const Allocation* allocation = Device::Get().memory().FindStart(dptr);
  if (allocation == nullptr || allocation->kind != AllocationKind::kManaged) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
