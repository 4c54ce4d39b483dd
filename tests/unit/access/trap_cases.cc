// SPDX-License-Identifier: Apache-2.0
// All kernels, and launches of those that are in neither trap_cases_index.cc
// nor trap_cases_math.cc.

#include "tests/unit/access/trap_cases.h"

#include "tests/unit/access/trap_builder.h"
#include "tests/unit/access/trap_makers.h"

namespace heddle::access {
namespace {

TrapCase WriteThenRead(std::mt19937_64& random) {
  TrapBuilder b("write_then_read", random);
  const int n = b.Int(1, 700);
  std::vector<int> data = b.Ints<int>(Size(n + b.Int(0, 9)), -99, 99);
  const uint64_t at = b.Buffer(data);
  b.Param(at);
  b.Param(n);
  b.LaunchFor(n, b.Threads(256));
  for (int i = 0; i < n; ++i) data[Size(i)] = i * 3 + 1;
  b.Expect(at, data);
  return b.Done();
}

TrapCase EqualValues(std::mt19937_64& random) {
  TrapBuilder b("equal_values", random);
  const size_t n = Size(b.Int(1, 600));
  const std::vector<int> in = b.Ints<int>(n, 0, 2);
  std::vector<int> out = b.Ints<int>(n + 3, 0, 2);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(n));
  b.LaunchFor(static_cast<int>(n), b.Threads(256));
  std::copy(in.begin(), in.end(), out.begin());
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase GridStride(std::mt19937_64& random) {
  TrapBuilder b("grid_stride", random);
  const size_t n = Size(b.Int(0, 900));
  const std::vector<float> in = b.Floats(n + 1);
  std::vector<float> out = b.Floats(n + 1);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(n));
  b.Param(1.5f);
  b.Launch({b.Int(1, 5), 1, 1}, {b.Threads(96), 1, 1});
  for (size_t i = 0; i < n; ++i) out[i] = in[i] * 1.5f;
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase Histogram(std::mt19937_64& random) {
  TrapBuilder b("histogram", random);
  const size_t n = Size(b.Int(1, 300));
  const size_t count = Size(b.Int(1, 40));
  const std::vector<unsigned> values = b.Ints<unsigned>(n, 0, 1 << 30);
  std::vector<int> bins(count + 3);
  std::vector<float> sums(count);
  const uint64_t bins_at = b.Buffer(bins);
  const uint64_t sums_at = b.Buffer(sums);
  b.Param(bins_at);
  b.Param(sums_at);
  b.Param(b.Buffer(values));
  b.Param(static_cast<int>(n));
  b.Param(static_cast<unsigned>(count));
  b.LaunchFor(static_cast<int>(n), b.Threads(128));
  for (const unsigned value : values) {
    const size_t bin = value % count;
    ++bins[bin];
    sums[bin] += 0.5f;
    bins[count] = std::max(bins[count], static_cast<int>(bin));
    bins[count + 1] |= static_cast<int>(1u << (bin & 31));
    bins[count + 2] = 7;
  }
  b.Expect(bins_at, bins);
  b.ExpectClose(sums_at, sums);
  return b.Done();
}

TrapCase Generic(std::mt19937_64& random) {
  TrapBuilder b("generic", random);
  const int threads = 2 * b.Int(1, 128);
  const int n = b.Int(1, 500);
  const int flag = b.Int(0, 255);
  const std::vector<float> in = b.Floats(Size(threads));
  std::vector<float> out = b.Floats(Size(n));
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(flag);
  b.Param(n);
  b.LaunchFor(n, threads);
  for (int i = 0; i < n; ++i) {
    const int thread = i % threads;
    const int other = thread ^ 1;
    out[Size(i)] = flag >> (thread & 7) & 1
                       ? static_cast<float>(i - thread + other)
                       : in[Size(other)];
  }
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase ThroughPointer(std::mt19937_64& random) {
  TrapBuilder b("through_pointer", random);
  const size_t n = Size(b.Int(1, 300));
  std::vector<float> in = b.Floats(n);
  const uint64_t out_at = b.Buffer(b.Floats(n));
  b.Param(b.Buffer(std::vector<uint64_t>{out_at}));
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(n));
  b.LaunchFor(static_cast<int>(n), b.Threads(128));
  for (float& value : in) value += 2.0f;
  b.ExpectClose(out_at, in);
  return b.Done();
}

TrapCase PaddedRead(std::mt19937_64& random) {
  TrapBuilder b("padded_read", random);
  const size_t n = Size(b.Int(1, 500));
  const std::vector<float> in = b.Floats((n + 3) / 4 * 4);
  std::vector<float> out = b.Floats(n);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(n));
  b.LaunchFor(static_cast<int>(n + 3) / 4, b.Threads(64));
  for (size_t i = 0; i < n; ++i) out[i] = in[i] * 0.5f;
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase EarlyExit(std::mt19937_64& random) {
  TrapBuilder b("early_exit", random);
  const int threads = b.Threads(128);
  const int blocks = b.Int(1, 6);
  const int active = b.Int(0, blocks);
  const std::vector<int> in = b.Ints<int>(Size(blocks * threads), -99, 99);
  std::vector<int> out = b.Ints<int>(in.size(), -99, 99);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(active);
  b.Launch({blocks, 1, 1}, {threads, 1, 1});
  for (int i = 0; i < active * threads; ++i) {
    const int thread = i % threads;
    out[Size(i)] = in[Size(i - thread + threads - 1 - thread)];
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase LocalArray(std::mt19937_64& random) {
  TrapBuilder b("local_array", random);
  const int threads = b.Threads(96);
  const int n = b.Int(0, 40);
  const std::vector<int> in = b.Ints<int>(Size(32 + n), -99, 99);
  std::vector<int> out = b.Ints<int>(Size(2 * threads), -9, 9);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(n);
  b.Launch({2, 1, 1}, {threads, 1, 1});
  const auto kept = [&](int k) { return in[Size(k)] + k; };
  int sum = 0;
  for (int k = 0; k < n; ++k) {
    sum += kept(in[Size(k + 32)] & 31) * k;
  }
  for (int i = 0; i < 2 * threads; ++i) {
    out[Size(i)] = sum + kept(i % threads & 31);
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase ModuleVariables(std::mt19937_64& random) {
  TrapBuilder b("module_variables", random);
  // One warp, which reads the counter before it adds to it.
  const int threads = b.Int(1, 32);
  constexpr int kTable[] = {3, 1, 4, 1, 5, 9, 2, 6};
  std::vector<int> out(Size(threads));
  const uint64_t out_at = b.Buffer(b.Ints<int>(out.size(), 0, 9));
  b.Param(out_at);
  b.Launch({1, 1, 1}, {threads, 1, 1});
  for (int i = 0; i < threads; ++i) {
    out[Size(i)] = kTable[i & 7] + 5;
  }
  b.Expect(out_at, out);
  return b.Done();
}

constexpr Trap kTraps[] = {
    {"write_then_read", WriteThenRead},
    {"equal_values", EqualValues},
    {"masked_rows", MaskedRows},
    {"grid_stride", GridStride},
    {"copy_2d", Copy2d},
    {"gather", Gather},
    {"scatter", Scatter},
    {"pointer_array", PointerArray},
    {"strided", StridedCopy},
    {"split_k", SplitK},
    {"append_cache", AppendCache},
    {"histogram", Histogram},
    {"generic", Generic},
    {"through_pointer", ThroughPointer},
    {"padded_read", PaddedRead},
    {"one_past", OnePast},
    {"transpose", Transpose},
    {"divided", Divided},
    {"long_index", LongIndex},
    {"walking_pointer", WalkingPointer},
    {"early_exit", EarlyExit},
    {"elementwise_4", Elementwise4},
    {"elementwise_2", Elementwise2},
    {"softmax", Softmax},
    {"rms_norm", RmsNorm},
    {"matmul", Matmul},
    {"switched", Switched},
    {"calls", Calls},
    {"local_array", LocalArray},
    {"module_variables", ModuleVariables},
};

}  // namespace

absl::Span<const Trap> Traps() { return kTraps; }

}  // namespace heddle::access
