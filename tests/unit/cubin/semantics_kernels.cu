// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic of every kind that sass_semantics_test.cc looks for. PTX
// where C++ has no word for it.

#include <cstdint>

extern "C" __global__ void integers(int* out, const int* in, int n,
                                    unsigned m) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = in[i];
  const int l = in[i + 1];
  out[i] = j / n + static_cast<unsigned>(l) % m;
  out[i + 1] = min(j, l);
  out[i + 2] = max(static_cast<unsigned>(j), m);
  out[i + 3] = __byte_perm(j, l, n);
  out[i + 4] = __funnelshift_l(j, l, n);
  out[i + 5] = __funnelshift_rc(j, l, n);
  out[i + 6] = __clz(j) + __popc(l) + __brev(j) + abs(l) + __ffs(n);
  out[i + 7] = j >> l;
  out[i + 8] = static_cast<unsigned>(j) >> l;
  out[i + 9] = j << l;
  out[i + 10] = static_cast<short>(j) + ((j << 7) >> 20);
  out[i + 11] = __mulhi(j, l);
  out[i + 12] = __umulhi(j, l);
  out[i + 13] = (j & l) | (n ^ i);
  out[i + 14] = (j < 3 && l > 4) || (m < 9 && j == l);
  out[i + 15] = max(max(j, l), n);
  out[i + 16] = max(j + n, l);
  out[i + 17] = __popc(~j & l) + (j ? l : n);
}

extern "C" __global__ void longs(long long* out, const int* in, long long s,
                                 unsigned long long u, short h,
                                 unsigned char c) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = in[i];
  const int l = in[i + 1];
  out[i] = s * j;
  out[i + 1] = u / 7;
  out[i + 2] = static_cast<long long>(j) * l + s;
  out[i + 3] = s >> l;
  out[i + 4] = u >> l;
  out[i + 5] = s << l;
  if (s < out[i + 6] && u > static_cast<unsigned long long>(out[i + 7])) {
    out[i + 8] = h + c;
  }
  out[i + 9] = s < out[i + 10] ? j : l;
  out[i + 11] = s + j * 8ll;
  out[i + 12] = s - out[i + 13];
  out[i + 14] = u * static_cast<unsigned long long>(out[i + 15]);
  out[i + 16] = __clzll(out[i + 17]) + __popcll(out[i + 18]);
}

extern "C" __global__ void uniform(int* out, int n, int m, long long s,
                                   const int* table) {
  const int step = (n * m + 3) >> 2;
  for (int i = 0; i < n; ++i) {
    if (i * m > 7) out[i * step + (i >> 2)] = (i & 5) + min(i, m);
    out[blockIdx.x * n + i] = static_cast<int>(s >> i) + table[i ^ m];
  }
  out[(s + blockIdx.y) * 3] = n ? __popc(n) : m;
}

extern "C" __global__ void predicates(int* out, const int* in, int n) {
  bool p[7];
  for (int k = 0; k < 7; ++k) p[k] = in[k] < n;
  int sum = 0;
  // So many conditions that they do not fit into the predicates.
#pragma unroll
  for (int k = 0; k < 40; ++k) {
    if (in[k] > n && p[k % 7]) sum += in[40 + k] * (k + 1);
    if (in[80 + k] < sum || !p[(k + 3) % 7]) sum ^= in[120 + k];
  }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void bits(int* out, int a, int b) {
  int x = threadIdx.x * a + b;
  int r[12];
  asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r[0]) : "r"(x), "r"(b));
  asm("szext.wrap.u32 %0, %1, %2;" : "=r"(r[1]) : "r"(x), "r"(threadIdx.x));
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r[2]) : "r"(x), "r"(b));
  asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(r[3]) : "r"(x), "r"(b));
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[4]) : "r"(x), "r"(a), "r"(b));
  asm("bfi.b32 %0, %1, %2, 3, 7;" : "=r"(r[5]) : "r"(x), "r"(b));
  asm("bfind.s32 %0, %1;" : "=r"(r[6]) : "r"(x));
  asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r[7]) : "r"(x));
  asm("shf.l.clamp.b32 %0, %1, %2, %3;"
      : "=r"(r[8])
      : "r"(x), "r"(b), "r"(threadIdx.x));
  asm("shf.r.wrap.b32 %0, %1, %2, %3;"
      : "=r"(r[9])
      : "r"(x), "r"(b), "r"(threadIdx.x));
  asm("prmt.b32.f4e %0, %1, %2, %3;"
      : "=r"(r[10])
      : "r"(x), "r"(b), "r"(threadIdx.x));
  asm("prmt.b32.ecr %0, %1, %2, %3;"
      : "=r"(r[11])
      : "r"(x), "r"(b), "r"(threadIdx.x));
  for (int i = 0; i < 12; ++i) out[threadIdx.x * 12 + i] = r[i];
}

__constant__ int lookup[256];
__constant__ signed char bytes[256];
extern "C" __global__ void constants(int* out, const int* in) {
  const int i = in[threadIdx.x];
  out[threadIdx.x] = lookup[i & 255] + bytes[in[threadIdx.x + 1] & 255];
}
