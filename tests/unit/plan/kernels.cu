// SPDX-License-Identifier: Apache-2.0
// The kernels of the tests on the host device. Their bodies there are in
// host_kernels.cc and do the same.

// Reads all of its inputs, each `count` values, in every block: any block of
// any producer that has not run shows.
__device__ void Mix(unsigned* out, const unsigned* a, const unsigned* b,
                    const unsigned* c, unsigned count, unsigned salt) {
  const unsigned* in[] = {a, b, c};
  unsigned hash = salt + blockIdx.x;
  for (int k = 0; k < 3; ++k) {
    for (unsigned i = 0; in[k] != nullptr && i < count; ++i) {
      hash = hash * 16777619u ^ in[k][i];
    }
  }
  out[blockIdx.x] = hash;
}

extern "C" __global__ void mix(unsigned* out, const unsigned* a,
                               const unsigned* b, const unsigned* c,
                               unsigned count, unsigned salt) {
  Mix(out, a, b, c, count, salt);
}

// The same with programmatic dependent launch of its own.
extern "C" __global__ void mix_own(unsigned* out, const unsigned* a,
                                   const unsigned* b, const unsigned* c,
                                   unsigned count, unsigned salt) {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  Mix(out, a, b, c, count, salt);
}
