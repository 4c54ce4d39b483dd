// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_CUBLAS_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_CUBLAS_H_

// Matrix-vector products by cuBLAS, which is opened at run time so that the
// program runs without it.

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/decode/kernel_types.h"

namespace decode {

class Cublas {
 public:
  virtual ~Cublas() = default;

  // Uses the GPU's stream and a workspace from its memory, so the products
  // can be captured and are repeatable. Unavailable if libcublas is missing.
  // `gpu` must outlive the object.
  static absl::StatusOr<std::unique_ptr<Cublas>> Create(apps::Gpu* gpu);

  // out[rows] = matrix[rows][cols] * x[cols], accumulated in fp32.
  virtual absl::Status MultiplyF32(const float* matrix, const float* x,
                                   float* out, int rows, int cols) = 0;
  virtual absl::Status MultiplyBf16(const BFloat16* matrix, const BFloat16* x,
                                    float* out, int rows, int cols) = 0;
};

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_CUBLAS_H_
