// SPDX-License-Identifier: Apache-2.0
// The kernels of the tests, as device code. Their bodies on the host device are
// in host_kernels.cc and do the same.

__device__ void LaunchDependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ void GridDependencyWait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ int counter = 5;
__device__ float zeros[8];

extern "C" __global__ void fill(int* out, int value) {
  out[blockIdx.x] = value + blockIdx.x;
}

extern "C" __global__ void copy(int* out, const int* in) {
  out[blockIdx.x] = in[blockIdx.x];
}

// Reads all of `in`: any block that has not run shows.
extern "C" __global__ void sum(int* out, const int* in, int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) total += in[i];
  out[blockIdx.x] = total;
}

extern "C" __global__ void increment(int* data) { ++data[blockIdx.x]; }

// The same with programmatic dependent launch.
extern "C" __global__ void fill_trigger_first(int* out, int value) {
  LaunchDependents();
  out[blockIdx.x] = value + blockIdx.x;
}

extern "C" __global__ void sum_wait(int* out, const int* in, int count) {
  GridDependencyWait();
  int total = 0;
  for (int i = 0; i < count; ++i) total += in[i];
  out[blockIdx.x] = total;
}

// Triggers, then waits: what heddle puts in front of kernels.
extern "C" __global__ void copy_trigger_wait(int* out, const int* in) {
  LaunchDependents();
  GridDependencyWait();
  out[blockIdx.x] = in[blockIdx.x];
}

// Touches nothing and does not wait: the middle of a chain that lets others
// outrun it.
extern "C" __global__ void idle_trigger(int* unused) {
  LaunchDependents();
  if (unused == nullptr) return;
}

struct Mixed {
  char tag;
  double value;
  int list[3];
};
extern "C" __global__ void mixed(double* out, char a, Mixed m, short b) {
  *out = a + m.tag + m.value + m.list[2] + b;
}

extern "C" __global__ void shared_bytes(unsigned* out, unsigned count) {
  extern __shared__ unsigned char bytes[];
  unsigned zero = 0;
  for (unsigned i = 0; i < count; ++i) zero += bytes[i] == 0;
  *out = zero;
}

extern "C" __global__ void __launch_bounds__(64) bounded(int* out) { *out = 1; }

extern "C" __global__ void without_body(int* out) { *out = 1; }
