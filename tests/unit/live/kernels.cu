// SPDX-License-Identifier: Apache-2.0
// The kernels of the tests of the live rewriter. Their bodies on the host
// device are in host_kernels.cc and do the same.

// Reads all of its inputs in every block, so any block of any producer that
// has not run shows, and adds to what its output was, so a launch too many or
// too few shows ever after.
extern "C" __global__ void fold(unsigned* out, const unsigned* a,
                                const unsigned* b, const unsigned* c,
                                unsigned count, unsigned salt) {
  const unsigned* in[] = {a, b, c};
  unsigned hash = salt + blockIdx.x;
  for (int k = 0; k < 3; ++k) {
    for (unsigned i = 0; in[k] != nullptr && i < count; ++i) {
      hash = hash * 16777619u ^ in[k][i];
    }
  }
  out[blockIdx.x] = out[blockIdx.x] * 31 + hash;
}

extern "C" __global__ void count_up(unsigned* counter) {
  if (blockIdx.x == 0) ++*counter;
}

// The memory that it changes is in no parameter.
extern "C" __global__ void follow(unsigned* const* table, unsigned index) {
  if (blockIdx.x == 0) ++*table[index];
}

// Adds one to some element, never mind which: no two runs need agree.
extern "C" __global__ void wander(unsigned* memory, unsigned count,
                                  unsigned stride) {
  if (blockIdx.x == 0) ++memory[clock() % count * stride];
}

// Another result now and then.
extern "C" __global__ void flicker(unsigned* out, unsigned period) {
  if (blockIdx.x == 0) *out = clock() % period == 0 ? 1 : 0;
}
