// SPDX-License-Identifier: Apache-2.0
// Tensor and bulk copies (sm_90), for what the analysis says of them. Never
// run.

#include <cuda.h>

#include <cassert>
#include <cstdint>
#include <cstdio>

__device__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

extern "C" __global__ void tensor_copy(const __grid_constant__ CUtensorMap in,
                                       const __grid_constant__ CUtensorMap out,
                                       int count, float* tail) {
  __shared__ alignas(128) float tile[32][32];
  __shared__ alignas(8) uint64_t barrier;
  const int x = blockIdx.x * 32;
  const int y = blockIdx.y * 32;
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
        "complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            SharedAddress(tile)),
        "l"(&in), "r"(x), "r"(y), "r"(SharedAddress(&barrier))
        : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, "
        "%2}], [%3];" ::"l"(&out),
        "r"(x), "r"(y), "r"(SharedAddress(tile))
        : "memory");
    tail[blockIdx.x] = static_cast<float>(count);
  }
}

// The map is in device memory: what it holds is not known.
extern "C" __global__ void tensor_copy_by_pointer(const CUtensorMap* in) {
  __shared__ alignas(128) float tile[32][32];
  __shared__ alignas(8) uint64_t barrier;
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
      "complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          SharedAddress(tile)),
      "l"(in), "r"(0), "r"(0), "r"(SharedAddress(&barrier))
      : "memory");
}

extern "C" __global__ void bulk_copy(float* to, int bytes) {
  __shared__ alignas(128) float tile[256];
  tile[threadIdx.x] = 1.0f;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
            to + blockIdx.x * 256),
        "r"(SharedAddress(tile)), "r"(bytes)
        : "memory");
  }
}

extern "C" __global__ void checked_copy(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < n);
  to[i] = from[i];
}

extern "C" __global__ void printing_copy(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) printf("%d\n", i);
  to[i] = from[i];
}
