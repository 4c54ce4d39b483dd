// SPDX-License-Identifier: Apache-2.0
// Kernels of machine_test.cc.

#include <cuda_fp16.h>

#include "tests/sass_machine/arithmetic.h"

using heddle::sass_machine::kDoubleResults;
using heddle::sass_machine::kFloatResults;
using heddle::sass_machine::kIntegerResults;
using heddle::sass_machine::kLongResults;

namespace {
__device__ int Index() { return blockIdx.x * blockDim.x + threadIdx.x; }
}  // namespace

extern "C" __global__ void integers(uint32_t* out, const uint32_t* in, int n) {
  const int i = Index();
  if (i >= n) return;
  heddle::sass_machine::IntegerResults(in[3 * i], in[3 * i + 1], in[3 * i + 2],
                                       out + i * kIntegerResults);
}

extern "C" __global__ void longs(uint64_t* out, const uint64_t* in, int n) {
  const int i = Index();
  if (i >= n) return;
  heddle::sass_machine::LongResults(in[3 * i], in[3 * i + 1], in[3 * i + 2],
                                    out + i * kLongResults);
}

extern "C" __global__ void floats(float* out, const float* in, int n) {
  const int i = Index();
  if (i >= n) return;
  heddle::sass_machine::FloatResults(in[3 * i], in[3 * i + 1], in[3 * i + 2],
                                     out + i * kFloatResults);
}

extern "C" __global__ void doubles(double* out, const double* in, int n) {
  const int i = Index();
  if (i >= n) return;
  heddle::sass_machine::DoubleResults(in[3 * i], in[3 * i + 1], in[3 * i + 2],
                                      out + i * kDoubleResults);
}

extern "C" __global__ void halves(__half* out, const __half* in, float* wide,
                                  int n) {
  const int i = Index();
  if (i >= n) return;
  const __half a = in[3 * i];
  const __half b = in[3 * i + 1];
  const __half c = in[3 * i + 2];
  out[6 * i] = __hadd_rn(a, b);
  out[6 * i + 1] = __hmul_rn(a, b);
  out[6 * i + 2] = __hfma(a, b, c);
  out[6 * i + 3] = __hsub_rn(c, b);
  out[6 * i + 4] = a > b ? c : b;
  out[6 * i + 5] = __float2half_rn(__half2float(a) * 1.001f);
  wide[i] = __half2float(c);
}

// What lanes tell one another; 32 threads, 12 values each.
extern "C" __global__ void warps(int* out, const int* in) {
  const int lane = threadIdx.x;
  const int v = in[lane];
  int* mine = out + lane * 12;
  mine[0] = __shfl_xor_sync(~0u, v, 5);
  mine[1] = __shfl_up_sync(~0u, v, 3);
  mine[2] = __shfl_down_sync(~0u, v, 7, 16);
  mine[3] = __shfl_sync(~0u, v, v & 31, 8);
  mine[4] = __ballot_sync(~0u, v > 0);
  mine[5] = __match_any_sync(~0u, v & 3);
  mine[6] = __reduce_add_sync(~0u, v);
  mine[7] = __reduce_min_sync(~0u, v);
  mine[8] = __reduce_max_sync(~0u, static_cast<unsigned>(v));
  mine[9] = __all_sync(~0u, v > -1000000) * 2 + __any_sync(~0u, v == in[32]);
  mine[10] = 0;
  // Where some lanes are elsewhere.
  if (v & 1) {
    mine[10] = __popc(__ballot_sync(__activemask(), v > 0));
    __syncwarp(__activemask());
  }
  mine[11] = __reduce_xor_sync(~0u, v);
}

// Threads of a block that wait for one another: sums up to each thread, votes,
// atomics in shared memory.
extern "C" __global__ void blocks(int* out, const int* in,
                                  unsigned long long* totals) {
  __shared__ int sums[256];
  __shared__ int count;
  __shared__ unsigned long long total;
  __shared__ float half_steps;
  const int t = threadIdx.x;
  sums[t] = in[Index()];
  if (t == 0) {
    count = 0;
    total = 0;
    half_steps = 0;
  }
  __syncthreads();
  atomicAdd(&count, sums[t] & 1);
  atomicAdd(&total, static_cast<unsigned long long>(sums[t] & 0xff) << 30);
  atomicAdd(&half_steps, 0.5f);
  for (int step = 1; step < blockDim.x; step *= 2) {
    const int before = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += before;
    __syncthreads();
  }
  const int any = __syncthreads_or(sums[t] == in[0]);
  const int all = __syncthreads_and(sums[t] > -1000000);
  const int even = __syncthreads_count((sums[t] & 1) == 0);
  int* mine = out + Index() * 6;
  mine[0] = sums[t];
  mine[1] = count;
  mine[2] = any != 0;
  mine[3] = all != 0;
  mine[4] = even;
  mine[5] = static_cast<int>(half_steps * 2);
  if (t == 0) totals[blockIdx.x] = total;
}

extern "C" __global__ void out_of_bounds(int* data, int at) {
  data[0] = 1;
  data[at] = 2;
}

extern "C" __global__ void endless(volatile int* flag) {
  while (*flag == 0) {
  }
}

// A product of matrices by tensor cores, which the machine does not have.
extern "C" __global__ void tensor_cores(float* out, unsigned a, unsigned b) {
  float d[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a), "r"(b), "r"(a), "r"(b), "r"(a), "r"(b));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
