// SPDX-License-Identifier: Apache-2.0
// Kernels that do and do not touch variables of their module, for
// state_use_test.cc.
#include <cassert>
#include <cstdio>

__device__ int counter;
__device__ float table[64];
__device__ int* pointer = &counter;
__constant__ float coefficients[16] = {1, 2, 3};
namespace {
struct Empty {};
__device__ Empty unused;
}  // namespace

extern "C" __global__ void plain(int* out) { out[threadIdx.x] += 1; }
extern "C" __global__ void asserts(int* out) {
  assert(out[0] != 3);
  out[threadIdx.x] = 1;
}
extern "C" __global__ void prints(int* out) {
  if (out[0] == 7) printf("%d\n", out[1]);
}
extern "C" __global__ void constants(float* out) {
  out[threadIdx.x] = coefficients[threadIdx.x & 15];
}

extern "C" __global__ void reads(int* out) { out[threadIdx.x] = counter; }
extern "C" __global__ void writes(const int* in) { counter = in[0]; }
extern "C" __global__ void adds() { atomicAdd(&counter, 1); }
extern "C" __global__ void by_pointer(int* out) { out[0] = *pointer; }
extern "C" __global__ void indexes(float* out) {
  out[threadIdx.x] = table[threadIdx.x & 63];
}
extern "C" __global__ void asserts_and_writes(int* out) {
  assert(out[0] != 3);
  counter = out[1];
}

static __device__ __noinline__ int Bump(int by) {
  return atomicAdd(&counter, by);
}
extern "C" __global__ void calls(int* out) { out[0] = Bump(out[1]); }
