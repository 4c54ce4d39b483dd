// SPDX-License-Identifier: Apache-2.0
// Kernels with known parameter layouts for elf_test.cc, which holds the same
// layouts as the C++ ABI gives them.

struct Mixed {
  int a;
  double b;
  char c[5];
};
struct Aligned16 {
  float x, y, z, w;
} __attribute__((aligned(16)));
struct Large {
  char bytes[20000];
};
struct alignas(64) Opaque {
  unsigned long long words[16];
};

__device__ int zeroed;
__device__ int initialized = 7;
__device__ float table[100];
__constant__ int coefficients[16] = {1, 2, 3};
__device__ int* pointer_to_zeroed = &zeroed;
namespace inner {
__device__ short hidden = -2;
}

extern "C" __global__ void no_params() { zeroed = initialized; }

extern "C" __global__ void pointers(float* out, const float* in, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void mixed(char a, short b, Mixed m, char c, double* out,
                                 Aligned16 v) {
  *out = a + b + m.b + m.c[c] + v.w + table[c] + coefficients[b] +
         inner::hidden + *pointer_to_zeroed;
}

extern "C" __global__ void large(Large block, int index, char* out) {
  *out = block.bytes[index];
}

extern "C" __global__ void opaque(const __grid_constant__ Opaque map,
                                  unsigned long long* out) {
  out[threadIdx.x] = map.words[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(128) bounded(int* out) {
  __shared__ int tile[128];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}

extern "C" __global__ void spilling(int* out, int stride) {
  int local[64];
  for (int i = 0; i < 64; ++i) local[(i * stride) % 64] = out[i];
  out[0] = local[stride];
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* out) {
  *out = 1;
}
#endif

template <typename T>
__global__ void templated(T* out, T value) {
  *out = value;
}
template __global__ void templated<int>(int*, int);
template __global__ void templated<double>(double*, double);
