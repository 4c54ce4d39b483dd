// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_DEVICE_DRIVER_H_
#define HEDDLE_RUNTIME_DEVICE_DRIVER_H_

// The narrow interface through which heddle talks to a CUDA driver: a table of
// its functions, filled either from a library (offline: the real libcuda.so.1
// or the host device of tests/hostdevice) or from the interposer's real
// pointers (live).
//
// Nothing in heddle links libcuda: the table is the only way in. Source of
// names and types: cuda.h of the CUDA Toolkit (>= 12.4).

#include <cuda.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace heddle::device {

// X(member, ELF symbol). The symbol is written out with its version where
// cuda.h has several, so that the table means the same under every toolkit.
// HEDDLE_DRIVER_REQUIRED: loading fails without it. HEDDLE_DRIVER_OPTIONAL: may
// be nullptr.
#define HEDDLE_DRIVER_REQUIRED(X)                               \
  X(Init, cuInit)                                               \
  X(DriverGetVersion, cuDriverGetVersion)                       \
  X(GetErrorName, cuGetErrorName)                               \
  X(GetErrorString, cuGetErrorString)                           \
  X(DeviceGet, cuDeviceGet)                                     \
  X(DeviceGetCount, cuDeviceGetCount)                           \
  X(DeviceGetName, cuDeviceGetName)                             \
  X(DeviceGetAttribute, cuDeviceGetAttribute)                   \
  X(DeviceTotalMem, cuDeviceTotalMem_v2)                        \
  X(DeviceGetUuid, cuDeviceGetUuid_v2)                          \
  X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)           \
  X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)      \
  X(CtxGetCurrent, cuCtxGetCurrent)                             \
  X(CtxSetCurrent, cuCtxSetCurrent)                             \
  X(CtxPushCurrent, cuCtxPushCurrent_v2)                        \
  X(CtxPopCurrent, cuCtxPopCurrent_v2)                          \
  X(CtxGetDevice, cuCtxGetDevice)                               \
  X(CtxSynchronize, cuCtxSynchronize)                           \
  X(ModuleLoadData, cuModuleLoadData)                           \
  X(ModuleUnload, cuModuleUnload)                               \
  X(ModuleGetFunction, cuModuleGetFunction)                     \
  X(ModuleGetGlobal, cuModuleGetGlobal_v2)                      \
  X(FuncGetAttribute, cuFuncGetAttribute)                       \
  X(FuncSetAttribute, cuFuncSetAttribute)                       \
  X(MemGetInfo, cuMemGetInfo_v2)                                \
  X(MemAlloc, cuMemAlloc_v2)                                    \
  X(MemFree, cuMemFree_v2)                                      \
  X(MemAllocHost, cuMemAllocHost_v2)                            \
  X(MemFreeHost, cuMemFreeHost)                                 \
  X(MemGetAllocationGranularity, cuMemGetAllocationGranularity) \
  X(MemAddressReserve, cuMemAddressReserve)                     \
  X(MemAddressFree, cuMemAddressFree)                           \
  X(MemCreate, cuMemCreate)                                     \
  X(MemRelease, cuMemRelease)                                   \
  X(MemMap, cuMemMap)                                           \
  X(MemUnmap, cuMemUnmap)                                       \
  X(MemSetAccess, cuMemSetAccess)                               \
  X(MemcpyHtoD, cuMemcpyHtoD_v2)                                \
  X(MemcpyDtoH, cuMemcpyDtoH_v2)                                \
  X(MemcpyDtoD, cuMemcpyDtoD_v2)                                \
  X(MemcpyAsync, cuMemcpyAsync)                                 \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2)                      \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)                      \
  X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2)                      \
  X(Memcpy2DAsync, cuMemcpy2DAsync_v2)                          \
  X(Memcpy3DAsync, cuMemcpy3DAsync_v2)                          \
  X(MemsetD8, cuMemsetD8_v2)                                    \
  X(MemsetD8Async, cuMemsetD8Async)                             \
  X(MemsetD16Async, cuMemsetD16Async)                           \
  X(MemsetD32Async, cuMemsetD32Async)                           \
  X(MemsetD2D8Async, cuMemsetD2D8Async)                         \
  X(MemsetD2D16Async, cuMemsetD2D16Async)                       \
  X(MemsetD2D32Async, cuMemsetD2D32Async)                       \
  X(StreamCreate, cuStreamCreate)                               \
  X(StreamCreateWithPriority, cuStreamCreateWithPriority)       \
  X(StreamDestroy, cuStreamDestroy_v2)                          \
  X(StreamSynchronize, cuStreamSynchronize)                     \
  X(StreamWaitEvent, cuStreamWaitEvent)                         \
  X(StreamIsCapturing, cuStreamIsCapturing)                     \
  X(EventCreate, cuEventCreate)                                 \
  X(EventDestroy, cuEventDestroy_v2)                            \
  X(EventRecord, cuEventRecord)                                 \
  X(EventSynchronize, cuEventSynchronize)                       \
  X(EventElapsedTime, cuEventElapsedTime)                       \
  X(LaunchKernel, cuLaunchKernel)                               \
  X(GraphCreate, cuGraphCreate)                                 \
  X(GraphDestroy, cuGraphDestroy)                               \
  X(GraphAddKernelNode, cuGraphAddKernelNode_v2)                \
  X(GraphAddMemcpyNode, cuGraphAddMemcpyNode)                   \
  X(GraphAddMemsetNode, cuGraphAddMemsetNode)                   \
  X(GraphAddEmptyNode, cuGraphAddEmptyNode)                     \
  X(GraphGetNodes, cuGraphGetNodes)                             \
  X(GraphNodeGetType, cuGraphNodeGetType)                       \
  X(GraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2)    \
  X(GraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute) \
  X(GraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute) \
  X(GraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams)       \
  X(GraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams)       \
  X(GraphInstantiateWithFlags, cuGraphInstantiateWithFlags)     \
  X(GraphExecDestroy, cuGraphExecDestroy)                       \
  X(GraphLaunch, cuGraphLaunch)

#define HEDDLE_DRIVER_OPTIONAL(X)                                       \
  X(LaunchKernelEx, cuLaunchKernelEx)                                   \
  X(GraphAddDependencies, cuGraphAddDependencies_v2)                    \
  X(GraphRemoveDependencies, cuGraphRemoveDependencies_v2)              \
  X(GraphGetEdges, cuGraphGetEdges_v2)                                  \
  X(GraphClone, cuGraphClone)                                           \
  X(GraphNodeFindInClone, cuGraphNodeFindInClone)                       \
  X(GraphKernelNodeSetParams, cuGraphKernelNodeSetParams_v2)            \
  X(GraphMemcpyNodeSetParams, cuGraphMemcpyNodeSetParams)               \
  X(GraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams)               \
  X(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2)    \
  X(GraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams)       \
  X(GraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams)       \
  X(GraphNodeSetEnabled, cuGraphNodeSetEnabled)                         \
  X(GraphExecUpdate, cuGraphExecUpdate_v2)                              \
  X(MemGetAccess, cuMemGetAccess)                                       \
  X(EventQuery, cuEventQuery)                                           \
  X(GraphHostNodeGetParams, cuGraphHostNodeGetParams)                   \
  X(GraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph)         \
  X(GraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent)       \
  X(GraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent)           \
  X(GraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams)           \
  X(GraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams)             \
  X(GraphBatchMemOpNodeGetParams, cuGraphBatchMemOpNodeGetParams)       \
  X(GraphUpload, cuGraphUpload)                                         \
  X(GraphAddEventRecordNode, cuGraphAddEventRecordNode)                 \
  X(GraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes)     \
  X(LibraryLoadData, cuLibraryLoadData)                                 \
  X(LibraryUnload, cuLibraryUnload)                                     \
  X(LibraryGetKernel, cuLibraryGetKernel)                               \
  X(LibraryGetModule, cuLibraryGetModule)                               \
  X(LibraryGetGlobal, cuLibraryGetGlobal)                               \
  X(KernelGetFunction, cuKernelGetFunction)                             \
  X(KernelGetName, cuKernelGetName)                                     \
  X(KernelGetLibrary, cuKernelGetLibrary)                               \
  X(KernelGetParamInfo, cuKernelGetParamInfo)                           \
  X(KernelGetAttribute, cuKernelGetAttribute)                           \
  X(KernelSetAttribute, cuKernelSetAttribute)                           \
  X(FuncGetName, cuFuncGetName)                                         \
  X(FuncGetModule, cuFuncGetModule)                                     \
  X(FuncGetParamInfo, cuFuncGetParamInfo)                               \
  X(FuncSetCacheConfig, cuFuncSetCacheConfig)                           \
  X(StreamGetCaptureInfo, cuStreamGetCaptureInfo_v3)                    \
  X(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode) \
  X(PointerGetAttribute, cuPointerGetAttribute)                         \
  X(MemGetAddressRange, cuMemGetAddressRange_v2)                        \
  X(CtxGetFlags, cuCtxGetFlags)

struct Driver {
#define HEDDLE_DRIVER_MEMBER(member, symbol) \
  decltype(&::symbol) member = nullptr;  // NOLINT(*-macro-parentheses): name
  HEDDLE_DRIVER_REQUIRED(HEDDLE_DRIVER_MEMBER)
  HEDDLE_DRIVER_OPTIONAL(HEDDLE_DRIVER_MEMBER)
#undef HEDDLE_DRIVER_MEMBER

  // Path of the library, or "interposed". For messages.
  std::string origin;

  // Fills a table from `resolve(ELF symbol)`. Unavailable if a required
  // function is missing; the message names it.
  static absl::StatusOr<Driver> FromResolver(
      const std::function<void*(const char*)>& resolve, std::string origin);
  // Opens `path`, or "libcuda.so.1" by the loader's search if empty
  // (LD_LIBRARY_PATH selects the host device). The library stays open.
  static absl::StatusOr<Driver> Load(const std::string& path = "");

  // OK, or an error that names the call, the CUresult and the driver's text for
  // it:
  //   Internal: cuMemMap(0x7f..., 2 MiB): CUDA_ERROR_INVALID_VALUE (invalid
  //   argument)
  // CUDA_ERROR_OUT_OF_MEMORY becomes ResourceExhausted, NOT_FOUND NotFound,
  // NOT_SUPPORTED Unimplemented, all else Internal.
  absl::Status Check(CUresult result, absl::string_view call) const;
  std::string ErrorName(CUresult result) const;
};

// A current primary context of one device for the life of the object, on the
// constructing thread.
class ScopedContext {
 public:
  static absl::StatusOr<std::unique_ptr<ScopedContext>> Create(
      const Driver& driver, int ordinal);
  ~ScopedContext();
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

  CUcontext context() const { return context_; }
  CUdevice device() const { return device_; }

 private:
  ScopedContext(const Driver& driver, CUdevice device, CUcontext context)
      : driver_(driver), device_(device), context_(context) {}
  const Driver& driver_;
  CUdevice device_;
  CUcontext context_;
};

}  // namespace heddle::device

#endif  // HEDDLE_RUNTIME_DEVICE_DRIVER_H_
