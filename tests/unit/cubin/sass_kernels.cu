// SPDX-License-Identifier: Apache-2.0
// Kernels whose machine code has the memory instructions that sass_test.cc
// looks for: one kind each, so that what is decoded can be told apart. PTX
// where C++ leaves the compiler a choice.

#include <cstdint>

extern "C" __global__ void stores(char* c, short* s, int* i, double* d,
                                  int4* q) {
  c[threadIdx.x] = 1;
  s[threadIdx.x] = 2;
  i[threadIdx.x] = 3;
  d[threadIdx.x] = 4;
  q[threadIdx.x] = make_int4(5, 6, 7, 8);
}

extern "C" __global__ void loop(int* out, int n) {
  int sum = 0;
  for (int k = 0; k < n; ++k) sum += out[k] ^ k;
  out[n] = sum;
}

extern "C" __global__ void atomics(int* i, unsigned long long* l, float* f,
                                   double* d) {
  __shared__ int shared;
  if (threadIdx.x == 0) shared = 0;
  __syncthreads();
  atomicAdd(&shared, i[0]);
  f[1] = atomicAdd(f, 1.0f);
  atomicAdd(d, 1.0);
  l[1] = atomicCAS(l, 1ull, 2ull);
  __syncthreads();
  i[1] = atomicExch(&shared, 3);
}

extern "C" __global__ void warp(int* out, int value) {
  out[0] = __shfl_xor_sync(~0u, value, threadIdx.x);
  out[1] = __shfl_down_sync(~0u, value, 3);
  out[2] = __ballot_sync(~0u, value > 2);
  out[3] = __match_any_sync(~0u, value);
  out[4] = __reduce_add_sync(~0u, value);
  out[5] = __popc(__activemask());
}

__device__ __noinline__ int called(int x) {
  return x < 2 ? x : called(x - 1) + called(x - 2);
}
extern "C" __global__ void calls(int* out, int (*function)(int)) {
  out[0] = called(out[1]);
  out[2] = function(out[3]);
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void dependent() {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

extern "C" __global__ void bulk(void* global, uint32_t shared, uint32_t size,
                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(shared),
      "l"(global), "r"(size), "r"(barrier));
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
          global),
      "r"(shared), "r"(size));
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
      "[%0], [%1], %2;" ::"l"(global),
      "r"(shared), "r"(size));
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global),
               "r"(size));
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group 0;");
}

struct alignas(64) TensorMap {
  char bytes[128];
};
extern "C" __global__ void tensor(const __grid_constant__ TensorMap map,
                                  uint32_t shared, uint32_t barrier, int x,
                                  int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_"
      "tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared),
      "l"(&map), "r"(x), "r"(y), "r"(barrier));
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
      "[%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(x), "r"(y), "r"(shared));
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
      "[%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(x), "r"(y), "r"(shared));
  asm volatile(
      "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(
          &map),
      "r"(x), "r"(y));
}

extern "C" __global__ void cluster(uint32_t address, uint32_t barrier,
                                   uint32_t rank, int value, int* out) {
  uint32_t remote;
  uint32_t remote_barrier;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote)
               : "r"(address), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote_barrier)
               : "r"(barrier), "r"(rank));
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, "
      "[%2];" ::"r"(remote),
      "r"(value), "r"(remote_barrier));
  asm volatile(
      "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster"
      ".add.u32 [%0], %1, [%2];" ::"r"(remote),
      "r"(value), "r"(remote_barrier));
  int loaded;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(loaded) : "r"(remote));
  out[0] = loaded;
  asm volatile("barrier.cluster.arrive;");
  asm volatile("barrier.cluster.wait;");
}
#endif
