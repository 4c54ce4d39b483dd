// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: which version of a function a caller of a certain CUDA
// version gets.

#include <cstring>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/device.h"

// The functions of unsupported.cc under names of their own: not every cuda.h
// that this is built with declares them all.
#define HD_UNSUPPORTED(name, version, symbol) \
  extern "C" int unsupported_##symbol() __asm__(#symbol);
#define HD_UNSUPPORTED_PER_THREAD HD_UNSUPPORTED
#include "tests/hostdevice/unsupported.inc"
#undef HD_UNSUPPORTED_PER_THREAD
#undef HD_UNSUPPORTED

HD_EXPORT CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** pfn,
                                            int cudaVersion, cuuint64_t flags);
HD_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(
    const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
    CUdriverProcAddressQueryResult* symbolStatus);

namespace heddle::hostdevice {
namespace {

constexpr int kDriverVersion = 13000;

struct Entry {
  const char* name;
  int since;        // the CUDA version that brought this form
  bool per_thread;  // the _ptsz or _ptds form
  void* function;
};

const Entry* Entries(size_t* count) {
#define HD_PROC(name, version, symbol) \
  {#name, version, false, reinterpret_cast<void*>(&(symbol))},
#define HD_PROC_PER_THREAD(name, version, symbol) \
  {#name, version, true, reinterpret_cast<void*>(&(symbol))},
#define HD_UNSUPPORTED(name, version, symbol) \
  HD_PROC(name, version, unsupported_##symbol)
#define HD_UNSUPPORTED_PER_THREAD(name, version, symbol) \
  HD_PROC_PER_THREAD(name, version, unsupported_##symbol)
  static const Entry entries[] = {
#include "tests/hostdevice/proc_address.inc"
#include "tests/hostdevice/unsupported.inc"
  };
#undef HD_UNSUPPORTED_PER_THREAD
#undef HD_UNSUPPORTED
#undef HD_PROC_PER_THREAD
#undef HD_PROC
  *count = sizeof(entries) / sizeof(entries[0]);
  return entries;
}

CUresult Look(const char* symbol, void** pfn, int version, cuuint64_t flags,
              CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kKnown = CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                                CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || pfn == nullptr || version > kDriverVersion ||
      (flags & ~kKnown) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool per_thread =
      (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  size_t count = 0;
  const Entry* entries = Entries(&count);
  const Entry* best = nullptr;
  bool known = false;
  for (size_t i = 0; i < count; ++i) {
    const Entry& entry = entries[i];
    if (std::strcmp(entry.name, symbol) != 0) continue;
    known = true;
    if (entry.since > version || (entry.per_thread && !per_thread)) continue;
    // The newest form that the caller knows; of a form, the per-thread variant
    // if it was asked for.
    if (best == nullptr || entry.since > best->since ||
        (entry.per_thread && !best->per_thread)) {
      best = &entry;
    }
  }
  *pfn = best == nullptr ? nullptr : best->function;
  if (status != nullptr) {
    *status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace heddle::hostdevice

// The first form has no status: it fails where the second says why it is null.
CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** pfn,
                                  int cudaVersion, cuuint64_t flags) {
  const CUresult result =
      heddle::hostdevice::Look(symbol, pfn, cudaVersion, flags, nullptr);
  if (result == CUDA_SUCCESS && *pfn == nullptr) return CUDA_ERROR_NOT_FOUND;
  return result;
}

CUresult CUDAAPI cuGetProcAddress_v2(
    const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
    CUdriverProcAddressQueryResult* symbolStatus) {
  return heddle::hostdevice::Look(symbol, pfn, cudaVersion, flags,
                                  symbolStatus);
}

// The private tables of the real driver are not here.
HD_API(cuGetExportTable,
       (const void** ppExportTable, const CUuuid* pExportTableId)) {
  if (ppExportTable == nullptr || pExportTableId == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *ppExportTable = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
