// SPDX-License-Identifier: Apache-2.0
//
// Kernels of every kind that the patcher meets, for patch_test.cc, which reads
// them, and tests/gpu/patch_gpu_test.cc, which runs them (sm_90 and later). All
// but no_params read `in` and write `out`, one element a thread, of a multiple
// of 1024 elements.

#include <cooperative_groups.h>

constexpr int kBlock = 128;  // threads; also what the host launches

struct Table5000 {
  unsigned words[1250];
};
// With the two pointers before it just as many bytes as ptxas describes in the
// first form; any more needs the second.
struct Table4336 {
  unsigned words[1084];
};

__device__ unsigned state[1024];

extern "C" __global__ void plain(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 3 + 1;
}

extern "C" __global__ void static_shared(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[kBlock];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = tile[kBlock - 1 - threadIdx.x] + threadIdx.x;
}

extern "C" __global__ void dynamic_shared(const unsigned* in, unsigned* out) {
  extern __shared__ unsigned tile_dynamic[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile_dynamic[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = tile_dynamic[threadIdx.x ^ 1] ^ 0x55;
}

// Reads the shared memory of the cluster's other block.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    clustered(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[kBlock];
  namespace cg = cooperative_groups;
  const cg::cluster_group cluster = cg::this_cluster();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  cluster.sync();
  const unsigned* other =
      cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
  out[i] = other[threadIdx.x] + 7;
  cluster.sync();
}

extern "C" __global__ void __launch_bounds__(kBlock, 4)
    bounded(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = in[i];
  for (int round = 0; round < 8; ++round) value = value * 5 + round;
  out[i] = value;
}

// One block of 1024 threads.
extern "C" __global__ void no_params() {
  state[threadIdx.x] = state[threadIdx.x] * 5 + threadIdx.x;
}

extern "C" __global__ void large_params(const unsigned* in, unsigned* out,
                                        Table5000 table) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + table.words[i % 1250];
}

extern "C" __global__ void full_first_form(const unsigned* in, unsigned* out,
                                           Table4336 table) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] ^ table.words[i % 1084];
}

// Functions with code of their own: one called directly, one through a pointer.
__noinline__ __device__ unsigned Collatz(unsigned value) {
  return value % 2 == 0 ? value / 2 : value * 3 + 1;
}
__noinline__ __device__ unsigned Mix(unsigned value) {
  return value * 2654435761u ^ value >> 7;
}

extern "C" __global__ void calling(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned (*const function)(unsigned) = in[i] % 3 == 0 ? Mix : Collatz;
  unsigned value = Collatz(in[i]);
  for (int round = 0; round < 3; ++round) value = function(value);
  out[i] = value;
}

// Divergent loop and a switch, which becomes an indirect branch.
extern "C" __global__ void branching(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = in[i];
  for (unsigned round = 0; round < (in[i] & 15); ++round) {
    switch (value & 7) {
      case 0:
        value += in[i ^ 1];
        break;
      case 1:
        value -= in[i ^ 2];
        break;
      case 2:
        value ^= 0x5a5a;
        break;
      case 3:
        value *= 9;
        break;
      case 4:
        value = __popc(value) + round;
        break;
      case 5:
        value = value / ((value | 1) & 15);
        break;
      case 6:
        value += in[i ^ 4] * 5;
        break;
      default:
        value = ~value;
        break;
    }
  }
  out[i] = value;
}

// An array that is indexed at run time lies in local memory.
extern "C" __global__ void spilling(const unsigned* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned local[64];
  for (unsigned k = 0; k < 64; ++k) local[(k * 29 + in[i]) % 64] = k * in[i];
  out[i] = local[in[i] % 64] + local[(in[i] >> 6) % 64];
}

// Has both instructions already.
extern "C" __global__ void already_dependent(const unsigned* in,
                                             unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  out[i] = in[i] + 11;
}
