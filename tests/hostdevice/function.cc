// SPDX-License-Identifier: Apache-2.0
// What programs ask about functions and kernels, and occupancy.

#include <algorithm>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/module.h"

namespace heddle::hostdevice {
namespace {

constexpr int kMaxDynamicShared = 232448;

CUresult GetAttribute(int* pi, CUfunction_attribute attrib,
                      const Function& function) {
  const cubin::Kernel& kernel = function.kernel;
  switch (attrib) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *pi =
          kernel.max_threads != 0 ? static_cast<int>(kernel.max_threads) : 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *pi = static_cast<int>(kernel.static_shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *pi = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *pi = static_cast<int>(kernel.local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *pi = static_cast<int>(kernel.registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *pi = function.arch;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *pi = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *pi = function.max_dynamic_shared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *pi = function.carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      *pi = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *pi = static_cast<int>(kernel.cluster[0]);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *pi = static_cast<int>(kernel.cluster[1]);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *pi = static_cast<int>(kernel.cluster[2]);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *pi = function.nonportable_cluster;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *pi = CU_CLUSTER_SCHEDULING_POLICY_DEFAULT;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult SetAttribute(CUfunction_attribute attrib, int value,
                      Function* function) {
  switch (attrib) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 ||
          value > kMaxDynamicShared -
                      static_cast<int>(function->kernel.static_shared_bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      function->max_dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      function->carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      function->nonportable_cluster = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return CUDA_SUCCESS;  // a preference
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult GetParamInfo(const void* handle, size_t index, size_t* offset,
                      size_t* size) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (index >= function->kernel.params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->kernel.params[index].offset;
  if (size != nullptr) *size = function->kernel.params[index].size;
  return CUDA_SUCCESS;
}

CUresult GetName(const void* handle, const char** name) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name;
  return CUDA_SUCCESS;
}

CUresult MaxActiveBlocks(int* numBlocks, CUfunction func, int blockSize,
                         size_t dynamicSMemSize) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (numBlocks == nullptr || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  const bool fits =
      blockSize <= 1024 &&
      dynamicSMemSize <= static_cast<size_t>(function->max_dynamic_shared);
  *numBlocks = 0;
  if (fits) {
    const Scheduler& scheduler = Device::Get().scheduler();
    *numBlocks = static_cast<int>(scheduler.ResidentBlocks(CostOfBlock(
        function->kernel, static_cast<uint64_t>(blockSize), dynamicSMemSize)));
  }
  return CUDA_SUCCESS;
}

}  // namespace

HD_API(cuFuncGetAttribute,
       (int* pi, CUfunction_attribute attrib, CUfunction hfunc)) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return GetAttribute(pi, attrib, *function);
}

HD_API(cuFuncSetAttribute,
       (CUfunction hfunc, CUfunction_attribute attrib, int value)) {
  HD_ENTER(kContext);
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return SetAttribute(attrib, value, function);
}

HD_API(cuFuncSetCacheConfig, (CUfunction hfunc, CUfunc_cache config)) {
  HD_ENTER(kContext);
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  function->cache_config = config;
  return CUDA_SUCCESS;
}

HD_API(cuFuncGetModule, (CUmodule * hmod, CUfunction hfunc)) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (hmod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *hmod = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}

HD_API(cuFuncGetName, (const char** name, CUfunction hfunc)) {
  return GetName(hfunc, name);
}

HD_API(cuFuncGetParamInfo, (CUfunction func, size_t paramIndex,
                            size_t* paramOffset, size_t* paramSize)) {
  return GetParamInfo(func, paramIndex, paramOffset, paramSize);
}

HD_API(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function)) {
  HD_ENTER(kContext);
  if (FindFunction(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

HD_API(cuFuncLoad, (CUfunction function)) {
  HD_ENTER(kContext);
  return FindFunction(function) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                           : CUDA_SUCCESS;
}

HD_API(cuKernelGetName, (const char** name, CUkernel hfunc)) {
  return GetName(hfunc, name);
}

HD_API(cuKernelGetParamInfo, (CUkernel kernel, size_t paramIndex,
                              size_t* paramOffset, size_t* paramSize)) {
  return GetParamInfo(kernel, paramIndex, paramOffset, paramSize);
}

HD_API(cuKernelGetFunction, (CUfunction * pFunc, CUkernel kernel)) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(kernel);
  if (function == nullptr || function->library == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pFunc = reinterpret_cast<CUfunction>(function->function);
  return CUDA_SUCCESS;
}

HD_API(cuKernelGetLibrary, (CUlibrary * pLib, CUkernel kernel)) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(kernel);
  if (function == nullptr || function->library == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (pLib == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pLib = reinterpret_cast<CUlibrary>(function->library);
  return CUDA_SUCCESS;
}

HD_API(cuKernelGetAttribute,
       (int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  return GetAttribute(
      pi, attrib,
      function->function != nullptr ? *function->function : *function);
}

HD_API(cuKernelSetAttribute,
       (CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)) {
  HD_ENTER(kContext);
  Function* function = FindFunction(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  return SetAttribute(
      attrib, val,
      function->function != nullptr ? function->function : function);
}

HD_API(cuKernelSetCacheConfig,
       (CUkernel kernel, CUfunc_cache config, CUdevice dev)) {
  HD_ENTER(kContext);
  Function* function = FindFunction(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  function->cache_config = config;
  return CUDA_SUCCESS;
}

HD_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
       (int* numBlocks, CUfunction func, int blockSize,
        size_t dynamicSMemSize)) {
  return MaxActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize);
}

HD_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
        unsigned int flags)) {
  if ((flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)) !=
      0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return MaxActiveBlocks(numBlocks, func, blockSize, dynamicSMemSize);
}

HD_API(cuOccupancyMaxPotentialBlockSize,
       (int* minGridSize, int* blockSize, CUfunction func,
        CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
        int blockSizeLimit)) {
  HD_ENTER(kContext);
  const Function* function = FindFunction(func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (minGridSize == nullptr || blockSize == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  (void)blockSizeToDynamicSMemSize;
  (void)dynamicSMemSize;
  const int limit = function->kernel.max_threads != 0
                        ? static_cast<int>(function->kernel.max_threads)
                        : 1024;
  *blockSize = blockSizeLimit > 0 ? std::min(limit, blockSizeLimit) : limit;
  const Scheduler& scheduler = Device::Get().scheduler();
  *minGridSize =
      scheduler.multiprocessors() * scheduler.blocks_per_multiprocessor();
  return CUDA_SUCCESS;
}

HD_API(cuOccupancyAvailableDynamicSMemPerBlock,
       (size_t * dynamicSmemSize, CUfunction func, int numBlocks,
        int blockSize)) {
  HD_ENTER(kContext);
  if (FindFunction(func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (dynamicSmemSize == nullptr || numBlocks <= 0 || blockSize <= 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *dynamicSmemSize = kMaxDynamicShared;
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
