// SPDX-License-Identifier: Apache-2.0
// Kernels whose indices are hard to follow. All have the same parameters: two
// pointers and six numbers, which may be anything; nothing says that what they
// access is theirs. For random_code_test.cc.

#include <cstdint>

#define KERNEL(name)                                                    \
  extern "C" __global__ void name(uint8_t* a, uint8_t* b, int64_t n,    \
                                  int64_t m, int i, int j, int k, int l, \
                                  uint64_t u, uint64_t v)

namespace {

__device__ __forceinline__ int Thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

// Keeps a load.
__device__ __forceinline__ void Touch(const uint8_t* at) {
  asm volatile("{ .reg .u32 t; ld.volatile.global.u8 t, [%0]; }" ::"l"(at) : "memory");
}

__device__ __noinline__ int Step(int x, int by) {
  return x * 3 + by + (x >> 2);
}

}  // namespace

KERNEL(nested_loops) {
  for (int x = 0; x < (i & 15); ++x) {
    for (int y = x; y < (j & 15); y += 2) Touch(a + x * 100 + y * k);
  }
}

KERNEL(several_exits) {
  for (int x = Thread(); x < 60; x += 3) {
    if (x * 7 == (i & 63)) break;
    if ((x & 3) == 2) continue;
    if (b[x] == 17) return;
    Touch(a + 4 * x);
  }
  Touch(b + 1);
}

KERNEL(ping_pong) {
  uint8_t* from = a;
  uint8_t* to = b;
  for (int x = 0; x < (i & 7); ++x) {
    Touch(from + x);
    Touch(to + 2 * x);
    uint8_t* const swapped = from;
    from = to;
    to = swapped;
  }
  Touch(to + 100);
}

KERNEL(unsigned_wrap) {
  const uint32_t x = static_cast<uint32_t>(i) + Thread();
  const uint32_t y = x * static_cast<uint32_t>(j) - 7u;
  Touch(a + y);
  Touch(a + (x + 0xfffffff0u));
  Touch(a + (y >> 3));
}

KERNEL(long_arithmetic) {
  const int64_t x = static_cast<int64_t>(i) * j + k;
  Touch(a + (x >> 20));
  Touch(a + (static_cast<uint64_t>(x) >> 33));
  Touch(a + static_cast<int32_t>(x >> 32));
  if (x > n && x < n + 100) Touch(a + x - n);
}

KERNEL(negative_strides) {
  for (int x = 20; x >= 0; x -= 3) Touch(a - x * (j & 1023) + Thread());
  uint8_t* at = a + 1000;
  for (int x = 0; x < (k & 31); ++x) {
    Touch(at);
    at -= 7;
  }
}

KERNEL(post_decrement) {
  unsigned x = static_cast<unsigned>(i) & 31;
  do {
    Touch(a + x);
  } while (x-- > 0);
  Touch(a + 2 + x);
  int y = j & 15;
  while (y--) Touch(b + y);
}

KERNEL(step_of_parameter) {
  if (k > 0) {
    for (int x = i & 255; x < 300; x += k) Touch(a + x);
  }
  if (l < 0) {
    for (int64_t x = 500; x > (j & 255); x += l) Touch(b + x);
  }
}

KERNEL(selected_pointers) {
  uint8_t* const p = Thread() & 1 ? a : b;
  uint8_t* const q = i > j ? a + 4 : a + 4096;
  Touch(p + Thread());
  Touch(q + Thread());
  Touch((k > Thread() ? q : p) + (k > Thread() ? 1 : 1000));
}

KERNEL(calls_in_loops) {
  int x = i & 3;
  for (int y = 0; y < 4; ++y) {
    x = Step(x, y) & 255;
    Touch(a + x);
  }
  Touch(a + (Step(Thread(), 1) & 1023));
}

KERNEL(bounded_by_data) {
  int x = 0;
  while (b[x] < 200 && x < 40) {
    Touch(a + x);
    x += 1 + (b[x] & 3);
  }
  Touch(a + 1000 + x);
}

KERNEL(divisions) {
  const uint32_t x = static_cast<uint32_t>(i) + Thread();
  Touch(a + x / 4294967291u);
  Touch(a + x / 0x80000001u);
  Touch(a + x % 641u);
  Touch(a + x / 7u);
  const int y = j + Thread();
  Touch(a + y / 7);
  Touch(a + y % 12);
  Touch(a + y / 16);
  Touch(a + y % 64);
  Touch(a + y / -5);
}

KERNEL(divisions_of_small) {
  const int x = Thread();
  Touch(a + x / 3 * 100 + x % 3);
  Touch(b + (x * 5 + 2) / 6 * 10);
  if (static_cast<unsigned>(i) < 100000) Touch(a + (i + x) / 10 * 10);
  if (static_cast<unsigned>(j) < 5000) Touch(a + j / x);
}

KERNEL(divisions_by_parameter) {
  const uint32_t x = static_cast<uint32_t>(Thread());
  if (j > 0) Touch(a + x / static_cast<uint32_t>(j));
  if (k > 0) Touch(a + x % static_cast<uint32_t>(k) * 16);
  if (n > 0) Touch(a + x % n);
}

KERNEL(narrow_indices) {
  const auto c = static_cast<int8_t>(i + Thread());
  const auto s = static_cast<int16_t>(j * Thread());
  const auto h = static_cast<uint16_t>(k + 3);
  Touch(a + c);
  Touch(a + s);
  Touch(a + h);
  Touch(b + static_cast<uint8_t>(c * 3));
  for (uint8_t x = 250; x != 4; x += 2) Touch(b + x);
  for (int8_t x = 120; x > 0; x += 3) Touch(b + x);
}

KERNEL(swizzles) {
  const int x = Thread();
  Touch(a + (x ^ (x >> 3)));
  Touch(a + ((x & 7) ^ ((x >> 3) & 7)) * 16);
  Touch(a + (x & ~7) + ((x ^ i) & 7));
  Touch(b + ((x << 4) | (x & 3)));
  Touch(b + ((x | i) & 0x3ff));
  Touch(b + (~x & 255));
  Touch(b + __brev(x) % 1000u + __popc(i) + __clz(j));
  Touch(b + __byte_perm(x, i, 0x5140) % 4096);
}

KERNEL(minimum_and_maximum) {
  const int x = min(max(i, 0), 63) + min(j, Thread());
  Touch(a + x);
  Touch(a + min(static_cast<unsigned>(j), 77u));
  Touch(a + max(k, -5));
  Touch(a + abs(l));
  Touch(a + (i < j ? i : j));
}

KERNEL(long_comparisons) {
  const int64_t x = n + Thread();
  if (x >= 0 && x < 5000) Touch(a + x);
  if (x < m) Touch(b + (m - x > 100 ? 100 : m - x));
  if (u < 1000 && v > u) Touch(a + u + (v - u < 50 ? v - u : 50));
  for (int64_t y = 0; y < m && y < 30; ++y) Touch(a + y * 4);
}

KERNEL(shifts_by_anything) {
  Touch(a + (1 << (i & 31)) % 999);
  Touch(a + (static_cast<unsigned>(j) >> (k & 31)));
  Touch(a + (j >> 28) + (static_cast<unsigned>(j) >> 25));
  Touch(a + (n >> 50) + (u >> 40));
  Touch(b + __funnelshift_r(i, j & 15, 30));
  Touch(b + (u << 3 >> 40));
}

KERNEL(two_counters) {
  int x = 0;
  int64_t y = 1000;
  for (; x < y && x < 50; x += 2, y -= (i & 7)) {
    Touch(a + x);
    Touch(b + y);
  }
  int even = 0;
  int odd = 1;
  for (int z = 0; z < (j & 15); ++z) {
    const int next = even + 2;
    even = odd;
    odd = next;
    Touch(a + even * 8);
  }
}

KERNEL(sign_changes) {
  int x = i;
  for (int y = 0; y < 6; ++y) {
    x = -x + y;
    Touch(a + (x & 511));
    if (x > -300 && x < 300) Touch(a + x);
  }
  const int neg = -(j & 63);
  Touch(a + neg);
  Touch(a + static_cast<uint32_t>(neg) % 128);
}

KERNEL(counted_down_from_unsigned) {
  for (unsigned x = static_cast<unsigned>(i) & 31; x < 32; --x) Touch(a + x);
  for (unsigned x = 0; x < (static_cast<unsigned>(j) & 31) - 1; ++x) {
    if (x > 40) break;
    Touch(b + x);
  }
}

// More conditions than there are predicates, all alive to the end: some are
// kept in registers.
KERNEL(many_conditions) {
  const int x = Thread();
  const bool c0 = x < (i & 31);
  const bool c1 = x > (j & 31);
  const bool c2 = (x ^ k) & 1;
  const bool c3 = x * 3 < (l & 127);
  const bool c4 = n < m;
  const bool c5 = u > v;
  const bool c6 = b[x & 7] == 0;
  const bool c7 = (x & 5) == 4;
  const bool c8 = i < j;
  const bool c9 = k + x > l;
  for (int y = 0; y < (i & 3) + 1; ++y) {
    if (c0) Touch(a + x + y);
    if (c1) Touch(a + 100 + x);
    if (c2) Touch(a + 200 + x * y);
    if (c3) Touch(a + 300 + x);
    if (c4) Touch(b + x);
    if (c5) Touch(b + 100 + x);
    if (c6) Touch(b + 200 + x + y);
    if (c7) Touch(b + 300 + x);
    if (c8) Touch(b + 400 + x);
    if (c9) Touch(b + 500 + y);
  }
  if (c0 && c3) Touch(a + 1000 + x);
  if (c1 != c7) Touch(a + 1100 + x);
  if (c6 || c2) Touch(a + 1200 + x);
}

// A number that is set under a condition and used under one that is like it.
KERNEL(like_conditions) {
  const int x = Thread();
  int at = j & 0xfff;
  if (x < (i & 31)) at = x;
  Touch(b + x);
  if (x < (i & 31)) Touch(a + at);
  if (x <= (i & 31)) Touch(a + at);
  for (int y = 0; y < (k & 7); ++y) {
    if (y >= 2) Touch(a + at);
    if (y >= 2) at = y;
    if (y == 2) Touch(b + at);
    if (y != 1) at += 3;
    if (y >= 2) Touch(b + at);
    if (y > 1) Touch(b + at);
  }
}

// Masks that change nothing, something, or have holes.
KERNEL(masks) {
  const int x = Thread();
  Touch(a + ((x * 2) & 0xfe));
  Touch(a + ((x * 4) & 0x3c));
  Touch(a + ((x * 8 + 4) & 0xfc));
  Touch(b + (x & 0x15));
  Touch(b + ((x * 2) & (i | 0xfe)));
  Touch(b + ((x + j) & 0x707));
  Touch(b + (((x * 2) & 0xfe) | ((k & 1) << 8)));
  Touch(b + (((l & 0xff) * 2 + x) & 0x1fe));
}
