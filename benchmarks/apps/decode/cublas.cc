// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/cublas.h"

#include <dlfcn.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#if defined(__has_include)
#if __has_include(<cublas_v2.h>)
#define DECODE_HAVE_CUBLAS 1
#include <cublas_v2.h>
#endif
#endif

namespace decode {

#if defined(DECODE_HAVE_CUBLAS)
namespace {

// Written out because cublas_v2.h overloads the function.
using GemmExFn = cublasStatus_t (*)(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType a_type, int lda,
    const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
    cudaDataType c_type, int ldc, cublasComputeType_t, cublasGemmAlgo_t);

// X(member, ELF symbol, type). cublas_v2.h maps the plain names to these.
#define DECODE_CUBLAS_CALLS(X)                                               \
  X(CreateHandle, cublasCreate_v2, decltype(&::cublasCreate_v2))             \
  X(DestroyHandle, cublasDestroy_v2, decltype(&::cublasDestroy_v2))          \
  X(SetStream, cublasSetStream_v2, decltype(&::cublasSetStream_v2))          \
  X(SetWorkspace, cublasSetWorkspace_v2, decltype(&::cublasSetWorkspace_v2)) \
  X(GetStatusString, cublasGetStatusString,                                  \
    decltype(&::cublasGetStatusString))                                      \
  X(Sgemv, cublasSgemv_v2, decltype(&::cublasSgemv_v2))                      \
  X(GemmEx, cublasGemmEx, GemmExFn)

struct CublasApi {
#define DECODE_CUBLAS_MEMBER(member, symbol, type) type member = nullptr;
  DECODE_CUBLAS_CALLS(DECODE_CUBLAS_MEMBER)
#undef DECODE_CUBLAS_MEMBER
};

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // NVIDIA's advice, sm_90

absl::StatusOr<CublasApi> Load() {
  const std::string name =
      absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR);  // as the header
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();
    return absl::UnavailableError(
        absl::StrCat("--gemm cublas: cannot open ", name, ": ",
                     error != nullptr ? error : "no message",
                     "; put the CUDA Toolkit's lib64 on LD_LIBRARY_PATH"));
  }
  CublasApi api;
#define DECODE_CUBLAS_BIND(member, symbol, type)                \
  api.member = reinterpret_cast<type>(dlsym(library, #symbol)); \
  if (api.member == nullptr) {                                  \
    return absl::UnavailableError(                              \
        absl::StrCat(name, " has no function " #symbol));       \
  }
  DECODE_CUBLAS_CALLS(DECODE_CUBLAS_BIND)
#undef DECODE_CUBLAS_BIND
  return api;
}

class LoadedCublas : public Cublas {
 public:
  explicit LoadedCublas(const CublasApi& api) : api_(api) {}
  LoadedCublas(const LoadedCublas&) = delete;
  LoadedCublas& operator=(const LoadedCublas&) = delete;
  ~LoadedCublas() override {
    if (handle_ != nullptr) api_.DestroyHandle(handle_);
  }

  absl::Status Initialize(apps::Gpu* gpu) {
    absl::Status status =
        Check(api_.CreateHandle(&handle_), "cublasCreate (needs a GPU)");
    if (!status.ok()) return status;
    status =
        Check(api_.SetStream(handle_,
                             static_cast<cudaStream_t>(gpu->native_stream())),
              "cublasSetStream");
    if (!status.ok()) return status;
    absl::StatusOr<void*> workspace =
        gpu->Allocate(kWorkspaceBytes, "cuBLAS's workspace");
    if (!workspace.ok()) return workspace.status();
    // After SetStream, which goes back to the default workspace.
    return Check(api_.SetWorkspace(handle_, *workspace, kWorkspaceBytes),
                 "cublasSetWorkspace");
  }

  // cuBLAS is column-major: our matrix is its transpose, cols x rows.
  absl::Status MultiplyF32(const float* matrix, const float* x, float* out,
                           int rows, int cols) override {
    const float one = 1.0f;
    const float zero = 0.0f;
    return Check(api_.Sgemv(handle_, CUBLAS_OP_T, cols, rows, &one, matrix,
                            cols, x, 1, &zero, out, 1),
                 "cublasSgemv");
  }

  absl::Status MultiplyBf16(const BFloat16* matrix, const BFloat16* x,
                            float* out, int rows, int cols) override {
    const float one = 1.0f;
    const float zero = 0.0f;
    return Check(
        api_.GemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, rows, 1, cols, &one,
                    matrix, CUDA_R_16BF, cols, x, CUDA_R_16BF, cols, &zero, out,
                    CUDA_R_32F, rows, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }

 private:
  absl::Status Check(cublasStatus_t status, absl::string_view call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(call, ": ",
                                            api_.GetStatusString(status), " (",
                                            static_cast<int>(status), ")"));
  }

  const CublasApi api_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Cublas>> Cublas::Create(apps::Gpu* gpu) {
  absl::StatusOr<CublasApi> api = Load();
  if (!api.ok()) return api.status();
  auto cublas = std::make_unique<LoadedCublas>(*api);
  absl::Status status = cublas->Initialize(gpu);
  if (!status.ok()) return status;
  return std::unique_ptr<Cublas>(std::move(cublas));
}

#else

absl::StatusOr<std::unique_ptr<Cublas>> Cublas::Create(apps::Gpu*) {
  return absl::UnimplementedError(
      "--gemm cublas: this program was built without the headers of cuBLAS");
}

#endif  // DECODE_HAVE_CUBLAS

}  // namespace decode
