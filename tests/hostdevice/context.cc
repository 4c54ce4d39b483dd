// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/device.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

// The second way in for tools: a library that the driver loads by itself.
void LoadInjection() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == 0) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* entry =
      library == nullptr ? nullptr : dlsym(library, "InitializeInjection");
  if (entry == nullptr) {
    const char* error = dlerror();
    std::fprintf(stderr, "heddle host device: CUDA_INJECTION64_PATH: %s\n",
                 error == nullptr ? "no InitializeInjection" : error);
    return;
  }
  reinterpret_cast<int (*)()>(entry)();
}

CUcontext Handle(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

CUresult CreateContext(CUcontext* pctx, unsigned flags, CUdevice dev) {
  HD_ENTER(kInit);
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = Device::Get().NewContext(false, flags);
  ContextStack().push_back(context);
  *pctx = Handle(context);
  return CUDA_SUCCESS;
}

}  // namespace

HD_API(cuInit, (unsigned int Flags)) {
  bool first = false;
  {
    HD_ENTER(kNothing);
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    first = !Device::Get().initialized;
    Device::Get().initialized = true;
  }
  // Without the lock: the library calls us.
  if (first) LoadInjection();
  return CUDA_SUCCESS;
}

HD_API(cuDriverGetVersion, (int* driverVersion)) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = 13000;
  return CUDA_SUCCESS;
}

HD_API(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev)) {
  HD_ENTER(kInit);
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = Device::Get();
  if (device.primary == nullptr) {
    device.primary = device.NewContext(true, device.primary_flags);
  }
  ++device.primary_references;
  *pctx = Handle(device.primary);
  return CUDA_SUCCESS;
}

HD_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev)) {
  HD_ENTER(kInit);
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = Device::Get();
  if (device.primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device.primary_references == 0) device.DestroyContext(device.primary);
  return CUDA_SUCCESS;
}

HD_API(cuDevicePrimaryCtxReset_v2, (CUdevice dev)) {
  HD_ENTER(kInit);
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = Device::Get();
  if (device.primary != nullptr) device.DestroyContext(device.primary);
  if (device.scheduler().sticky() != CUDA_SUCCESS) device.scheduler().Reset();
  return CUDA_SUCCESS;
}

HD_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags)) {
  HD_ENTER(kInit);
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = Device::Get();
  device.primary_flags = flags;
  if (device.primary != nullptr) device.primary->flags = flags;
  return CUDA_SUCCESS;
}

HD_API(cuDevicePrimaryCtxGetState,
       (CUdevice dev, unsigned int* flags, int* active)) {
  HD_ENTER(kInit);
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = Device::Get().primary_flags;
  *active = Device::Get().primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

HD_API(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev)) {
  return CreateContext(pctx, flags, dev);
}

HD_API(cuCtxCreate_v3, (CUcontext * pctx, CUexecAffinityParam* paramsArray,
                        int numParams, unsigned int flags, CUdevice dev)) {
  if (numParams != 0 && paramsArray != nullptr) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  return CreateContext(pctx, flags, dev);
}

#if CUDA_VERSION >= 12050
HD_API(cuCtxCreate_v4, (CUcontext * pctx, CUctxCreateParams* ctxCreateParams,
                        unsigned int flags, CUdevice dev)) {
  if (ctxCreateParams != nullptr &&
      (ctxCreateParams->numExecAffinityParams != 0 ||
       ctxCreateParams->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CreateContext(pctx, flags, dev);
}
#endif

HD_API(cuCtxDestroy_v2, (CUcontext ctx)) {
  HD_ENTER(kInit);
  Device& device = Device::Get();
  Context* context = device.contexts.Find(ctx);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  device.DestroyContext(context);
  return CUDA_SUCCESS;
}

HD_API(cuCtxPushCurrent_v2, (CUcontext ctx)) {
  HD_ENTER(kInit);
  Context* context = Device::Get().contexts.Find(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStack().push_back(context);
  return CUDA_SUCCESS;
}

HD_API(cuCtxPopCurrent_v2, (CUcontext * pctx)) {
  HD_ENTER(kInit);
  if (ContextStack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx != nullptr) *pctx = Handle(ContextStack().back());
  ContextStack().pop_back();
  return CUDA_SUCCESS;
}

HD_API(cuCtxSetCurrent, (CUcontext ctx)) {
  HD_ENTER(kInit);
  std::vector<Context*>& stack = ContextStack();
  if (ctx == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  Context* context = Device::Get().contexts.Find(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
  return CUDA_SUCCESS;
}

HD_API(cuCtxGetCurrent, (CUcontext * pctx)) {
  HD_ENTER(kInit);
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = ContextStack().empty() ? nullptr : Handle(ContextStack().back());
  return CUDA_SUCCESS;
}

HD_API(cuCtxGetDevice, (CUdevice * device)) {
  HD_ENTER(kContext);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}

HD_API(cuCtxGetFlags, (unsigned int* flags)) {
  HD_ENTER(kContext);
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.context()->flags;
  return CUDA_SUCCESS;
}

HD_API(cuCtxSetFlags, (unsigned int flags)) {
  HD_ENTER(kContext);
  call.context()->flags = flags;
  return CUDA_SUCCESS;
}

HD_API(cuCtxGetId, (CUcontext ctx, unsigned long long* ctxId)) {
  HD_ENTER(kInit);
  Context* context =
      ctx == nullptr ? call.context() : Device::Get().contexts.Find(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ctxId = context->id;
  return CUDA_SUCCESS;
}

HD_API(cuCtxGetApiVersion, (CUcontext ctx, unsigned int* version)) {
  HD_ENTER(kInit);
  if (ctx != nullptr && Device::Get().contexts.Find(ctx) == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}

HD_API(cuCtxSynchronize, ()) {
  HD_ENTER(kContext);
  HD_TRY(CheckUnsafe());
  return SynchronizeContext(call.context());
}

#if CUDA_VERSION >= 13000
HD_API(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx)) {
  HD_ENTER(kInit);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context =
      ctx == nullptr ? call.context() : Device::Get().contexts.Find(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = 0;
  return CUDA_SUCCESS;
}

HD_API(cuCtxSynchronize_v2, (CUcontext ctx)) {
  HD_ENTER(kInit);
  Context* context =
      ctx == nullptr ? call.context() : Device::Get().contexts.Find(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  HD_TRY(CheckUnsafe());
  return SynchronizeContext(context);
}
#endif

HD_API(cuCtxGetStreamPriorityRange,
       (int* leastPriority, int* greatestPriority)) {
  HD_ENTER(kContext);
  if (leastPriority != nullptr) *leastPriority = 0;
  if (greatestPriority != nullptr) *greatestPriority = -5;
  return CUDA_SUCCESS;
}

HD_API(cuCtxGetLimit, (size_t * pvalue, CUlimit limit)) {
  HD_ENTER(kContext);
  if (pvalue == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      *pvalue = 1024;
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      *pvalue = size_t{1} << 20;
      return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      *pvalue = size_t{8} << 20;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
}

HD_API(cuCtxSetLimit, (CUlimit limit, size_t value)) {
  HD_ENTER(kContext);
  (void)value;  // there is nothing that it would limit
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
}

HD_API(cuCtxGetCacheConfig, (CUfunc_cache * pconfig)) {
  HD_ENTER(kContext);
  if (pconfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pconfig = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}

HD_API(cuCtxSetCacheConfig, (CUfunc_cache config)) {
  HD_ENTER(kContext);
  (void)config;  // a preference
  return CUDA_SUCCESS;
}

HD_API(cuCtxEnablePeerAccess, (CUcontext peerContext, unsigned int Flags)) {
  HD_ENTER(kContext);
  (void)peerContext;
  (void)Flags;
  return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;  // there is one device
}

HD_API(cuCtxDisablePeerAccess, (CUcontext peerContext)) {
  HD_ENTER(kContext);
  (void)peerContext;
  return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace heddle::hostdevice
