// SPDX-License-Identifier: Apache-2.0
// Hooks of allocation: what memory the program has, so that a trial can keep
// it.

#include "runtime/live/hooks.h"
#include "runtime/live/optimizer.h"

namespace heddle::live {
namespace {

void Add(uint64_t address, uint64_t size, fb::MemoryKind kind) {
  WithOptimizer([&](Optimizer& optimizer) {
    optimizer.memory().Add({address, size, kind});
  });
}

// Before the driver's call: afterwards the address may be another thread's.
void Remove(uint64_t address) {
  WithOptimizer([&](Optimizer& optimizer) { optimizer.MemoryGoes(address); });
}

template <typename S>
CUresult MemAlloc(CUdeviceptr* address, size_t size) {
  const Gate::Pass pass;
  const CUresult result = S::Real(address, size);
  if (result == CUDA_SUCCESS) Add(*address, size, fb::MemoryKind::kDevice);
  return result;
}

template <typename S>
CUresult MemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width,
                       size_t height, unsigned int element) {
  const Gate::Pass pass;
  const CUresult result = S::Real(address, pitch, width, height, element);
  if (result == CUDA_SUCCESS) {
    Add(*address, *pitch * height, fb::MemoryKind::kDevice);
  }
  return result;
}

template <typename S>
CUresult MemAllocManaged(CUdeviceptr* address, size_t size,
                         unsigned int flags) {
  const Gate::Pass pass;
  const CUresult result = S::Real(address, size, flags);
  if (result == CUDA_SUCCESS) Add(*address, size, fb::MemoryKind::kManaged);
  return result;
}

template <typename S>
CUresult MemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  const Gate::Pass pass;
  const CUresult result = S::Real(address, size, stream);
  if (result == CUDA_SUCCESS) Add(*address, size, fb::MemoryKind::kAsync);
  return result;
}

template <typename S>
CUresult MemAllocFromPoolAsync(CUdeviceptr* address, size_t size,
                               CUmemoryPool pool, CUstream stream) {
  const Gate::Pass pass;
  const CUresult result = S::Real(address, size, pool, stream);
  if (result == CUDA_SUCCESS) Add(*address, size, fb::MemoryKind::kAsync);
  return result;
}

template <typename S>
CUresult MemFree(CUdeviceptr address) {
  const Gate::Pass pass;
  Remove(address);
  return S::Real(address);
}

template <typename S>
CUresult MemFreeAsync(CUdeviceptr address, CUstream stream) {
  const Gate::Pass pass;
  Remove(address);
  return S::Real(address, stream);
}

template <typename S>
CUresult MemAllocHost(void** memory, size_t size) {
  const CUresult result = S::Real(memory, size);
  if (result == CUDA_SUCCESS) {
    Add(reinterpret_cast<uint64_t>(*memory), size, fb::MemoryKind::kHost);
  }
  return result;
}

template <typename S>
CUresult MemHostAlloc(void** memory, size_t size, unsigned int flags) {
  const CUresult result = S::Real(memory, size, flags);
  if (result == CUDA_SUCCESS) {
    Add(reinterpret_cast<uint64_t>(*memory), size, fb::MemoryKind::kHost);
  }
  return result;
}

template <typename S>
CUresult MemHostRegister(void* memory, size_t size, unsigned int flags) {
  const CUresult result = S::Real(memory, size, flags);
  if (result == CUDA_SUCCESS) {
    Add(reinterpret_cast<uint64_t>(memory), size, fb::MemoryKind::kHost);
  }
  return result;
}

template <typename S>
CUresult MemFreeHost(void* memory) {
  const Gate::Pass pass;
  Remove(reinterpret_cast<uint64_t>(memory));
  return S::Real(memory);
}

template <typename S>
CUresult MemMap(CUdeviceptr address, size_t size, size_t offset,
                CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const Gate::Pass pass;
  const CUresult result = S::Real(address, size, offset, handle, flags);
  if (result == CUDA_SUCCESS) {
    WithOptimizer([&](Optimizer& optimizer) {
      if (!optimizer.asks_for_accesses()) return;
      optimizer.accesses().Mapped(address, handle);
    });
    Add(address, size, fb::MemoryKind::kMapped);
  }
  return result;
}

template <typename S>
CUresult MemUnmap(CUdeviceptr address, size_t size) {
  const Gate::Pass pass;
  WithOptimizer([&](Optimizer& optimizer) {
    // One call may unmap several mappings.
    for (const record::MemoryBlock& block : optimizer.memory().Blocks()) {
      if (block.address >= address && block.address < address + size) {
        optimizer.MemoryGoes(block.address);
      }
    }
  });
  return S::Real(address, size);
}

// ---- memory that others see too ----

template <typename S, typename Fn>
struct SharingHook;
template <typename S, typename... Args>
struct SharingHook<S, CUresult (*)(Args...)> {
  static CUresult Hook(Args... args) {
    const CUresult result = S::Real(args...);
    if (result == CUDA_SUCCESS) {
      WithOptimizer(
          [](Optimizer& optimizer) { optimizer.SharesMemory(S::kName); });
    }
    return result;
  }
};
#define HEDDLE_LIVE_SHARING(list, symbol)      \
  record::AddHook<HEDDLE_LIVE_SYMBOL(symbol)>( \
      list,                                    \
      &SharingHook<HEDDLE_LIVE_SYMBOL(symbol), decltype(&::symbol)>::Hook)

}  // namespace

void AddMemoryHooks(HookList* list) {
  HEDDLE_LIVE_HOOK(list, cuMemAlloc_v2, MemAlloc);
  HEDDLE_LIVE_HOOK(list, cuMemAllocPitch_v2, MemAllocPitch);
  HEDDLE_LIVE_HOOK(list, cuMemAllocManaged, MemAllocManaged);
  HEDDLE_LIVE_HOOK_PTSZ(list, cuMemAllocAsync, MemAllocAsync);
  HEDDLE_LIVE_HOOK_PTSZ(list, cuMemAllocFromPoolAsync, MemAllocFromPoolAsync);
  HEDDLE_LIVE_HOOK(list, cuMemFree_v2, MemFree);
  HEDDLE_LIVE_HOOK_PTSZ(list, cuMemFreeAsync, MemFreeAsync);
  HEDDLE_LIVE_HOOK(list, cuMemAllocHost_v2, MemAllocHost);
  HEDDLE_LIVE_HOOK(list, cuMemHostAlloc, MemHostAlloc);
  HEDDLE_LIVE_HOOK(list, cuMemHostRegister, MemHostRegister);
  HEDDLE_LIVE_HOOK(list, cuMemHostRegister_v2, MemHostRegister);
  HEDDLE_LIVE_HOOK(list, cuMemHostUnregister, MemFreeHost);
  HEDDLE_LIVE_HOOK(list, cuMemFreeHost, MemFreeHost);
  HEDDLE_LIVE_HOOK(list, cuMemMap, MemMap);
  HEDDLE_LIVE_HOOK(list, cuMemUnmap, MemUnmap);
  HEDDLE_LIVE_GATED(list, cuMemSetAccess);

  HEDDLE_LIVE_SHARING(list, cuIpcOpenMemHandle);
  HEDDLE_LIVE_SHARING(list, cuIpcOpenMemHandle_v2);
  HEDDLE_LIVE_SHARING(list, cuIpcGetMemHandle);
  HEDDLE_LIVE_SHARING(list, cuMemImportFromShareableHandle);
  HEDDLE_LIVE_SHARING(list, cuMemExportToShareableHandle);
  HEDDLE_LIVE_SHARING(list, cuMemPoolImportPointer);
  HEDDLE_LIVE_SHARING(list, cuMemPoolExportPointer);
  HEDDLE_LIVE_SHARING(list, cuImportExternalMemory);
  HEDDLE_LIVE_SHARING(list, cuMulticastCreate);
  HEDDLE_LIVE_SHARING(list, cuCtxEnablePeerAccess);
}

}  // namespace heddle::live
