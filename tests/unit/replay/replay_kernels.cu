// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the replay tests. On the host device their bodies are the host
// functions in host_kernels.cc; the image gives names and parameters.

// With -DHEDDLE_WITHOUT_VARIABLES, an image of which there may be two.
#ifndef HEDDLE_WITHOUT_VARIABLES
__device__ float table[16] = {1, 2, 3, 4, 5, 6, 7, 8};
#endif

extern "C" __global__ void test_scale(float* x, float factor, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}

extern "C" __global__ void test_add(float* out, const float* a, const float* b,
                                    unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

// Follows a pointer in memory.
extern "C" __global__ void test_gather(float* out, float* const* list,
                                       unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = *list[i];
}

#ifndef HEDDLE_WITHOUT_VARIABLES
// `from` is the address of a variable of the module.
extern "C" __global__ void test_from_table(float* out, const float* from,
                                           unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i < 16) out[i] = from[i] + table[i];
}
#endif

// Another value in every launch.
extern "C" __global__ void test_clock(unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<unsigned>(clock64());
}
