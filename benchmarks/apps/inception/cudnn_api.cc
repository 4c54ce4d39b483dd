// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/inception/cudnn_api.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace inception {

absl::StatusOr<CudnnApi> CudnnApi::Load() {
  const std::string name = absl::StrCat("libcudnn.so.", CUDNN_MAJOR);
  // Never closed: kernels of it may still be loaded.
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();
    return absl::UnavailableError(
        absl::StrCat("cannot open cuDNN: ", error != nullptr ? error : name,
                     "; put the folder of ", name, " on LD_LIBRARY_PATH"));
  }
  CudnnApi api;
#define INCEPTION_CUDNN_BIND(member)                                           \
  api.member =                                                                 \
      reinterpret_cast<decltype(api.member)>(dlsym(library, "cudnn" #member)); \
  if (api.member == nullptr) {                                                 \
    return absl::UnavailableError(                                             \
        absl::StrCat(name, " has no function cudnn" #member));                 \
  }
  INCEPTION_CUDNN_CALLS(INCEPTION_CUDNN_BIND)
#undef INCEPTION_CUDNN_BIND
  return api;
}

absl::Status CudnnApi::Check(cudnnStatus_t status,
                             absl::string_view call) const {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": ", GetErrorString(status),
                                          " (", static_cast<int>(status), ")"));
}

}  // namespace inception
