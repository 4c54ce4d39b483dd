// SPDX-License-Identifier: Apache-2.0
// What programs ask about the device before they use it.

#include <cstdio>
#include <cstring>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/device.h"
#include "tests/hostdevice/memory_pool.h"

namespace heddle::hostdevice {
namespace {

constexpr char kName[] = "heddle host device";
constexpr char kUuid[] = "heddle-hostdevic";  // 16 bytes

// Figures of a small sm_90 device, except where this one differs.
int Attribute(CUdevice_attribute attribute, bool* known) {
  *known = true;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 49152;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 232448;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return kSharedPerMultiprocessor;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return kReservedSharedPerBlock;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return kRegistersPerMultiprocessor;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1000000;  // kHz
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return Device::Get().scheduler().multiprocessors();
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return Device::Get().scheduler().blocks_per_multiprocessor();
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return kThreadsPerMultiprocessor;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 4096;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 32 << 20;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
      return 1;
    default:
      // Known to the driver, and absent here.
      *known = attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX;
      return 0;
  }
}

CUresult GetUuid(CUuuid* uuid, CUdevice dev) {
  HD_ENTER(kInit);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid->bytes, kUuid, sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}

}  // namespace

HD_API(cuDeviceGet, (CUdevice * device, int ordinal)) {
  HD_ENTER(kInit);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

HD_API(cuDeviceGetCount, (int* count)) {
  HD_ENTER(kInit);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = 1;
  return CUDA_SUCCESS;
}

HD_API(cuDeviceGetName, (char* name, int len, CUdevice dev)) {
  HD_ENTER(kInit);
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(len), "%s", kName);
  return CUDA_SUCCESS;
}

HD_API(cuDeviceGetUuid, (CUuuid * uuid, CUdevice dev)) {
  return GetUuid(uuid, dev);
}
HD_API(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice dev)) {
  return GetUuid(uuid, dev);
}

HD_API(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice dev)) {
  HD_ENTER(kInit);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = kCapacity;
  return CUDA_SUCCESS;
}

HD_API(cuDeviceGetAttribute,
       (int* pi, CUdevice_attribute attrib, CUdevice dev)) {
  HD_ENTER(kInit);
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  bool known = false;
  const int value = Attribute(attrib, &known);
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  *pi = value;
  return CUDA_SUCCESS;
}

HD_API(cuDeviceGetPCIBusId, (char* pciBusId, int len, CUdevice dev)) {
  HD_ENTER(kInit);
  if (pciBusId == nullptr || len < 13) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(pciBusId, static_cast<size_t>(len), "0000:00:00.0");
  return CUDA_SUCCESS;
}

HD_API(cuDeviceGetByPCIBusId, (CUdevice * dev, const char* pciBusId)) {
  HD_ENTER(kInit);
  if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (std::strstr(pciBusId, "00:00.0") == nullptr) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *dev = 0;
  return CUDA_SUCCESS;
}

HD_API(cuDeviceComputeCapability, (int* major, int* minor, CUdevice dev)) {
  HD_ENTER(kInit);
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  *major = 9;
  *minor = 0;
  return CUDA_SUCCESS;
}

HD_API(cuDeviceCanAccessPeer,
       (int* canAccessPeer, CUdevice dev, CUdevice peerDev)) {
  HD_ENTER(kInit);
  if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0 || peerDev != 0) return CUDA_ERROR_INVALID_DEVICE;
  *canAccessPeer = 0;
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
