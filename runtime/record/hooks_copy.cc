// SPDX-License-Identifier: Apache-2.0
// Hooks of copies. Copies that return when the data has arrived also tell the
// step watch that the thread has waited for the device.

#include "runtime/record/copy_record.h"
#include "runtime/record/hooks.h"
#include "runtime/record/hooks_unsupported.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

struct CopyContext {
  const char* api;
  CUstream stream = nullptr;
  bool per_thread = false;
  bool async = false;
  CUresult result;
};

void Record(CopyCall call, const CopyContext& context) {
  WithRecorder([&](Recorder& recorder) {
    if (context.result == CUDA_SUCCESS) {
      call.kind = ResolveKind(recorder, call);
    }
    if (recorder.writes_work()) {
      const bool capturing =
          recorder.IsCapturing(context.stream, context.per_thread);
      fb::MemcpyT record;
      if (context.result == CUDA_SUCCESS) {
        record = MakeCopy(recorder, call);
      } else {
        record.stamp = recorder.StampPtr();
      }
      record.stream = Recorder::StreamId(context.stream, context.per_thread);
      record.async = context.async;
      record.capturing = capturing;
      record.api = context.api;
      record.status = static_cast<int>(context.result);
      recorder.writer().AppendObject(record);
    }
    const bool waited = !context.async && context.result == CUDA_SUCCESS &&
                        call.kind == fb::MemcpyKind::kDtoH;
    if (waited && recorder.steps().active()) recorder.steps().OnSync(recorder);
  });
}

template <typename S>
void RecordLinear(uint64_t dst, uint64_t src, size_t size, fb::MemcpyKind kind,
                  CUresult result) {
  Record({.dst = dst, .src = src, .width = size, .kind = kind},
         {.api = S::kName, .per_thread = S::kPerThread, .result = result});
}

template <typename S>
void RecordLinearAsync(uint64_t dst, uint64_t src, size_t size,
                       fb::MemcpyKind kind, CUstream stream, CUresult result) {
  Record({.dst = dst, .src = src, .width = size, .kind = kind},
         {.api = S::kName,
          .stream = stream,
          .per_thread = S::kPerThread,
          .async = true,
          .result = result});
}

uint64_t HostAddress(const void* host) {
  return reinterpret_cast<uint64_t>(host);
}

template <typename S>
CUresult Memcpy(CUdeviceptr dst, CUdeviceptr src, size_t size) {
  const CUresult result = S::Real(dst, src, size);
  RecordLinear<S>(dst, src, size, fb::MemcpyKind::kDefault, result);
  return result;
}

template <typename S>
CUresult MemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size,
                     CUstream stream) {
  const CUresult result = S::Real(dst, src, size, stream);
  RecordLinearAsync<S>(dst, src, size, fb::MemcpyKind::kDefault, stream,
                       result);
  return result;
}

template <typename S>
CUresult MemcpyHtoD(CUdeviceptr dst, const void* src, size_t size) {
  const CUresult result = S::Real(dst, src, size);
  RecordLinear<S>(dst, HostAddress(src), size, fb::MemcpyKind::kHtoD, result);
  return result;
}

template <typename S>
CUresult MemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t size,
                         CUstream stream) {
  const CUresult result = S::Real(dst, src, size, stream);
  RecordLinearAsync<S>(dst, HostAddress(src), size, fb::MemcpyKind::kHtoD,
                       stream, result);
  return result;
}

template <typename S>
CUresult MemcpyDtoH(void* dst, CUdeviceptr src, size_t size) {
  const CUresult result = S::Real(dst, src, size);
  RecordLinear<S>(HostAddress(dst), src, size, fb::MemcpyKind::kDtoH, result);
  return result;
}

template <typename S>
CUresult MemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t size,
                         CUstream stream) {
  const CUresult result = S::Real(dst, src, size, stream);
  RecordLinearAsync<S>(HostAddress(dst), src, size, fb::MemcpyKind::kDtoH,
                       stream, result);
  return result;
}

template <typename S>
CUresult MemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t size) {
  const CUresult result = S::Real(dst, src, size);
  RecordLinear<S>(dst, src, size, fb::MemcpyKind::kDtoD, result);
  return result;
}

template <typename S>
CUresult MemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t size,
                         CUstream stream) {
  const CUresult result = S::Real(dst, src, size, stream);
  RecordLinearAsync<S>(dst, src, size, fb::MemcpyKind::kDtoD, stream, result);
  return result;
}

template <typename S>
CUresult MemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                    CUcontext src_context, size_t size) {
  const CUresult result = S::Real(dst, dst_context, src, src_context, size);
  RecordLinear<S>(dst, src, size, fb::MemcpyKind::kPeer, result);
  return result;
}

template <typename S>
CUresult MemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context,
                         CUdeviceptr src, CUcontext src_context, size_t size,
                         CUstream stream) {
  const CUresult result =
      S::Real(dst, dst_context, src, src_context, size, stream);
  RecordLinearAsync<S>(dst, src, size, fb::MemcpyKind::kPeer, stream, result);
  return result;
}

template <typename S>
CUresult Memcpy2D(const CUDA_MEMCPY2D* copy) {
  const CUresult result = S::Real(copy);
  if (copy != nullptr) {
    Record(FromCopy2D(*copy),
           {.api = S::kName, .per_thread = S::kPerThread, .result = result});
  }
  return result;
}

template <typename S>
CUresult Memcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  const CUresult result = S::Real(copy, stream);
  if (copy != nullptr) {
    Record(FromCopy2D(*copy), {.api = S::kName,
                               .stream = stream,
                               .per_thread = S::kPerThread,
                               .async = true,
                               .result = result});
  }
  return result;
}

template <typename S>
CUresult Memcpy3D(const CUDA_MEMCPY3D* copy) {
  const CUresult result = S::Real(copy);
  if (copy != nullptr) {
    Record(FromCopy3D(*copy),
           {.api = S::kName, .per_thread = S::kPerThread, .result = result});
  }
  return result;
}

template <typename S>
CUresult Memcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  const CUresult result = S::Real(copy, stream);
  if (copy != nullptr) {
    Record(FromCopy3D(*copy), {.api = S::kName,
                               .stream = stream,
                               .per_thread = S::kPerThread,
                               .async = true,
                               .result = result});
  }
  return result;
}

void RecordBatch(const char* api, CUdeviceptr* dsts, CUdeviceptr* srcs,
                 size_t* sizes, size_t count, CUstream stream, bool per_thread,
                 CUresult result) {
  for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    Record({.dst = dsts[i],
            .src = srcs[i],
            .width = sizes[i],
            .kind = fb::MemcpyKind::kDefault},
           {.api = api,
            .stream = stream,
            .per_thread = per_thread,
            .async = true,
            .result = result});
  }
}

#if CUDA_VERSION >= 13000
template <typename S>
CUresult MemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes,
                          size_t count, CUmemcpyAttributes* attributes,
                          size_t* indices, size_t attribute_count,
                          CUstream stream) {
  const CUresult result = S::Real(dsts, srcs, sizes, count, attributes, indices,
                                  attribute_count, stream);
  RecordBatch(S::kName, dsts, srcs, sizes, count, stream, S::kPerThread,
              result);
  return result;
}
#endif

#if CUDA_VERSION >= 12080
template <typename S>
CUresult MemcpyBatchAsyncV1(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes,
                            size_t count, CUmemcpyAttributes* attributes,
                            size_t* indices, size_t attribute_count,
                            size_t* fail_index, CUstream stream) {
  const CUresult result = S::Real(dsts, srcs, sizes, count, attributes, indices,
                                  attribute_count, fail_index, stream);
  RecordBatch(S::kName, dsts, srcs, sizes, count, stream, S::kPerThread,
              result);
  return result;
}
#endif

}  // namespace

void AddCopyHooks(HookList* list) {
  HEDDLE_HOOK_PTDS(list, cuMemcpy, Memcpy);
  HEDDLE_HOOK_PTSZ(list, cuMemcpyAsync, MemcpyAsync);
  HEDDLE_HOOK_PTDS(list, cuMemcpyHtoD_v2, MemcpyHtoD);
  HEDDLE_HOOK_PTSZ(list, cuMemcpyHtoDAsync_v2, MemcpyHtoDAsync);
  HEDDLE_HOOK_PTDS(list, cuMemcpyDtoH_v2, MemcpyDtoH);
  HEDDLE_HOOK_PTSZ(list, cuMemcpyDtoHAsync_v2, MemcpyDtoHAsync);
  HEDDLE_HOOK_PTDS(list, cuMemcpyDtoD_v2, MemcpyDtoD);
  HEDDLE_HOOK_PTSZ(list, cuMemcpyDtoDAsync_v2, MemcpyDtoDAsync);
  HEDDLE_HOOK_PTDS(list, cuMemcpyPeer, MemcpyPeer);
  HEDDLE_HOOK_PTSZ(list, cuMemcpyPeerAsync, MemcpyPeerAsync);
  HEDDLE_HOOK_PTDS(list, cuMemcpy2D_v2, Memcpy2D);
  HEDDLE_HOOK_PTDS(list, cuMemcpy2DUnaligned_v2, Memcpy2D);
  HEDDLE_HOOK_PTSZ(list, cuMemcpy2DAsync_v2, Memcpy2DAsync);
  HEDDLE_HOOK_PTDS(list, cuMemcpy3D_v2, Memcpy3D);
  HEDDLE_HOOK_PTSZ(list, cuMemcpy3DAsync_v2, Memcpy3DAsync);
#if CUDA_VERSION >= 13000
  HEDDLE_HOOK_PTSZ(list, cuMemcpyBatchAsync_v2, MemcpyBatchAsync);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuMemcpy3DBatchAsync_v2);
#endif
#if CUDA_VERSION >= 12080
  HEDDLE_HOOK_PTSZ(list, cuMemcpyBatchAsync, MemcpyBatchAsyncV1);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuMemcpy3DBatchAsync);
#endif

  HEDDLE_UNSUPPORTED_PTDS(list, cuMemcpy3DPeer);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuMemcpy3DPeerAsync);
  HEDDLE_UNSUPPORTED_PTDS(list, cuMemcpyDtoA_v2);
  HEDDLE_UNSUPPORTED_PTDS(list, cuMemcpyAtoD_v2);
  HEDDLE_UNSUPPORTED_PTDS(list, cuMemcpyHtoA_v2);
  HEDDLE_UNSUPPORTED_PTDS(list, cuMemcpyAtoH_v2);
  HEDDLE_UNSUPPORTED_PTDS(list, cuMemcpyAtoA_v2);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuMemcpyHtoAAsync_v2);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuMemcpyAtoHAsync_v2);
  HEDDLE_UNSUPPORTED(list, cuMemcpyHtoD);
  HEDDLE_UNSUPPORTED(list, cuMemcpyDtoH);
  HEDDLE_UNSUPPORTED(list, cuMemcpyDtoD);
  HEDDLE_UNSUPPORTED(list, cuMemcpyHtoDAsync);
  HEDDLE_UNSUPPORTED(list, cuMemcpyDtoHAsync);
  HEDDLE_UNSUPPORTED(list, cuMemcpyDtoDAsync);
}

}  // namespace heddle::record
