// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver.h"

#include <dlfcn.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace heddle::device {

absl::StatusOr<Driver> Driver::FromResolver(
    const std::function<void*(const char*)>& resolve, std::string origin) {
  Driver driver;
  driver.origin = std::move(origin);
#define HEDDLE_LOAD_REQUIRED(member, symbol)                                   \
  driver.member = reinterpret_cast<decltype(driver.member)>(resolve(#symbol)); \
  if (driver.member == nullptr) {                                              \
    return absl::UnavailableError(                                             \
        absl::StrCat(driver.origin, " has no ", #symbol,                       \
                     ": the CUDA driver is too old "                           \
                     "(heddle needs 12.4 or newer)"));                         \
  }
#define HEDDLE_LOAD_OPTIONAL(member, symbol) \
  driver.member = reinterpret_cast<decltype(driver.member)>(resolve(#symbol));
  HEDDLE_DRIVER_REQUIRED(HEDDLE_LOAD_REQUIRED)
  HEDDLE_DRIVER_OPTIONAL(HEDDLE_LOAD_OPTIONAL)
#undef HEDDLE_LOAD_REQUIRED
#undef HEDDLE_LOAD_OPTIONAL
  return driver;
}

absl::StatusOr<Driver> Driver::Load(const std::string& path) {
  const std::string name = path.empty() ? "libcuda.so.1" : path;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA driver: ", dlerror(),
                     ". Without a GPU, use the host device: "
                     "LD_LIBRARY_PATH=<build>/lib/hostdevice"));
  }
  return FromResolver(
      [handle](const char* symbol) { return dlsym(handle, symbol); }, name);
}

std::string Driver::ErrorName(CUresult result) const {
  const char* name = nullptr;
  if (GetErrorName == nullptr || GetErrorName(result, &name) != CUDA_SUCCESS ||
      name == nullptr) {
    return absl::StrCat("CUresult ", static_cast<int>(result));
  }
  return name;
}

absl::Status Driver::Check(CUresult result, absl::string_view call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* text = nullptr;
  if (GetErrorString == nullptr ||
      GetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr)
    text = "no description";
  const std::string message =
      absl::StrCat(call, ": ", ErrorName(result), " (", text, ")");
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(message);
    case CUDA_ERROR_NOT_FOUND:
      return absl::NotFoundError(message);
    case CUDA_ERROR_NOT_SUPPORTED:
      return absl::UnimplementedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<std::unique_ptr<ScopedContext>> ScopedContext::Create(
    const Driver& driver, int ordinal) {
  if (absl::Status s = driver.Check(driver.Init(0), "cuInit"); !s.ok())
    return s;
  CUdevice device;
  if (absl::Status s = driver.Check(driver.DeviceGet(&device, ordinal),
                                    absl::StrCat("cuDeviceGet(", ordinal, ")"));
      !s.ok())
    return s;
  CUcontext context;
  if (absl::Status s =
          driver.Check(driver.DevicePrimaryCtxRetain(&context, device),
                       "cuDevicePrimaryCtxRetain");
      !s.ok())
    return s;
  if (absl::Status s =
          driver.Check(driver.CtxPushCurrent(context), "cuCtxPushCurrent");
      !s.ok()) {
    driver.DevicePrimaryCtxRelease(device);
    return s;
  }
  return absl::WrapUnique(new ScopedContext(driver, device, context));
}

ScopedContext::~ScopedContext() {
  CUcontext popped;
  driver_.CtxPopCurrent(&popped);
  driver_.DevicePrimaryCtxRelease(device_);
}

}  // namespace heddle::device
