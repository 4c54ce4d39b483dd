// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc and its relatives, host memory.

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/device.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

constexpr size_t kPitchAlignment = 512;

CUresult AllocateDevice(CUdeviceptr* dptr, size_t bytesize, AllocationKind kind,
                        unsigned flags) {
  HD_ENTER(kContext);
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HD_TRY(CheckUnsafe());
  Allocation* allocation = nullptr;
  HD_TRY(Device::Get().memory().Allocate(bytesize, kind, call.context(),
                                         &allocation));
  allocation->flags = flags;
  *dptr = allocation->address;
  return CUDA_SUCCESS;
}

CUresult AllocateHost(void** pp, size_t bytesize, unsigned flags) {
  HD_ENTER(kContext);
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE |
                              CU_MEMHOSTALLOC_DEVICEMAP |
                              CU_MEMHOSTALLOC_WRITECOMBINED;
  if (pp == nullptr || bytesize == 0 || (flags & ~kKnown) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  HD_TRY(CheckUnsafe());
  Memory& memory = Device::Get().memory();
  void* data = memory.AllocateHost(bytesize);
  if (data == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  HD_TRY(memory.AddHost(data, bytesize, AllocationKind::kHost, flags,
                        call.context()));
  *pp = data;
  return CUDA_SUCCESS;
}

bool IsHost(const Allocation* allocation) {
  return allocation != nullptr &&
         (allocation->kind == AllocationKind::kHost ||
          allocation->kind == AllocationKind::kRegistered);
}

}  // namespace

HD_API(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize)) {
  return AllocateDevice(dptr, bytesize, AllocationKind::kDevice, 0);
}

HD_API(cuMemAllocPitch_v2,
       (CUdeviceptr * dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
        unsigned int ElementSizeBytes)) {
  if (pPitch == nullptr || WidthInBytes == 0 || Height == 0 ||
      (ElementSizeBytes != 4 && ElementSizeBytes != 8 &&
       ElementSizeBytes != 16)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pPitch =
      (WidthInBytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  return AllocateDevice(dptr, *pPitch * Height, AllocationKind::kDevice, 0);
}

HD_API(cuMemAllocManaged,
       (CUdeviceptr * dptr, size_t bytesize, unsigned int flags)) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return AllocateDevice(dptr, bytesize, AllocationKind::kManaged, flags);
}

HD_API(cuMemFree_v2, (CUdeviceptr dptr)) {
  HD_ENTER(kContext);
  if (dptr == 0) return CUDA_SUCCESS;
  HD_TRY(CheckUnsafe());
  Device& device = Device::Get();
  Allocation* allocation = device.memory().FindStart(dptr);
  if (allocation == nullptr || IsHost(allocation) ||
      allocation->kind == AllocationKind::kMapped || allocation->free_queued) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Freeing waits for all work that may use the memory.
  HD_TRY(device.scheduler().WaitAll());
  if (allocation->kind == AllocationKind::kGraph) {
    // The next launch has the same address: only the content goes.
    device.memory().Fill(dptr, allocation->size);
  } else {
    device.memory().Free(allocation);
  }
  return CUDA_SUCCESS;
}

HD_API(cuMemGetInfo_v2, (size_t * free, size_t* total)) {
  HD_ENTER(kContext);
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *free = kCapacity - Device::Get().memory().used();
  *total = kCapacity;
  return CUDA_SUCCESS;
}

HD_API(cuMemGetAddressRange_v2,
       (CUdeviceptr * pbase, size_t* psize, CUdeviceptr dptr)) {
  HD_ENTER(kContext);
  const Allocation* allocation = Device::Get().memory().Find(dptr);
  if (allocation == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (pbase != nullptr) *pbase = allocation->address;
  if (psize != nullptr) *psize = allocation->size;
  return CUDA_SUCCESS;
}

HD_API(cuMemAllocHost_v2, (void** pp, size_t bytesize)) {
  return AllocateHost(pp, bytesize, 0);
}

HD_API(cuMemHostAlloc, (void** pp, size_t bytesize, unsigned int Flags)) {
  return AllocateHost(pp, bytesize, Flags);
}

HD_API(cuMemFreeHost, (void* p)) {
  HD_ENTER(kContext);
  if (p == nullptr) return CUDA_SUCCESS;
  HD_TRY(CheckUnsafe());
  Device& device = Device::Get();
  Allocation* allocation =
      device.memory().FindStart(reinterpret_cast<uint64_t>(p));
  if (allocation == nullptr || allocation->kind != AllocationKind::kHost) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  HD_TRY(device.scheduler().WaitAll());
  device.memory().RemoveHost(allocation);
  return CUDA_SUCCESS;
}

HD_API(cuMemHostRegister_v2, (void* p, size_t bytesize, unsigned int Flags)) {
  HD_ENTER(kContext);
  if (p == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  HD_TRY(CheckUnsafe());
  return Device::Get().memory().AddHost(
      p, bytesize, AllocationKind::kRegistered, Flags, call.context());
}

HD_API(cuMemHostUnregister, (void* p)) {
  HD_ENTER(kContext);
  HD_TRY(CheckUnsafe());
  Memory& memory = Device::Get().memory();
  Allocation* allocation = memory.FindStart(reinterpret_cast<uint64_t>(p));
  if (allocation == nullptr ||
      allocation->kind != AllocationKind::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  HD_TRY(Device::Get().scheduler().WaitAll());
  memory.RemoveHost(allocation);
  return CUDA_SUCCESS;
}

HD_API(cuMemHostGetDevicePointer_v2,
       (CUdeviceptr * pdptr, void* p, unsigned int Flags)) {
  HD_ENTER(kContext);
  if (pdptr == nullptr || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto address = reinterpret_cast<uint64_t>(p);
  if (!IsHost(Device::Get().memory().Find(address))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pdptr = address;  // one address space
  return CUDA_SUCCESS;
}

HD_API(cuMemHostGetFlags, (unsigned int* pFlags, void* p)) {
  HD_ENTER(kContext);
  const Allocation* allocation =
      Device::Get().memory().Find(reinterpret_cast<uint64_t>(p));
  if (pFlags == nullptr || !IsHost(allocation)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pFlags = allocation->flags;
  return CUDA_SUCCESS;
}

namespace {

// Managed memory is where it is, whatever the program prefers.
CUresult CheckManaged(CUdeviceptr address, size_t count) {
  const Allocation* allocation = Device::Get().memory().Find(address);
  if (allocation == nullptr || allocation->kind != AllocationKind::kManaged ||
      !Device::Get().memory().Contains(address, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult Prefetch(CUdeviceptr address, size_t count, CUstream hStream) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HD_TRY(RefuseInCapture(stream));
  return CheckManaged(address, count);
}

}  // namespace

HD_API(cuMemAdvise, (CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                     CUdevice device)) {
  HD_ENTER(kContext);
  (void)advice;
  (void)device;
  return CheckManaged(devPtr, count);
}

HD_API(cuMemAdvise_v2, (CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location)) {
  HD_ENTER(kContext);
  (void)advice;
  (void)location;
  return CheckManaged(devPtr, count);
}

HD_STREAM_API(cuMemPrefetchAsync,
              (CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
               CUstream hStream),
              (devPtr, count, dstDevice, hStream)) {
  (void)dstDevice;
  return Prefetch(devPtr, count, hStream);
}

HD_STREAM_API(cuMemPrefetchAsync_v2,
              (CUdeviceptr devPtr, size_t count, CUmemLocation location,
               unsigned int flags, CUstream hStream),
              (devPtr, count, location, flags, hStream)) {
  (void)location;
  (void)flags;
  return Prefetch(devPtr, count, hStream);
}

}  // namespace heddle::hostdevice
