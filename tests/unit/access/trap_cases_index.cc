// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels that find their data by rows, strides and indices.

#include <numeric>

#include "tests/unit/access/trap_builder.h"
#include "tests/unit/access/trap_makers.h"

namespace heddle::access {

TrapCase MaskedRows(std::mt19937_64& random) {
  TrapBuilder b("masked_rows", random);
  const size_t rows = Size(b.Int(1, 12));
  const size_t columns = Size(b.Int(1, 90));
  const std::vector<uint8_t> mask = b.Ints<uint8_t>(rows, 0, 1);
  const std::vector<float> in = b.Floats(rows * columns);
  std::vector<float> out = b.Floats(rows * columns);
  const uint64_t in_at = b.Buffer(in);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(in_at);
  b.Param(b.Buffer(mask));
  b.Param(static_cast<int>(columns));
  b.Launch({static_cast<int>(rows), 1, 1}, {b.Threads(128), 1, 1});
  for (size_t i = 0; i < rows * columns; ++i) {
    if (mask[i / columns] != 0) out[i] = in[i] + 1.0f;
  }
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase Copy2d(std::mt19937_64& random) {
  TrapBuilder b("copy_2d", random);
  const int width = b.Int(1, 50);
  const int height = b.Int(1, 20);
  const int in_pitch = width + b.Int(0, 20);
  const int out_pitch = width + b.Int(0, 20);
  const std::vector<uint8_t> in =
      b.Ints<uint8_t>(Size(in_pitch * height), 0, 255);
  std::vector<uint8_t> out = b.Ints<uint8_t>(Size(out_pitch * height), 0, 255);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  for (const int value : {out_pitch, in_pitch, width, height}) b.Param(value);
  const int x = b.Int(1, 32);
  const int y = b.Int(1, 8);
  b.Launch({(width + x - 1) / x, (height + y - 1) / y, 1}, {x, y, 1});
  for (int row = 0; row < height; ++row) {
    std::copy_n(in.begin() + row * in_pitch, width,
                out.begin() + row * out_pitch);
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase Gather(std::mt19937_64& random) {
  TrapBuilder b("gather", random);
  const size_t n = Size(b.Int(1, 10));
  const size_t rows = Size(b.Int(1, 30));
  const size_t columns = Size(b.Int(1, 70));
  const std::vector<float> table = b.Floats(rows * columns);
  const std::vector<int64_t> index =
      b.Ints<int64_t>(n, 0, static_cast<int>(rows) - 1);
  std::vector<float> out = b.Floats(n * columns);
  const uint64_t table_at = b.Buffer(table);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(table_at);
  b.Param(b.Buffer(index));
  b.Param(static_cast<int>(n));
  b.Param(static_cast<int>(columns));
  b.Launch({static_cast<int>(n) + b.Int(0, 2), 1, 1}, {b.Threads(96), 1, 1});
  for (size_t i = 0; i < n * columns; ++i) {
    out[i] = table[Size(index[i / columns]) * columns + i % columns];
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase Scatter(std::mt19937_64& random) {
  TrapBuilder b("scatter", random);
  const size_t room = Size(b.Int(1, 500));
  const size_t n = Size(b.Int(1, static_cast<int>(room)));
  std::vector<int> index(room);
  std::iota(index.begin(), index.end(), 0);
  std::shuffle(index.begin(), index.end(), b.random());
  index.resize(n);
  const std::vector<float> in = b.Floats(n);
  std::vector<float> table = b.Floats(room);
  const uint64_t table_at = b.Buffer(table);
  b.Param(table_at);
  b.Param(b.Buffer(in));
  b.Param(b.Buffer(index));
  b.Param(static_cast<int>(n));
  b.LaunchFor(static_cast<int>(n), b.Threads(128));
  for (size_t i = 0; i < n; ++i) table[Size(index[i])] = in[i];
  b.Expect(table_at, table);
  return b.Done();
}

TrapCase PointerArray(std::mt19937_64& random) {
  TrapBuilder b("pointer_array", random);
  const size_t n = Size(b.Int(1, 200));
  const int batch = b.Int(1, 5);
  std::vector<uint64_t> ins;
  std::vector<uint64_t> outs;
  for (int i = 0; i < batch; ++i) {
    std::vector<float> in = b.Floats(n);
    ins.push_back(b.Buffer(in));
    outs.push_back(b.Buffer(b.Floats(n)));
    for (float& value : in) value *= 2.0f;
    b.ExpectClose(outs.back(), in);
  }
  b.Param(b.Buffer(outs));
  b.Param(b.Buffer(ins));
  b.Param(static_cast<int>(n));
  const int threads = b.Threads(128);
  b.Launch({(static_cast<int>(n) + threads - 1) / threads, batch, 1},
           {threads, 1, 1});
  return b.Done();
}

namespace {

struct Strided {
  uint64_t in;
  uint64_t out;
  int64_t rows;
  int64_t columns;
  int64_t in_row;
  int64_t in_column;
  int64_t out_row;
  int64_t out_column;
};

}  // namespace

TrapCase StridedCopy(std::mt19937_64& random) {
  TrapBuilder b("strided", random);
  Strided s{};
  s.rows = b.Int(1, 14);
  s.columns = b.Int(1, 25);
  const int64_t count = s.rows * s.columns;
  // Rows first or columns first, each forwards or backwards.
  const auto strides = [&](int64_t* row, int64_t* column) {
    const bool rows_first = b.Coin();
    *row = rows_first ? s.columns : 1;
    *column = rows_first ? 1 : s.rows;
    int64_t begin = 0;
    if (b.Coin()) {
      begin += (s.rows - 1) * *row;
      *row = -*row;
    }
    if (b.Coin()) {
      begin += (s.columns - 1) * *column;
      *column = -*column;
    }
    return begin;
  };
  const int64_t in_begin = strides(&s.in_row, &s.in_column);
  const int64_t out_begin = strides(&s.out_row, &s.out_column);
  const std::vector<float> in = b.Floats(Size(count));
  std::vector<float> out = b.Floats(Size(count));
  const uint64_t out_at = b.Buffer(out);
  s.in = b.Buffer(in) + static_cast<uint64_t>(4 * in_begin);
  s.out = out_at + static_cast<uint64_t>(4 * out_begin);
  b.Param(s);
  b.LaunchFor(static_cast<int>(count), b.Threads(128));
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t c = 0; c < s.columns; ++c) {
      out[Size(out_begin + r * s.out_row + c * s.out_column)] =
          in[Size(in_begin + r * s.in_row + c * s.in_column)];
    }
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase AppendCache(std::mt19937_64& random) {
  TrapBuilder b("append_cache", random);
  const size_t heads = Size(b.Int(1, 6));
  const size_t columns = Size(b.Int(1, 80));
  const size_t capacity = Size(b.Int(1, 20));
  const std::vector<int64_t> position =
      b.Ints<int64_t>(1, 0, static_cast<int>(capacity) - 1);
  const std::vector<float> row = b.Floats(heads * columns);
  std::vector<float> cache = b.Floats(heads * capacity * columns);
  const uint64_t cache_at = b.Buffer(cache);
  b.Param(cache_at);
  b.Param(b.Buffer(row));
  b.Param(b.Buffer(position));
  b.Param(static_cast<int>(heads));
  b.Param(static_cast<int>(columns));
  b.Param(static_cast<int>(capacity));
  b.Launch({static_cast<int>(heads), 1, 1}, {b.Threads(96), 1, 1});
  for (size_t i = 0; i < heads * columns; ++i) {
    cache[(i / columns * capacity + Size(position[0])) * columns +
          i % columns] = row[i];
  }
  b.Expect(cache_at, cache);
  return b.Done();
}

TrapCase OnePast(std::mt19937_64& random) {
  TrapBuilder b("one_past", random);
  const size_t rows = Size(b.Int(1, 8));
  const size_t columns = Size(b.Int(1, 100));
  const std::vector<float> in = b.Floats(rows * columns + 1);
  std::vector<float> out = b.Floats(rows * columns);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int>(columns));
  b.Launch({static_cast<int>(rows), 1, 1}, {b.Threads(64), 1, 1});
  for (size_t i = 0; i < out.size(); ++i) out[i] = in[i + 1] - in[i];
  b.ExpectClose(out_at, out);
  return b.Done();
}

TrapCase Transpose(std::mt19937_64& random) {
  TrapBuilder b("transpose", random);
  const int width = b.Int(1, 50);
  const int height = b.Int(1, 50);
  const std::vector<float> in = b.Floats(Size(width * height));
  std::vector<float> out = b.Floats(in.size());
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(width);
  b.Param(height);
  b.Launch({(width + 15) / 16, (height + 15) / 16, 1}, {16, 4, 1});
  for (int i = 0; i < width * height; ++i) {
    out[Size(i % width * height + i / width)] = in[Size(i)];
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase Divided(std::mt19937_64& random) {
  TrapBuilder b("divided", random);
  const int columns = b.Int(1, 40);
  const int rows = b.Int(1, 20);
  const int planes = b.Int(1, 100);
  const int n = rows * columns;
  const std::vector<int> in = b.Ints<int>(Size(n), -999, 999);
  std::vector<int> out = b.Ints<int>(Size(n), -9, 9);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  for (const int value : {n, columns, planes}) b.Param(value);
  b.LaunchFor(n, b.Threads(128));
  for (int i = 0; i < n; ++i) {
    out[Size(i)] = in[Size(i % columns * rows + i / columns)] + i % planes;
  }
  b.Expect(out_at, out);
  return b.Done();
}

TrapCase LongIndex(std::mt19937_64& random) {
  TrapBuilder b("long_index", random);
  const size_t n = Size(b.Int(1, 300));
  const size_t stride = Size(b.Int(1, 7));
  const size_t offset = Size(b.Int(0, 50));
  const std::vector<uint16_t> in = b.Ints<uint16_t>(n, 0, 65535);
  std::vector<uint16_t> out =
      b.Ints<uint16_t>((n - 1) * stride + offset + 1, 0, 65535);
  const uint64_t out_at = b.Buffer(out);
  b.Param(out_at);
  b.Param(b.Buffer(in));
  b.Param(static_cast<int64_t>(n));
  b.Param(static_cast<int64_t>(stride));
  b.Param(static_cast<uint64_t>(offset));
  b.LaunchFor(static_cast<int>(n), b.Threads(128));
  for (size_t i = 0; i < n; ++i) out[i * stride + offset] = in[n - 1 - i];
  b.Expect(out_at, out);
  return b.Done();
}

}  // namespace heddle::access
