// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/common/driver_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace apps {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

// cuGetProcAddress answers with the variant of this API version.
constexpr int kApiVersion = 12040;

using GetProcAddressFn = CUresult (*)(const char* symbol, void** function,
                                      int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* status);

absl::Status Missing(absl::string_view function, absl::string_view how) {
  return absl::UnavailableError(
      absl::StrCat(kLibrary, " has no ", function, " (asked by ", how,
                   "); a CUDA 12.4 driver or newer is needed"));
}

absl::StatusOr<void*> OpenDriver() {
  // Never closed: the driver does not survive it.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();
    return absl::UnavailableError(
        absl::StrCat("cannot open the CUDA driver: ",
                     error != nullptr ? error : "no message",
                     "; install the driver, or put the host device's folder "
                     "on LD_LIBRARY_PATH"));
  }
  return library;
}

absl::StatusOr<DriverApi> ByDlsym() {
  absl::StatusOr<void*> library = OpenDriver();
  if (!library.ok()) return library.status();
  DriverApi api;
#define APPS_DRIVER_BIND(member, function, suffix)     \
  api.member = reinterpret_cast<decltype(api.member)>( \
      dlsym(*library, #function suffix));              \
  if (api.member == nullptr) return Missing(#function suffix, "dlsym");
  APPS_DRIVER_CALLS(APPS_DRIVER_BIND)
#undef APPS_DRIVER_BIND
  return api;
}

absl::StatusOr<DriverApi> ByProcAddress() {
  absl::StatusOr<void*> library = OpenDriver();
  if (!library.ok()) return library.status();
  const auto get = reinterpret_cast<GetProcAddressFn>(
      dlsym(*library, "cuGetProcAddress_v2"));
  if (get == nullptr) return Missing("cuGetProcAddress_v2", "dlsym");
  DriverApi api;
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
#define APPS_DRIVER_BIND(member, function, suffix)                     \
  found = nullptr;                                                     \
  if (get(#function, &found, kApiVersion, CU_GET_PROC_ADDRESS_DEFAULT, \
          &status) != CUDA_SUCCESS ||                                  \
      found == nullptr) {                                              \
    return Missing(#function, "cuGetProcAddress");                     \
  }                                                                    \
  api.member = reinterpret_cast<decltype(api.member)>(found);
  APPS_DRIVER_CALLS(APPS_DRIVER_BIND)
#undef APPS_DRIVER_BIND
  return api;
}

}  // namespace

absl::StatusOr<DriverApi> DriverApi::Load(LoadRoute route) {
  switch (route) {
    case LoadRoute::kDlsym:
      return ByDlsym();
    case LoadRoute::kProcAddress:
      return ByProcAddress();
  }
  return absl::InvalidArgumentError("unknown route to the driver");
}

absl::Status DriverApi::Check(CUresult result, absl::string_view call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    name = "unknown CUresult";
  }
  if (GetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) {
    text = "no description";
  }
  return absl::InternalError(absl::StrCat(
      call, ": ", name, " ", static_cast<int>(result), " (", text, ")"));
}

}  // namespace apps
