// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_ARITHMETIC_H_
#define HEDDLE_TESTS_SASS_MACHINE_ARITHMETIC_H_

// Arithmetic that machine_test.cc has done twice, by the machine with nvcc's
// code and by the host with its compiler's, and compares bit by bit. Nothing
// here is undefined for any input, and no sum follows a product of floats (one
// compiler would contract them).

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define ARITHMETIC __host__ __device__ inline
#else
#define ARITHMETIC inline
#endif

namespace heddle::sass_machine {

constexpr int kIntegerResults = 40;
constexpr int kLongResults = 24;
constexpr int kFloatResults = 24;
constexpr int kDoubleResults = 10;

ARITHMETIC uint32_t PopulationOf(uint32_t x) {
  uint32_t count = 0;
  for (int i = 0; i < 32; ++i) count += x >> i & 1;
  return count;
}

ARITHMETIC void IntegerResults(uint32_t a, uint32_t b, uint32_t c,
                               uint32_t* out) {
  const int32_t sa = static_cast<int32_t>(a);
  const int32_t sb = static_cast<int32_t>(b);
  int at = 0;
  out[at++] = a + b + c;
  out[at++] = a - b - c;
  out[at++] = a * b + c;
  out[at++] = c - a * b;
  out[at++] = static_cast<uint32_t>(uint64_t{a} * b >> 32);
  out[at++] = static_cast<uint32_t>(int64_t{sa} * sb >> 32);
  out[at++] = (a & b) | (~a & c);
  out[at++] = a ^ b ^ c;
  out[at++] = (a | b) & ~c;
  out[at++] = a << (b & 31);
  out[at++] = a >> (b & 31);
  out[at++] = static_cast<uint32_t>(sa >> (b & 31));
  out[at++] = a << 3 | b >> 29;
  out[at++] = sa < sb ? a : c;
  out[at++] = a < b ? a : c;
  out[at++] = sa < sb && b < c ? 1 : sa == sb || a >= c ? 2 : 3;
  out[at++] = static_cast<uint32_t>(sa < sb ? sa : sb);
  out[at++] = a > b ? a : b;
  out[at++] = static_cast<uint32_t>(int32_t{static_cast<int8_t>(a >> 8)});
  out[at++] = static_cast<uint32_t>(static_cast<int16_t>(b));
  out[at++] = a >> 5 & 0x3ff;
  out[at++] = static_cast<uint32_t>(static_cast<int32_t>(a << 7) >> 20);
  out[at++] = a / (b | 1);
  out[at++] = a % (b | 1);
  out[at++] = static_cast<uint32_t>((sb | 1) == -1 ? 0 : sa / (sb | 1));
  out[at++] = static_cast<uint32_t>((sb | 1) == -1 ? 0 : sa % (sb | 1));
  out[at++] = a / 7;
  out[at++] = static_cast<uint32_t>(sa / 1000);
  out[at++] = static_cast<uint32_t>(sa % 12);
  out[at++] = PopulationOf(a ^ b);
  out[at++] = a + (b << 4);
  out[at++] = (a << 7) - b;
  out[at++] = a < b ? a + 1 < c ? 5 : 6 : b + 9;
  out[at++] = sa < 0 ? 0 - a : a;
  out[at++] = (a & 0xff) | (b & 0xff) << 8 | (c & 0xff) << 16 | a << 24;
  out[at++] = (a > b) + (b > c) * 2 + (sa > sb) * 4 + (a == c) * 8;
  uint32_t loop = a;
  for (uint32_t i = 0; i < (b & 15); ++i) loop = loop * 1664525 + i;
  out[at++] = loop;
  uint32_t steps = 0;
  for (uint32_t x = c & 0xfff; x > 1 && steps < 300; ++steps) {
    if (x % 2 == 0) {
      x /= 2;
      continue;
    }
    x = x * 3 + 1;
    if (x > 100000) break;
  }
  out[at++] = steps;
  out[at++] = (a & b) == 0 ? c : (a & b & c) != 0 ? a : b;
  out[at++] = ~(a ^ (b & ~c));
}

ARITHMETIC void LongResults(uint64_t a, uint64_t b, uint64_t c, uint64_t* out) {
  const int64_t sa = static_cast<int64_t>(a);
  const int64_t sb = static_cast<int64_t>(b);
  const auto low = static_cast<uint32_t>(c);
  int at = 0;
  out[at++] = a + b + c;
  out[at++] = a - b - c;
  out[at++] = a * b + c;
  out[at++] = uint64_t{static_cast<uint32_t>(a)} * low + b;
  out[at++] = static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} *
                                    static_cast<int32_t>(low)) -
              b;
  out[at++] = a << (c & 63);
  out[at++] = a >> (c & 63);
  out[at++] = static_cast<uint64_t>(sa >> (c & 63));
  out[at++] = a << 5 | b >> 59;
  out[at++] = sa < sb ? a : c;
  out[at++] = a <= b ? a : c;
  out[at++] = sa == sb || a > c ? 1 : 2;
  out[at++] = static_cast<uint64_t>(sa < sb ? sa : sb);
  out[at++] = a / (b | 1);
  out[at++] = a % (b | 1);
  out[at++] = static_cast<uint64_t>((sb | 1) == -1 ? 0 : sa / (sb | 1));
  out[at++] = static_cast<uint64_t>((sb | 1) == -1 ? 0 : sa % (sb | 1));
  out[at++] = a / 11;
  out[at++] = static_cast<uint64_t>(sa / 1000);
  out[at++] = b + static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)} * 8);
  out[at++] = b + (uint64_t{low} << 2);
  out[at++] =
      b - static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)} * 128);
  out[at++] = (a & b) ^ ~c;
  out[at++] = static_cast<uint64_t>(sa < 0 ? -1 : sa > 0);
}

ARITHMETIC void FloatResults(float a, float b, float c, float* out) {
  int at = 0;
  out[at++] = a + b;
  out[at++] = a - c;
  out[at++] = a * b;
  out[at++] = fmaf(a, b, c);
  out[at++] = fmaf(-a, b, c);
  out[at++] = fmaf(a, b, -c);
  out[at++] = a / b;
  out[at++] = sqrtf(fabsf(a));
  out[at++] = a < b ? a : c;
  out[at++] = a >= b ? b : c;
  out[at++] = a == b || b != c ? 1.0f : 2.0f;
  out[at++] = fabsf(a) + fabsf(b);
  out[at++] = -fabsf(a) - b;
  out[at++] = floorf(a);
  out[at++] = ceilf(b);
  out[at++] = truncf(c);
  out[at++] = rintf(a);
  out[at++] = fminf(fmaxf(a, -9.0f), 9.0f);
  out[at++] =
      static_cast<float>(static_cast<int>(fminf(fmaxf(a, -1e6f), 1e6f)));
  out[at++] =
      static_cast<float>(static_cast<unsigned>(fminf(fmaxf(b, 0.0f), 1e6f)));
  out[at++] = static_cast<float>(
      static_cast<int64_t>(fminf(fmaxf(c, -1e9f), 1e9f)) * 4097);
  out[at++] = static_cast<float>(static_cast<double>(a) * c);
  out[at++] = a > b ? a * 0.25f : b * 8.0f;
  out[at++] = a != a ? 1.0f : 0.0f;
}

ARITHMETIC void DoubleResults(double a, double b, double c, double* out) {
  int at = 0;
  out[at++] = a + b;
  out[at++] = a - c;
  out[at++] = a * b;
  out[at++] = fma(a, b, c);
  out[at++] = fma(-a, b, -c);
  out[at++] = a < b ? a : c;
  out[at++] = a >= b && b == b ? -b : c;
  out[at++] = static_cast<double>(static_cast<float>(a));
  out[at++] = static_cast<double>(
      static_cast<int64_t>(a < 1e9 && a > -1e9 ? a : 0.0) * 3);
  out[at++] = fabs(a) + 0.5;
}

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_ARITHMETIC_H_
