// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/device.h"

namespace heddle::hostdevice {

HD_API(cuMemGetAllocationGranularity,
       (size_t * granularity, const CUmemAllocationProp* prop,
        CUmemAllocationGranularity_flags option)) {
  HD_ENTER(kInit);
  (void)option;
  if (granularity == nullptr || prop == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *granularity = kPageSize;
  return CUDA_SUCCESS;
}

HD_API(cuMemAddressReserve, (CUdeviceptr * ptr, size_t size, size_t alignment,
                             CUdeviceptr addr, unsigned long long flags)) {
  HD_ENTER(kContext);
  if (ptr == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  HD_TRY(Device::Get().memory().Reserve(size, alignment, addr, &address));
  *ptr = address;
  return CUDA_SUCCESS;
}

HD_API(cuMemAddressFree, (CUdeviceptr ptr, size_t size)) {
  HD_ENTER(kContext);
  return Device::Get().memory().Unreserve(ptr, size);
}

HD_API(cuMemCreate,
       (CUmemGenericAllocationHandle * handle, size_t size,
        const CUmemAllocationProp* prop, unsigned long long flags)) {
  HD_ENTER(kContext);
  if (handle == nullptr || prop == nullptr || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (prop->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  Physical* physical = nullptr;
  HD_TRY(Device::Get().memory().CreatePhysical(size, *prop, &physical));
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

HD_API(cuMemRelease, (CUmemGenericAllocationHandle handle)) {
  HD_ENTER(kContext);
  Memory& memory = Device::Get().memory();
  Physical* physical = memory.FindPhysical(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return memory.ReleaseHandle(physical);
}

HD_API(cuMemMap,
       (CUdeviceptr ptr, size_t size, size_t offset,
        CUmemGenericAllocationHandle handle, unsigned long long flags)) {
  HD_ENTER(kContext);
  Memory& memory = Device::Get().memory();
  Physical* physical = memory.FindPhysical(handle);
  if (physical == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return memory.Map(ptr, size, offset, physical, call.context());
}

HD_API(cuMemUnmap, (CUdeviceptr ptr, size_t size)) {
  HD_ENTER(kContext);
  // Work that is on its way may use the mapping.
  HD_TRY(Device::Get().scheduler().WaitAll());
  return Device::Get().memory().Unmap(ptr, size);
}

HD_API(cuMemSetAccess, (CUdeviceptr ptr, size_t size,
                        const CUmemAccessDesc* desc, size_t count)) {
  HD_ENTER(kContext);
  if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  int protection = PROT_NONE;
  for (size_t i = 0; i < count; ++i) {
    switch (desc[i].flags) {
      case CU_MEM_ACCESS_FLAGS_PROT_NONE:
        break;
      case CU_MEM_ACCESS_FLAGS_PROT_READ:
        protection |= PROT_READ;
        break;
      case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
        protection |= PROT_READ | PROT_WRITE;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return Device::Get().memory().SetAccess(ptr, size, protection);
}

HD_API(cuMemGetAccess, (unsigned long long* flags,
                        const CUmemLocation* location, CUdeviceptr ptr)) {
  HD_ENTER(kContext);
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int protection = 0;
  HD_TRY(Device::Get().memory().GetAccess(ptr, &protection));
  *flags = (protection & PROT_WRITE) != 0  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : (protection & PROT_READ) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

HD_API(cuMemRetainAllocationHandle,
       (CUmemGenericAllocationHandle * handle, void* addr)) {
  HD_ENTER(kContext);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Memory& memory = Device::Get().memory();
  Physical* physical = memory.PhysicalAt(reinterpret_cast<uint64_t>(addr));
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memory.RetainHandle(physical);
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

HD_API(cuMemGetAllocationPropertiesFromHandle,
       (CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle)) {
  HD_ENTER(kContext);
  Physical* physical = Device::Get().memory().FindPhysical(handle);
  if (prop == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = physical->prop;
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
