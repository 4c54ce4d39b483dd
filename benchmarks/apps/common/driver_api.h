// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_DRIVER_API_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_DRIVER_API_H_

// The driver calls that the sample programs make, as a table that can be filled
// in the three ways in which programs reach the CUDA driver.

#include <cuda.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace apps {

// X(member, function of cuda.h, suffix of the ELF symbol). The suffix is
// written out because dlsym takes what it is given, while cuda.h maps the plain
// name to the newest version.
#define APPS_DRIVER_CALLS(X)                                    \
  X(Init, cuInit, "")                                           \
  X(DriverGetVersion, cuDriverGetVersion, "")                   \
  X(GetErrorName, cuGetErrorName, "")                           \
  X(GetErrorString, cuGetErrorString, "")                       \
  X(DeviceGetCount, cuDeviceGetCount, "")                       \
  X(DeviceGet, cuDeviceGet, "")                                 \
  X(DeviceGetName, cuDeviceGetName, "")                         \
  X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, "")       \
  X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, "_v2")  \
  X(CtxSetCurrent, cuCtxSetCurrent, "")                         \
  X(ModuleLoadData, cuModuleLoadData, "")                       \
  X(ModuleUnload, cuModuleUnload, "")                           \
  X(ModuleGetFunction, cuModuleGetFunction, "")                 \
  X(MemAlloc, cuMemAlloc, "_v2")                                \
  X(MemFree, cuMemFree, "_v2")                                  \
  X(MemsetD8Async, cuMemsetD8Async, "")                         \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync, "_v2")                  \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync, "_v2")                  \
  X(Memcpy2DAsync, cuMemcpy2DAsync, "_v2")                      \
  X(StreamCreate, cuStreamCreate, "")                           \
  X(StreamDestroy, cuStreamDestroy, "_v2")                      \
  X(StreamSynchronize, cuStreamSynchronize, "")                 \
  X(StreamBeginCapture, cuStreamBeginCapture, "_v2")            \
  X(StreamEndCapture, cuStreamEndCapture, "")                   \
  X(EventCreate, cuEventCreate, "")                             \
  X(EventDestroy, cuEventDestroy, "_v2")                        \
  X(EventRecord, cuEventRecord, "")                             \
  X(EventSynchronize, cuEventSynchronize, "")                   \
  X(EventElapsedTime, cuEventElapsedTime, "")                   \
  X(LaunchKernel, cuLaunchKernel, "")                           \
  X(GraphGetNodes, cuGraphGetNodes, "")                         \
  X(GraphInstantiateWithFlags, cuGraphInstantiateWithFlags, "") \
  X(GraphLaunch, cuGraphLaunch, "")                             \
  X(GraphExecDestroy, cuGraphExecDestroy, "")                   \
  X(GraphDestroy, cuGraphDestroy, "")

// How functions are looked up in libcuda.so.1.
enum class LoadRoute : uint8_t {
  kDlsym,
  kProcAddress,  // cuGetProcAddress, as the CUDA runtime does
};

struct DriverApi {
// NOLINTBEGIN(bugprone-macro-parentheses): a name cannot have parentheses.
#define APPS_DRIVER_MEMBER(member, function, suffix) \
  decltype(&::function) member = nullptr;
  APPS_DRIVER_CALLS(APPS_DRIVER_MEMBER)
#undef APPS_DRIVER_MEMBER
  // NOLINTEND(bugprone-macro-parentheses)

  // Opens the driver. Unavailable if it or one of its functions is missing.
  static absl::StatusOr<DriverApi> Load(LoadRoute route);

  // The symbols of the driver that this program is linked with: the dynamic
  // linker has bound them, or the program would not have started. In a library
  // of its own (apps_driver_linked), so that only programs that ask for it
  // need the driver to start.
  static DriverApi Linked();

  // OK, or an error that names `call`, the CUresult and the driver's own text.
  absl::Status Check(CUresult result, absl::string_view call) const;
};

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_DRIVER_API_H_
