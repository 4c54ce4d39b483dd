// SPDX-License-Identifier: Apache-2.0
// Kernels with known traps for an analysis of which bytes a launch touches.
// trap_cases.cc makes legal launches of each and says what they compute.

#include <cstdint>

namespace {

struct Strided {
  const float* in;
  float* out;
  int64_t rows;
  int64_t columns;
  int64_t in_row;  // elements; may be negative
  int64_t in_column;
  int64_t out_row;
  int64_t out_column;
};

__device__ __noinline__ float Polynomial(float x) {
  return x * x * 3.0f + x * 2.0f + 1.0f;
}

__device__ __noinline__ float LoadAt(const float* data, int at) {
  return data[at] * 2.0f;
}

}  // namespace

// Written, then read back by the same threads, in place.
extern "C" __global__ void write_then_read(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  data[i] = i * 3;
  __threadfence();
  volatile int* again = data;
  data[i] = again[i] + 1;
}

// Writes that may leave the bytes as they were.
extern "C" __global__ void equal_values(int* out, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

// Rows whose mask is 0 are not touched.
extern "C" __global__ void masked_rows(float* out, const float* in,
                                       const uint8_t* mask, int columns) {
  const int row = blockIdx.x;
  if (mask[row] == 0) return;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    out[row * columns + c] = in[row * columns + c] + 1.0f;
  }
}

extern "C" __global__ void grid_stride(float* out, const float* in, int n,
                                       float scale) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x) {
    out[i] = in[i] * scale;
  }
}

// A pitched copy of a rectangle.
extern "C" __global__ void copy_2d(uint8_t* out, const uint8_t* in,
                                   int out_pitch, int in_pitch, int width,
                                   int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * out_pitch + x] = in[y * in_pitch + x];
}

extern "C" __global__ void gather(float* out, const float* table,
                                  const int64_t* index, int n, int columns) {
  const int row = blockIdx.x;
  if (row >= n) return;
  const float* from = table + index[row] * columns;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    out[static_cast<int64_t>(row) * columns + c] = from[c];
  }
}

extern "C" __global__ void scatter(float* table, const float* in,
                                   const int* index, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) table[index[i]] = in[i];
}

// Batched by arrays of pointers.
extern "C" __global__ void pointer_array(float* const* outs,
                                         const float* const* ins, int n) {
  const float* in = ins[blockIdx.y];
  float* out = outs[blockIdx.y];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2.0f;
}

// Sizes and strides by value in a struct; strides may be negative.
extern "C" __global__ void strided(const Strided s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.rows * s.columns) return;
  const int64_t row = i / s.columns;
  const int64_t column = i - row * s.columns;
  s.out[row * s.out_row + column * s.out_column] =
      s.in[row * s.in_row + column * s.in_column];
}

// Split along k: the last block of a tile to arrive adds up all parts.
extern "C" __global__ void split_k(float* out, float* parts, unsigned* arrived,
                                   const float* a, const float* b, int n,
                                   int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int chunk = (k + gridDim.y - 1) / gridDim.y;
  const int begin = blockIdx.y * chunk;
  const int end = min(k, begin + chunk);
  float sum = 0.0f;
  if (i < n) {
    for (int at = begin; at < end; ++at) sum += a[at] * b[at * n + i];
    parts[blockIdx.y * n + i] = sum;
  }
  __threadfence();
  __syncthreads();
  __shared__ bool last;
  if (threadIdx.x == 0) {
    last = atomicAdd(&arrived[blockIdx.x], 1u) == gridDim.y - 1;
  }
  __syncthreads();
  if (!last) return;
  if (i < n) {
    float total = 0.0f;
    volatile const float* all = parts;
    for (unsigned p = 0; p < gridDim.y; ++p) total += all[p * n + i];
    out[i] = total;
  }
  if (threadIdx.x == 0) arrived[blockIdx.x] = 0;
}

// Appends a row to a cache in place, at a position that memory holds.
extern "C" __global__ void append_cache(float* cache, const float* row,
                                        const int64_t* position, int heads,
                                        int columns, int capacity) {
  const int head = blockIdx.x;
  const int64_t at = *position;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    cache[(static_cast<int64_t>(head) * capacity + at) * columns + c] =
        row[head * columns + c];
  }
}

extern "C" __global__ void histogram(int* bins, float* sums,
                                     const unsigned* values, int n,
                                     unsigned count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned bin = values[i] % count;
  atomicAdd(&bins[bin], 1);
  atomicAdd(&sums[bin], 0.5f);
  atomicMax(&bins[count], static_cast<int>(bin));
  atomicOr(&bins[count + 1], 1 << (bin & 31));
  atomicCAS(&bins[count + 2], 0, 7);
}

// Whether an address is one of shared or global memory is known at run time
// only.
extern "C" __global__ void generic(float* out, const float* in, int flag,
                                   int n) {
  __shared__ float tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = static_cast<float>(i);
  __syncthreads();
  const float* from = (flag >> (threadIdx.x & 7)) & 1 ? tile : in;
  if (i < n) out[i] = from[threadIdx.x ^ 1];
}

// Writes through a pointer that memory holds.
extern "C" __global__ void through_pointer(float** where, const float* in,
                                           int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) (*where)[i] = in[i] + 2.0f;
}

// Reads four at a time, past n, in what the allocation has as padding; writes
// only n.
extern "C" __global__ void padded_read(float* out, const float4* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4 >= n) return;
  const float4 v = in[i];
  const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (i * 4 + k < n) out[i * 4 + k] = values[k] * 0.5f;
  }
}

// A difference of neighbours: one element past each row is read.
extern "C" __global__ void one_past(float* out, const float* in, int columns) {
  const int row = blockIdx.x;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    out[row * columns + c] = in[row * columns + c + 1] - in[row * columns + c];
  }
}

extern "C" __global__ void transpose(float* out, const float* in, int width,
                                     int height) {
  __shared__ float tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x;
  int y = blockIdx.y * 16 + threadIdx.y;
  for (int k = 0; k < 16; k += 4) {
    if (x < width && y + k < height) {
      tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
    }
  }
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  for (int k = 0; k < 16; k += 4) {
    if (x < height && y + k < width) {
      out[(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
    }
  }
}

// Indices by division with run-time divisors, signed and unsigned.
extern "C" __global__ void divided(int* out, const int* in, int n, int columns,
                                   unsigned planes) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int row = i / columns;
  const int column = i % columns;
  const unsigned plane = static_cast<unsigned>(i) % planes;
  out[i] = in[column * (n / columns) + row] + static_cast<int>(plane);
}

extern "C" __global__ void long_index(uint16_t* out, const uint16_t* in,
                                      int64_t n, int64_t stride,
                                      uint64_t offset) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i * stride + offset] = in[n - 1 - i];
}

// A pointer that walks.
extern "C" __global__ void walking_pointer(float* out, const float* in,
                                           int steps, int stride) {
  const float* at = in + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < steps; ++k, at += stride) sum += *at;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Blocks beyond `active` do nothing.
extern "C" __global__ void early_exit(int* out, const int* in, int active) {
  if (static_cast<int>(blockIdx.x) >= active) return;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int shared[128];
  shared[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = shared[blockDim.x - 1 - threadIdx.x];
}

namespace {

template <typename T, int kVector>
struct alignas(sizeof(T) * kVector) Vector {
  T value[kVector];
};

// Elementwise, vectorized, with a tail: how tensor libraries do it.
template <typename T, int kVector, typename Function>
__device__ void Elementwise(T* out, const T* in, int n, Function function) {
  constexpr int kPerThread = 4;
  const int begin = blockIdx.x * blockDim.x * kPerThread;
  const int rest = n - begin;
  if (rest >= static_cast<int>(blockDim.x) * kPerThread) {
    using V = Vector<T, kVector>;
    const V* from = reinterpret_cast<const V*>(in + begin);
    V* to = reinterpret_cast<V*>(out + begin);
#pragma unroll
    for (int k = 0; k < kPerThread / kVector; ++k) {
      V v = from[k * blockDim.x + threadIdx.x];
#pragma unroll
      for (int e = 0; e < kVector; ++e) v.value[e] = function(v.value[e]);
      to[k * blockDim.x + threadIdx.x] = v;
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const int i = k * blockDim.x + threadIdx.x;
    if (i < rest) out[begin + i] = function(in[begin + i]);
  }
}

}  // namespace

extern "C" __global__ void elementwise_4(float* out, const float* in, int n) {
  Elementwise<float, 4>(out, in, n, [](float x) { return x * x + 1.0f; });
}

extern "C" __global__ void elementwise_2(int16_t* out, const int16_t* in,
                                         int n) {
  Elementwise<int16_t, 2>(
      out, in, n, [](int16_t x) { return static_cast<int16_t>(x * 3 - 1); });
}

// A warp for each row.
extern "C" __global__ void softmax(float* out, const float* in, int rows,
                                   int columns) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* from = in + static_cast<int64_t>(row) * columns;
  float* to = out + static_cast<int64_t>(row) * columns;
  float most = -1e30f;
  for (int c = lane; c < columns; c += 32) most = fmaxf(most, from[c]);
  for (int d = 16; d > 0; d /= 2) {
    most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  }
  float sum = 0.0f;
  for (int c = lane; c < columns; c += 32) sum += __expf(from[c] - most);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int c = lane; c < columns; c += 32) {
    to[c] = __expf(from[c] - most) / sum;
  }
}

extern "C" __global__ void rms_norm(float* data, const float* weight,
                                    int columns, float epsilon) {
  float* row = data + static_cast<int64_t>(blockIdx.x) * columns;
  __shared__ float sums[32];
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    sum += row[c] * row[c];
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += sums[w];
  const float scale = rsqrtf(sum / columns + epsilon);
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    row[c] = row[c] * scale * weight[c];
  }
}

// c = a * b, row-major, sizes multiples of 16; tiles come by cp.async.
extern "C" __global__ void matmul(float* c, const float* a, const float* b,
                                  int m, int n, int k) {
  __shared__ __align__(16) float tile_a[2][16][16];
  __shared__ __align__(16) float tile_b[2][16][16];
  const int x = threadIdx.x % 16;
  const int y = threadIdx.x / 16;
  const int row = blockIdx.y * 16;
  const int column = blockIdx.x * 16;
  const auto fetch = [&](int stage, int at) {
    // 64 threads copy 16 bytes each of either tile.
    if (threadIdx.x >= 128) return;
    const int half = threadIdx.x % 64;
    const int r = half / 4;
    const int q = half % 4 * 4;
    const bool first = threadIdx.x < 64;
    const float* from =
        first ? a + (row + r) * k + at + q : b + (at + r) * n + column + q;
    const float* to = first ? &tile_a[stage][r][q] : &tile_b[stage][r][q];
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(from));
  };
  fetch(0, 0);
  asm volatile("cp.async.commit_group;");
  float sum = 0.0f;
  int stage = 0;
  for (int at = 0; at < k; at += 16, stage ^= 1) {
    if (at + 16 < k) fetch(stage ^ 1, at + 16);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i)
      sum += tile_a[stage][y][i] * tile_b[stage][i][x];
    __syncthreads();
  }
  c[(row + y) * n + column + x] = sum;
}

// Many cases by a parameter: an indirect branch.
extern "C" __global__ void switched(int* out, const int* in, int operation,
                                    int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i];
  switch (operation) {
    case 0:
      v = v * 7 + 1;
      break;
    case 1:
      v = in[n - 1 - i] - v;
      break;
    case 2:
      v ^= v >> 3;
      break;
    case 3:
      v = v / 3;
      break;
    case 4:
      v = v < 0 ? -v : v * 2;
      break;
    case 5:
      v = __popc(v);
      break;
    case 6:
      v = __clz(v) + in[n + i];
      break;
    case 7:
      v = __brev(v);
      break;
    case 8:
      v = v * v - 5;
      break;
    case 9:
      v = v % 11;
      break;
    default:
      v = 0;
      break;
  }
  out[i] = v;
}

extern "C" __global__ void calls(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Polynomial(in[i]) + LoadAt(in, i);
}

namespace {
__device__ int counter_of_module = 5;
__constant__ int table_of_module[8] = {3, 1, 4, 1, 5, 9, 2, 6};
}  // namespace

// Variables of the module.
extern "C" __global__ void module_variables(int* out) {
  out[threadIdx.x] = table_of_module[threadIdx.x & 7] + counter_of_module;
  if (threadIdx.x == 0) atomicAdd(&counter_of_module, 2);
}

// Local arrays with run-time indices, in memory of the thread.
extern "C" __global__ void local_array(int* out, const int* in, int n) {
  int kept[32];
  for (int k = 0; k < 32; ++k) kept[k] = in[k] + k;
  int sum = 0;
  for (int k = 0; k < n; ++k) sum += kept[in[k + 32] & 31] * k;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum + kept[threadIdx.x & 31];
}
