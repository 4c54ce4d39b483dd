// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation.

#include "tests/hostdevice/memory_pool.h"

#include <algorithm>
#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

MemoryPool* current_pool = nullptr;  // cuDeviceSetMemPool

CUmemoryPool Handle(MemoryPool* pool) {
  return reinterpret_cast<CUmemoryPool>(pool);
}

CUresult AllocateAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                       bool named, CUstream hStream) {
  HD_ENTER(kContext);
  Device& device = Device::Get();
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  MemoryPool* from = named                     ? device.pools.Find(pool)
                     : current_pool != nullptr ? current_pool
                                               : DefaultPool();
  if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) return CaptureAlloc(stream, bytesize, dptr);
  HD_TRY(CheckLegacy(stream));
  Allocation* allocation = nullptr;
  CUresult result = device.memory().Allocate(bytesize, AllocationKind::kAsync,
                                             call.context(), &allocation);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    // Frees that are on their way make room.
    HD_TRY(device.scheduler().WaitAll());
    result = device.memory().Allocate(bytesize, AllocationKind::kAsync,
                                      call.context(), &allocation);
  }
  if (result != CUDA_SUCCESS) return result;
  allocation->pool = from;
  from->used += bytesize;
  from->used_high = std::max(from->used_high, from->used);
  // The memory is the program's from this point of the stream on: who writes it
  // earlier, from elsewhere, loses what was written.
  const uint64_t address = allocation->address;
  const uint64_t id = allocation->id;
  auto op = std::make_shared<Op>();
  op->activity.name = "allocation";
  op->action = [address, id, bytesize] {
    Memory& memory = Device::Get().memory();
    const Allocation* found = memory.FindStart(address);
    if (found != nullptr && found->id == id) memory.Fill(address, bytesize);
  };
  Submit(stream, op);
  *dptr = address;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult AllocateForGraph(Context* context, AllocWork* work) {
  if (work->alloc.bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation* allocation = nullptr;
  HD_TRY(Device::Get().memory().Allocate(
      work->alloc.bytesize, AllocationKind::kGraph, context, &allocation));
  work->alloc.dptr = allocation->address;
  const uint64_t address = allocation->address;
  const uint64_t id = allocation->id;
  work->holder = std::shared_ptr<void>(nullptr, [address, id](void*) {
    Memory& memory = Device::Get().memory();
    Allocation* found = memory.FindStart(address);
    if (found != nullptr && found->id == id) memory.Free(found);
  });
  return CUDA_SUCCESS;
}

MemoryPool* DefaultPool() {
  static MemoryPool* pool = nullptr;
  if (pool == nullptr) {
    pool = Device::Get().pools.New();
    pool->is_default = true;
    pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  }
  return pool;
}

HD_STREAM_API(cuMemAllocAsync,
              (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
              (dptr, bytesize, hStream)) {
  return AllocateAsync(dptr, bytesize, nullptr, false, hStream);
}

HD_STREAM_API(cuMemAllocFromPoolAsync,
              (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool,
               CUstream hStream),
              (dptr, bytesize, pool, hStream)) {
  return AllocateAsync(dptr, bytesize, pool, true, hStream);
}

HD_STREAM_API(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream),
              (dptr, hStream)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) {
    return CaptureWork(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, FreeWork{dptr},
                       false);
  }
  HD_TRY(CheckLegacy(stream));
  Allocation* allocation = Device::Get().memory().FindStart(dptr);
  if (allocation == nullptr || allocation->free_queued ||
      (allocation->kind != AllocationKind::kAsync &&
       allocation->kind != AllocationKind::kGraph &&
       allocation->kind != AllocationKind::kDevice)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  allocation->free_queued = allocation->kind != AllocationKind::kGraph;
  const uint64_t id = allocation->id;
  auto op = std::make_shared<Op>();
  op->activity.name = "free";
  op->action = [dptr, id] { FreeNow(dptr, id); };
  Submit(stream, op);
  return CUDA_SUCCESS;
}

void FreeNow(CUdeviceptr address, uint64_t id) {
  Device& device = Device::Get();
  Allocation* allocation = device.memory().FindStart(address);
  if (allocation == nullptr || (id != 0 && allocation->id != id)) return;
  if (allocation->kind == AllocationKind::kGraph) {
    // The next launch has the same address: only the content goes.
    device.memory().Fill(address, allocation->size);
    return;
  }
  auto* pool = device.pools.Find(allocation->pool);
  if (pool != nullptr) pool->used -= allocation->size;
  device.memory().Free(allocation);
}

HD_API(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool_out, CUdevice dev)) {
  HD_ENTER(kInit);
  if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  *pool_out = Handle(DefaultPool());
  return CUDA_SUCCESS;
}

HD_API(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice dev)) {
  HD_ENTER(kInit);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  *pool = Handle(current_pool != nullptr ? current_pool : DefaultPool());
  return CUDA_SUCCESS;
}

HD_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool)) {
  HD_ENTER(kInit);
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  MemoryPool* found = Device::Get().pools.Find(pool);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  current_pool = found;
  return CUDA_SUCCESS;
}

HD_API(cuMemPoolCreate,
       (CUmemoryPool * pool, const CUmemPoolProps* poolProps)) {
  HD_ENTER(kContext);
  if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  MemoryPool* made = Device::Get().pools.New();
  made->props = *poolProps;
  *pool = Handle(made);
  return CUDA_SUCCESS;
}

HD_API(cuMemPoolDestroy, (CUmemoryPool pool)) {
  HD_ENTER(kContext);
  MemoryPool* found = Device::Get().pools.Find(pool);
  if (found == nullptr || found->is_default) return CUDA_ERROR_INVALID_VALUE;
  HD_TRY(Device::Get().scheduler().WaitAll());
  if (current_pool == found) current_pool = nullptr;
  Device::Get().pools.Delete(found);
  return CUDA_SUCCESS;
}

HD_API(cuMemPoolTrimTo, (CUmemoryPool pool, size_t minBytesToKeep)) {
  HD_ENTER(kContext);
  (void)minBytesToKeep;  // nothing is kept
  return Device::Get().pools.Find(pool) == nullptr ? CUDA_ERROR_INVALID_VALUE
                                                   : CUDA_SUCCESS;
}

HD_API(cuMemPoolSetAttribute,
       (CUmemoryPool pool, CUmemPool_attribute attr, void* value)) {
  HD_ENTER(kContext);
  MemoryPool* found = Device::Get().pools.Find(pool);
  if (found == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      found->reuse_attributes[attr] = *static_cast<const int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      found->release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      // Only zero may be set: it starts anew.
      if (*static_cast<const cuuint64_t*>(value) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      found->used_high = found->used;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

HD_API(cuMemPoolGetAttribute,
       (CUmemoryPool pool, CUmemPool_attribute attr, void* value)) {
  HD_ENTER(kContext);
  MemoryPool* found = Device::Get().pools.Find(pool);
  if (found == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto put = [value](uint64_t bytes) {
    *static_cast<cuuint64_t*>(value) = bytes;
    return CUDA_SUCCESS;
  };
  switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
      auto it = found->reuse_attributes.find(attr);
      *static_cast<int*>(value) =
          it == found->reuse_attributes.end() ? 1 : it->second;
      return CUDA_SUCCESS;
    }
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return put(found->release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return put(found->used);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return put(found->used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

HD_API(cuMemPoolSetAccess,
       (CUmemoryPool pool, const CUmemAccessDesc* map, size_t count)) {
  HD_ENTER(kContext);
  if (Device::Get().pools.Find(pool) == nullptr ||
      (map == nullptr && count > 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;  // the one device always has access
}

HD_API(cuMemPoolGetAccess, (CUmemAccess_flags * flags, CUmemoryPool memPool,
                            CUmemLocation* location)) {
  HD_ENTER(kContext);
  if (flags == nullptr || location == nullptr ||
      Device::Get().pools.Find(memPool) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
