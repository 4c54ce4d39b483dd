// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/device.h"

namespace heddle::hostdevice {
namespace {

template <typename T>
CUresult Put(void* data, T value) {
  std::memcpy(data, &value, sizeof(value));
  return CUDA_SUCCESS;
}

CUresult GetAttribute(void* data, CUpointer_attribute attribute,
                      CUdeviceptr ptr) {
  const Allocation* allocation = Device::Get().memory().Find(ptr);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool host = allocation->kind == AllocationKind::kHost ||
                    allocation->kind == AllocationKind::kRegistered;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Put(data, reinterpret_cast<CUcontext>(
                           allocation->kind == AllocationKind::kMapped
                               ? nullptr
                               : allocation->context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Put(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!host && allocation->kind != AllocationKind::kManaged) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      return Put(data, reinterpret_cast<void*>(ptr));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Put(data, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Put(data, static_cast<unsigned long long>(allocation->id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put(data, allocation->kind == AllocationKind::kManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Put(data, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Put(data, static_cast<CUdeviceptr>(allocation->address));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put(data, static_cast<size_t>(allocation->size));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Put(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put(data, 0ull);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put(data, reinterpret_cast<CUmemoryPool>(allocation->pool));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

HD_API(cuPointerGetAttribute,
       (void* data, CUpointer_attribute attribute, CUdeviceptr ptr)) {
  HD_ENTER(kContext);
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return GetAttribute(data, attribute, ptr);
}

HD_API(cuPointerGetAttributes,
       (unsigned int numAttributes, CUpointer_attribute* attributes,
        void** data, CUdeviceptr ptr)) {
  HD_ENTER(kContext);
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Unlike the single form, an unknown pointer is no error: its attributes are
  // zeros.
  for (unsigned i = 0; i < numAttributes; ++i) {
    if (GetAttribute(data[i], attributes[i], ptr) == CUDA_SUCCESS) continue;
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      case CU_POINTER_ATTRIBUTE_MAPPED:
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        Put(data[i], 0);
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        Put(data[i], -2);
        break;
      default:
        Put(data[i], 0ull);
    }
  }
  return CUDA_SUCCESS;
}

HD_API(cuPointerSetAttribute,
       (const void* value, CUpointer_attribute attribute, CUdeviceptr ptr)) {
  HD_ENTER(kContext);
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
      Device::Get().memory().Find(ptr) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
