// SPDX-License-Identifier: Apache-2.0
// Hooks of fills.

#include "runtime/record/hooks.h"
#include "runtime/record/hooks_unsupported.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

struct MemsetCall {
  const char* api;
  uint64_t dst;
  uint32_t value;
  uint32_t element_size;
  uint64_t width;
  uint64_t height = 1;
  uint64_t pitch = 0;
  CUstream stream = nullptr;
  bool per_thread = false;
  bool async = false;
};

void Record(const MemsetCall& call, CUresult result) {
  WithRecorder([&](Recorder& recorder) {
    if (!recorder.writes_work()) return;
    fb::MemsetT record;
    record.stamp = recorder.StampPtr();
    record.stream = Recorder::StreamId(call.stream, call.per_thread);
    record.dst = call.dst;
    record.value = call.value;
    record.element_size = call.element_size;
    record.width = call.width;
    record.height = call.height;
    record.pitch = call.pitch;
    record.async = call.async;
    record.capturing = recorder.IsCapturing(call.stream, call.per_thread);
    record.api = call.api;
    record.status = static_cast<int>(result);
    recorder.writer().AppendObject(record);
  });
}

// One body for each of the four shapes of the call; the element type comes from
// the symbol's own signature.
template <typename S, typename Fn>
struct MemsetHook;

template <typename S, typename Value>
struct MemsetHook<S, CUresult (*)(CUdeviceptr, Value, size_t)> {
  static CUresult Hook(CUdeviceptr dst, Value value, size_t count) {
    const CUresult result = S::Real(dst, value, count);
    Record({.api = S::kName,
            .dst = dst,
            .value = value,
            .element_size = sizeof(Value),
            .width = count,
            .per_thread = S::kPerThread},
           result);
    return result;
  }
};

template <typename S, typename Value>
struct MemsetHook<S, CUresult (*)(CUdeviceptr, Value, size_t, CUstream)> {
  static CUresult Hook(CUdeviceptr dst, Value value, size_t count,
                       CUstream stream) {
    const CUresult result = S::Real(dst, value, count, stream);
    Record({.api = S::kName,
            .dst = dst,
            .value = value,
            .element_size = sizeof(Value),
            .width = count,
            .stream = stream,
            .per_thread = S::kPerThread,
            .async = true},
           result);
    return result;
  }
};

template <typename S, typename Value>
struct MemsetHook<S, CUresult (*)(CUdeviceptr, size_t, Value, size_t, size_t)> {
  static CUresult Hook(CUdeviceptr dst, size_t pitch, Value value, size_t width,
                       size_t height) {
    const CUresult result = S::Real(dst, pitch, value, width, height);
    Record({.api = S::kName,
            .dst = dst,
            .value = value,
            .element_size = sizeof(Value),
            .width = width,
            .height = height,
            .pitch = pitch,
            .per_thread = S::kPerThread},
           result);
    return result;
  }
};

template <typename S, typename Value>
struct MemsetHook<S, CUresult (*)(CUdeviceptr, size_t, Value, size_t, size_t,
                                  CUstream)> {
  static CUresult Hook(CUdeviceptr dst, size_t pitch, Value value, size_t width,
                       size_t height, CUstream stream) {
    const CUresult result = S::Real(dst, pitch, value, width, height, stream);
    Record({.api = S::kName,
            .dst = dst,
            .value = value,
            .element_size = sizeof(Value),
            .width = width,
            .height = height,
            .pitch = pitch,
            .stream = stream,
            .per_thread = S::kPerThread,
            .async = true},
           result);
    return result;
  }
};

template <typename S>
void AddMemset(HookList* list) {
  AddHook<S>(list, &MemsetHook<S, typename S::Fn>::Hook);
}
#define HEDDLE_MEMSET(list, symbol, suffix)              \
  AddMemset<Symbol<#symbol, decltype(&::symbol)>>(list); \
  AddMemset<Symbol<#symbol #suffix, decltype(&::symbol##suffix)>>(list)

}  // namespace

void AddMemsetHooks(HookList* list) {
  HEDDLE_MEMSET(list, cuMemsetD8_v2, _ptds);
  HEDDLE_MEMSET(list, cuMemsetD16_v2, _ptds);
  HEDDLE_MEMSET(list, cuMemsetD32_v2, _ptds);
  HEDDLE_MEMSET(list, cuMemsetD2D8_v2, _ptds);
  HEDDLE_MEMSET(list, cuMemsetD2D16_v2, _ptds);
  HEDDLE_MEMSET(list, cuMemsetD2D32_v2, _ptds);
  HEDDLE_MEMSET(list, cuMemsetD8Async, _ptsz);
  HEDDLE_MEMSET(list, cuMemsetD16Async, _ptsz);
  HEDDLE_MEMSET(list, cuMemsetD32Async, _ptsz);
  HEDDLE_MEMSET(list, cuMemsetD2D8Async, _ptsz);
  HEDDLE_MEMSET(list, cuMemsetD2D16Async, _ptsz);
  HEDDLE_MEMSET(list, cuMemsetD2D32Async, _ptsz);
  HEDDLE_UNSUPPORTED(list, cuMemsetD8);
  HEDDLE_UNSUPPORTED(list, cuMemsetD16);
  HEDDLE_UNSUPPORTED(list, cuMemsetD32);
  HEDDLE_UNSUPPORTED(list, cuMemsetD2D8);
  HEDDLE_UNSUPPORTED(list, cuMemsetD2D16);
  HEDDLE_UNSUPPORTED(list, cuMemsetD2D32);
}

}  // namespace heddle::record
