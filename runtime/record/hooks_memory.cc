// SPDX-License-Identifier: Apache-2.0
// Hooks of allocation: plain, pitched, stream-ordered, mapped, managed, host.

#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "runtime/record/hooks.h"
#include "runtime/record/hooks_unsupported.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

struct AllocCall {
  uint64_t address;
  uint64_t size;
  fb::MemoryKind kind;
  uint64_t stream = 0;
  uint64_t pool = 0;
  uint32_t flags = 0;
  uint64_t device_address = 0;
};

void RecordAlloc(const char* api, const AllocCall& call) {
  WithRecorder([&](Recorder& recorder) {
    recorder.memory().Add({call.address, call.size, call.kind});
    fb::AllocT record;
    record.stamp = recorder.StampPtr();
    record.address = call.address;
    record.size = call.size;
    record.kind = call.kind;
    record.stream = call.stream;
    record.pool = call.pool;
    record.flags = call.flags;
    record.device_address = call.device_address;
    record.api = api;
    recorder.writer().AppendObject(record);
  });
}

// Before the driver's call: afterwards the address may be another thread's.
void RecordFree(const char* api, uint64_t address, fb::MemoryKind kind,
                uint64_t stream = 0) {
  if (address == 0) return;
  WithRecorder([&](Recorder& recorder) {
    fb::FreeT record;
    record.stamp = recorder.StampPtr();
    record.address = address;
    record.size = recorder.memory().Remove(address);
    record.kind = kind;
    record.stream = stream;
    record.api = api;
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult MemAlloc(CUdeviceptr* address, size_t size) {
  const CUresult result = S::Real(address, size);
  if (result == CUDA_SUCCESS) {
    RecordAlloc(
        S::kName,
        {.address = *address, .size = size, .kind = fb::MemoryKind::kDevice});
  }
  return result;
}

template <typename S>
CUresult MemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width,
                       size_t height, unsigned int element) {
  const CUresult result = S::Real(address, pitch, width, height, element);
  if (result == CUDA_SUCCESS) {
    RecordAlloc(S::kName, {.address = *address,
                           .size = *pitch * height,
                           .kind = fb::MemoryKind::kDevice});
  }
  return result;
}

template <typename S>
CUresult MemAllocManaged(CUdeviceptr* address, size_t size,
                         unsigned int flags) {
  const CUresult result = S::Real(address, size, flags);
  if (result == CUDA_SUCCESS) {
    RecordAlloc(S::kName, {.address = *address,
                           .size = size,
                           .kind = fb::MemoryKind::kManaged,
                           .flags = flags});
  }
  return result;
}

template <typename S>
CUresult MemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  const CUresult result = S::Real(address, size, stream);
  if (result == CUDA_SUCCESS) {
    RecordAlloc(S::kName,
                {.address = *address,
                 .size = size,
                 .kind = fb::MemoryKind::kAsync,
                 .stream = Recorder::StreamId(stream, S::kPerThread)});
  }
  return result;
}

template <typename S>
CUresult MemAllocFromPoolAsync(CUdeviceptr* address, size_t size,
                               CUmemoryPool pool, CUstream stream) {
  const CUresult result = S::Real(address, size, pool, stream);
  if (result == CUDA_SUCCESS) {
    RecordAlloc(S::kName, {.address = *address,
                           .size = size,
                           .kind = fb::MemoryKind::kAsync,
                           .stream = Recorder::StreamId(stream, S::kPerThread),
                           .pool = reinterpret_cast<uint64_t>(pool)});
  }
  return result;
}

template <typename S>
CUresult MemFree(CUdeviceptr address) {
  RecordFree(S::kName, address, fb::MemoryKind::kDevice);
  return S::Real(address);
}

template <typename S>
CUresult MemFreeAsync(CUdeviceptr address, CUstream stream) {
  RecordFree(S::kName, address, fb::MemoryKind::kAsync,
             Recorder::StreamId(stream, S::kPerThread));
  return S::Real(address, stream);
}

// ---- host -------------------------------------------------------------------

void RecordHostAlloc(const char* api, void* memory, size_t size,
                     unsigned int flags) {
  // Under unified addressing, which every 64-bit platform of today has, the
  // device sees pinned memory at its host address.
  const auto address = reinterpret_cast<uint64_t>(memory);
  RecordAlloc(api, {.address = address,
                    .size = size,
                    .kind = fb::MemoryKind::kHost,
                    .flags = flags,
                    .device_address = address});
}

template <typename S>
CUresult MemAllocHost(void** memory, size_t size) {
  const CUresult result = S::Real(memory, size);
  if (result == CUDA_SUCCESS) RecordHostAlloc(S::kName, *memory, size, 0);
  return result;
}

template <typename S>
CUresult MemHostAlloc(void** memory, size_t size, unsigned int flags) {
  const CUresult result = S::Real(memory, size, flags);
  if (result == CUDA_SUCCESS) RecordHostAlloc(S::kName, *memory, size, flags);
  return result;
}

template <typename S>
CUresult MemHostRegister(void* memory, size_t size, unsigned int flags) {
  const CUresult result = S::Real(memory, size, flags);
  if (result == CUDA_SUCCESS) RecordHostAlloc(S::kName, memory, size, flags);
  return result;
}

template <typename S>
CUresult MemFreeHost(void* memory) {
  RecordFree(S::kName, reinterpret_cast<uint64_t>(memory),
             fb::MemoryKind::kHost);
  return S::Real(memory);
}

// ---- virtual memory management ----------------------------------------------

// Physical allocations in host memory (cuMemCreate with a host location): what
// is mapped from them is no device memory.
class HostHandles {
 public:
  void Add(CUmemGenericAllocationHandle handle, bool host) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (host) {
      handles_.insert(handle);
    } else {
      handles_.erase(handle);
    }
  }
  bool Contains(CUmemGenericAllocationHandle handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    return handles_.contains(handle);
  }

 private:
  std::mutex mutex_;
  absl::flat_hash_set<uint64_t> handles_;
};

HostHandles& PhysicalHostHandles() {
  static auto* handles = new HostHandles;
  return *handles;
}

template <typename S>
CUresult MemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                   const CUmemAllocationProp* properties,
                   unsigned long long flags) {
  const CUresult result = S::Real(handle, size, properties, flags);
  if (result == CUDA_SUCCESS && properties != nullptr) {
    const bool host = properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    WithRecorder([&](Recorder&) { PhysicalHostHandles().Add(*handle, host); });
  }
  return result;
}

template <typename S>
CUresult MemMap(CUdeviceptr address, size_t size, size_t offset,
                CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result = S::Real(address, size, offset, handle, flags);
  if (result == CUDA_SUCCESS) {
    const bool host = PhysicalHostHandles().Contains(handle);
    RecordAlloc(S::kName,
                {.address = address,
                 .size = size,
                 .kind = host ? fb::MemoryKind::kHost : fb::MemoryKind::kMapped,
                 .device_address = host ? address : 0});
  }
  return result;
}

template <typename S>
CUresult MemUnmap(CUdeviceptr address, size_t size) {
  WithRecorder([&](Recorder& recorder) {
    // One call may unmap several mappings.
    for (const MemoryBlock& block : recorder.memory().Blocks()) {
      if (block.address < address || block.address >= address + size) continue;
      RecordFree(S::kName, block.address, block.kind);
    }
  });
  return S::Real(address, size);
}

// ---- other processes --------------------------------------------------------

template <typename S>
CUresult IpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle,
                          unsigned int flags) {
  const CUresult result = S::Real(address, handle, flags);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      size_t size = 0;
      CUdeviceptr base = 0;
      if (recorder.driver().MemGetAddressRange != nullptr) {
        recorder.driver().MemGetAddressRange(&base, &size, *address);
      }
      RecordAlloc(
          S::kName,
          {.address = *address, .size = size, .kind = fb::MemoryKind::kIpc});
      recorder.Unsupported(S::kName,
                           "memory of another process: work on it cannot be "
                           "replayed");
    });
  }
  return result;
}

template <typename S>
CUresult IpcCloseMemHandle(CUdeviceptr address) {
  RecordFree(S::kName, address, fb::MemoryKind::kIpc);
  return S::Real(address);
}

}  // namespace

void AddMemoryHooks(HookList* list) {
  HEDDLE_HOOK(list, cuMemAlloc_v2, MemAlloc);
  HEDDLE_HOOK(list, cuMemAllocPitch_v2, MemAllocPitch);
  HEDDLE_HOOK(list, cuMemAllocManaged, MemAllocManaged);
  HEDDLE_HOOK_PTSZ(list, cuMemAllocAsync, MemAllocAsync);
  HEDDLE_HOOK_PTSZ(list, cuMemAllocFromPoolAsync, MemAllocFromPoolAsync);
  HEDDLE_HOOK(list, cuMemFree_v2, MemFree);
  HEDDLE_HOOK_PTSZ(list, cuMemFreeAsync, MemFreeAsync);

  HEDDLE_HOOK(list, cuMemAllocHost_v2, MemAllocHost);
  HEDDLE_HOOK(list, cuMemHostAlloc, MemHostAlloc);
  HEDDLE_HOOK(list, cuMemHostRegister, MemHostRegister);
  HEDDLE_HOOK(list, cuMemHostRegister_v2, MemHostRegister);
  HEDDLE_HOOK(list, cuMemHostUnregister, MemFreeHost);
  HEDDLE_HOOK(list, cuMemFreeHost, MemFreeHost);

  HEDDLE_HOOK(list, cuMemCreate, MemCreate);
  HEDDLE_HOOK(list, cuMemMap, MemMap);
  HEDDLE_HOOK(list, cuMemUnmap, MemUnmap);

  HEDDLE_HOOK(list, cuIpcOpenMemHandle, IpcOpenMemHandle);
  HEDDLE_HOOK(list, cuIpcOpenMemHandle_v2, IpcOpenMemHandle);
  HEDDLE_HOOK(list, cuIpcCloseMemHandle, IpcCloseMemHandle);

  HEDDLE_UNSUPPORTED(list, cuMemImportFromShareableHandle);
  HEDDLE_UNSUPPORTED(list, cuMemPoolImportPointer);
  HEDDLE_UNSUPPORTED(list, cuImportExternalMemory);
  HEDDLE_UNSUPPORTED(list, cuImportExternalSemaphore);
  HEDDLE_UNSUPPORTED_PTSZ(list, cuMemMapArrayAsync);
  HEDDLE_UNSUPPORTED(list, cuMemAlloc);
  HEDDLE_UNSUPPORTED(list, cuMemAllocPitch);
  HEDDLE_UNSUPPORTED(list, cuMemAllocHost);
}

}  // namespace heddle::record
