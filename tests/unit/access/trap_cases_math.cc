// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels that compute.

#include <bit>
#include <cmath>
#include <cstdlib>

#include "tests/unit/access/trap_builder.h"
#include "tests/unit/access/trap_makers.h"

namespace heddle::access {

TrapCase SplitK(std::mt19937_64& random) {
  TrapBuilder b("split_k", random);
  const size_t n = Size(b.Int(1, 150));
  const size_t k = Size(b.Int(1, 40));
  const int splits = b.Int(1, 5);
  const size_t chunk = (k + Size(splits) - 1) / Size(splits);
  const int threads = b.Threads(96);
  const int blocks = (static_cast<int>(n) + threads - 1) / threads;
  const std::vector<float> a = b.Floats(k);
  const std::vector<float> matrix = b.Floats(k * n);
  std::vector<float> out(n);
  std::vector<float> parts(Size(splits) * n);
  for (size_t at = 0; at < k; ++at) {
    for (size_t i = 0; i < n; ++i) {
      const float term = a[at] * matrix[at * n + i];
      parts[at / chunk * n + i] += term;
      out[i] += term;
    }
  }
  const uint64_t out_at = b.Buffer(b.Floats(n));
  const uint64_t parts_at = b.Buffer(b.Floats(parts.size()));
  b.Param(out_at);
  b.Param(parts_at);
  b.Param(b.Buffer(std::vector<unsigned>(Size(blocks))));
  b.Param(b.Buffer(a));
  b.Param(b.Buffer(matrix));
  b.Param(static_cast<int>(n));
  b.Param(static_cast<int>(k));
  b.Launch({blocks, splits, 1}, {threads, 1, 1});
  b.ExpectClose(out_at, out);
  b.ExpectClose(parts_at, parts);
  return b.Done();
}

TrapCase WalkingPointer(std::mt19937_64& random) {
  TrapBuilder b("walking_pointer", random);
  const int threads = b.Threads(96);
  const int steps = b.Int(0, 30);
  const int stride = b.Int(-20, 20);
  const int reach = std::abs(stride) * std::max(steps - 1, 0);
  const std::vector<float> in = b.Floats(Size(threads + reach));
  const int begin = stride < 0 ? reach : 0;
  std::vector<float> out(Size(2 * threads));
  const uint64_t out_at = b.Buffer(b.Floats(out.size()));
  b.Param(out_at);
  b.Param(b.Buffer(in) + static_cast<uint64_t>(4 * begin));
  b.Param(steps);
  b.Param(stride);
  b.Launch({2, 1, 1}, {threads, 1, 1});
  for (int i = 0; i < 2 * threads; ++i) {
    for (int k = 0; k < steps; ++k) {
      out[Size(i)] += in[Size(begin + i % threads + k * stride)];
    }
  }
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase Elementwise4(std::mt19937_64& random) {
  TrapBuilder b("elementwise_4", random);
  const size_t n = Size(b.Int(1, 1500));
  const std::vector<float> in = b.Floats(n);
  std::vector<float> out = b.Floats(n);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(n));
  const int threads = 32 * b.Int(1, 4);
  b.LaunchFor((static_cast<int>(n) + 3) / 4, threads);
  for (size_t i = 0; i < n; ++i) out[i] = in[i] * in[i] + 1.0f;
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase Elementwise2(std::mt19937_64& random) {
  TrapBuilder b("elementwise_2", random);
  const size_t n = Size(b.Int(1, 1500));
  const std::vector<int16_t> in = b.Ints<int16_t>(n, -9999, 9999);
  std::vector<int16_t> out = b.Ints<int16_t>(n, -9, 9);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(n));
  const int threads = 32 * b.Int(1, 4);
  b.LaunchFor((static_cast<int>(n) + 3) / 4, threads);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<int16_t>(in[i] * 3 - 1);
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase Softmax(std::mt19937_64& random) {
  TrapBuilder b("softmax", random);
  const size_t rows = Size(b.Int(1, 10));
  const size_t columns = Size(b.Int(1, 130));
  const std::vector<float> in = b.Floats(rows * columns);
  std::vector<float> out = b.Floats(in.size());
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(rows));
  b.Param(static_cast<int>(columns));
  const int warps = b.Int(1, 4);
  b.Launch({(static_cast<int>(rows) + warps - 1) / warps, 1, 1},
           {32 * warps, 1, 1});
  for (size_t r = 0; r < rows; ++r) {
    const float* from = &in[r * columns];
    const float most = *std::max_element(from, from + columns);
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      sum += std::exp(static_cast<double>(from[c] - most));
    }
    for (size_t c = 0; c < columns; ++c) {
      out[r * columns + c] = static_cast<float>(
          std::exp(static_cast<double>(from[c] - most)) / sum);
    }
  }
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase RmsNorm(std::mt19937_64& random) {
  TrapBuilder b("rms_norm", random);
  const size_t rows = Size(b.Int(1, 6));
  const size_t columns = Size(b.Int(1, 200));
  std::vector<float> data = b.Floats(rows * columns);
  const std::vector<float> weight = b.Floats(columns);
  const uint64_t data_at = b.Buffer(data);
  b.Param(data_at);
  b.Param(b.Buffer(weight));
  b.Param(static_cast<int>(columns));
  b.Param(1e-3f);
  b.Launch({static_cast<int>(rows), 1, 1}, {32 * b.Int(1, 4), 1, 1});
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      const double value = data[r * columns + c];
      sum += value * value;
    }
    const double scale =
        1 / std::sqrt(sum / static_cast<double>(columns) + 1e-3);
    for (size_t c = 0; c < columns; ++c) {
      float& value = data[r * columns + c];
      value = static_cast<float>(value * scale * weight[c]);
    }
  }
  b.ExpectClose(data_at, data);
  return b.Done();
}

TrapCase Matmul(std::mt19937_64& random) {
  TrapBuilder b("matmul", random);
  const size_t m = Size(16 * b.Int(1, 3));
  const size_t n = Size(16 * b.Int(1, 3));
  const size_t k = Size(16 * b.Int(1, 4));
  const std::vector<float> left = b.Floats(m * k);
  const std::vector<float> right = b.Floats(k * n);
  std::vector<float> out(m * n);
  const uint64_t out_at = b.Buffer(b.Floats(out.size()));
  b.Param(out_at);
  b.Param(b.Buffer(left));
  b.Param(b.Buffer(right));
  for (const size_t value : {m, n, k}) b.Param(static_cast<int>(value));
  b.Launch({static_cast<int>(n / 16), static_cast<int>(m / 16), 1},
           {256, 1, 1});
  for (size_t i = 0; i < m * n; ++i) {
    for (size_t at = 0; at < k; ++at) {
      out[i] += left[i / n * k + at] * right[at * n + i % n];
    }
  }
  b.ExpectClose(out_at, out);
  return b.Done();
}

namespace {

int Apply(int operation, const std::vector<int>& in, int i, int n) {
  const int v = in[Size(i)];
  const auto u = static_cast<unsigned>(v);
  switch (operation) {
    case 0:
      return v * 7 + 1;
    case 1:
      return in[Size(n - 1 - i)] - v;
    case 2:
      return v ^ (v >> 3);
    case 3:
      return v / 3;
    case 4:
      return v < 0 ? -v : v * 2;
    case 5:
      return std::popcount(u);
    case 6:
      return std::countl_zero(u) + in[Size(n + i)];
    case 7: {
      unsigned reversed = 0;
      for (int bit = 0; bit < 32; ++bit) {
        reversed |= (u >> bit & 1) << (31 - bit);
      }
      return static_cast<int>(reversed);
    }
    case 8:
      return v * v - 5;
    case 9:
      return v % 11;
    default:
      return 0;
  }
}

}  // namespace

TrapCase Switched(std::mt19937_64& random) {
  TrapBuilder b("switched", random);
  const int n = b.Int(1, 200);
  const int operation = b.Int(-1, 11);
  const std::vector<int> in = b.Ints<int>(Size(2 * n), -9999, 9999);
  std::vector<int> out = b.Ints<int>(Size(n), -9, 9);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(operation);
  b.Param(n);
  b.LaunchFor(n, b.Threads(128));
  for (int i = 0; i < n; ++i) {
    out[Size(i)] = Apply(operation, in, i, n);
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase Calls(std::mt19937_64& random) {
  TrapBuilder b("calls", random);
  const size_t n = Size(b.Int(1, 200));
  const std::vector<float> in = b.Floats(n);
  std::vector<float> out = b.Floats(n);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(n));
  b.LaunchFor(static_cast<int>(n), b.Threads(96));
  for (size_t i = 0; i < n; ++i) {
    const float x = in[i];
    out[i] = x * x * 3.0f + x * 2.0f + 1.0f + x * 2.0f;
  }
  b.ExpectClose(out_at, out);
  return b.Done();
}

}  // namespace heddle::access
