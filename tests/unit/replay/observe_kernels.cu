// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose code says one thing; their bodies on the host device
// (observe_host_kernels.cc) do the same, or something else.

extern "C" __global__ void honest_copy(unsigned* out, const unsigned* in,
                                       unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

// Writes where `mask` says: within n elements, fewer than it might.
extern "C" __global__ void masked_copy(unsigned char* out,
                                       const unsigned char* in,
                                       const unsigned char* mask, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && mask[i] != 0) out[i] = in[i];
}

extern "C" __global__ void add_in_place(unsigned* x, unsigned value,
                                        unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += value;
}

// Body: also fills `count` bytes at `where` with `value`.
extern "C" __global__ void spilling_copy(unsigned* out, const unsigned* in,
                                         unsigned n, unsigned long long where,
                                         unsigned count, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + count + value + static_cast<unsigned>(where);
}

// Body: also adds what is at `where`.
extern "C" __global__ void peeking_copy(unsigned* out, const unsigned* in,
                                        unsigned n, unsigned long long where) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + static_cast<unsigned>(where);
}

// Body: another value in every launch.
extern "C" __global__ void unsteady(unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<unsigned>(clock64());
}

// Writes where pointers in memory lead.
extern "C" __global__ void scatter(unsigned* const* list, const unsigned* in,
                                   unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) *list[i] = in[i];
}
