// SPDX-License-Identifier: Apache-2.0
//
// The decoder's device code: one plain kernel per operator, as an eager
// framework would launch them. They are deliberately not fused and know nothing
// of programmatic launches: the program exists to show what can be gained
// without changing kernels like these.
//
// Every reduction has a fixed order, so a run is repeatable bit for bit.
// Contracts of the kernels: kernel_types.h.

#include <type_traits>

#include "benchmarks/apps/decode/kernel_types.h"

using decode::AttentionShape;
using decode::BFloat16;
using decode::DecodeState;
using decode::kWarp;
using decode::RopeShape;

namespace {

constexpr unsigned kFullMask = 0xffffffffu;

__device__ float FromBf16(BFloat16 bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}

__device__ float WarpSum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kFullMask, value, offset);
  }
  return value;
}

// The sum over a block of whole warps, the same in every thread. `partial` has
// room for 32 floats; it may be used again after a __syncthreads.
__device__ float BlockSum(float value, float* partial) {
  value = WarpSum(value);
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  const int warps = blockDim.x / kWarp;
  return WarpSum(lane < warps ? partial[lane] : 0.0f);
}

// The better of two (value, index) candidates: larger value, then lower index.
__device__ bool Better(float value, int index, float than, int than_index) {
  return value > than || (value == than && index < than_index);
}

__device__ void BlockArgmax(float& value, int& index, float* values,
                            int* indices) {
  values[threadIdx.x] = value;
  indices[threadIdx.x] = index;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const int other = threadIdx.x + half;
      if (Better(values[other], indices[other], values[threadIdx.x],
                 indices[threadIdx.x])) {
        values[threadIdx.x] = values[other];
        indices[threadIdx.x] = indices[other];
      }
    }
    __syncthreads();
  }
  value = values[0];
  index = indices[0];
}

}  // namespace

extern "C" {

__global__ void decode_embed_f32(const float* table, const DecodeState* state,
                                 float* out, int hidden) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < hidden)
    out[i] = table[static_cast<int64_t>(state->token) * hidden + i];
}

__global__ void decode_embed_bf16(const BFloat16* table,
                                  const DecodeState* state, float* out,
                                  int hidden) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < hidden) {
    out[i] = FromBf16(table[static_cast<int64_t>(state->token) * hidden + i]);
  }
}

__global__ void decode_rmsnorm(const float* x, const float* weight, float* out,
                               int n, float epsilon) {
  __shared__ float partial[kWarp];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] * x[i];
  const float mean = BlockSum(sum, partial) / static_cast<float>(n);
  const float inverse = 1.0f / sqrtf(mean + epsilon);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = x[i] * inverse * weight[i];
  }
}

__global__ void decode_gemv_f32(const float* matrix, const float* x, float* out,
                                int rows, int cols) {
  const int warps = blockDim.x / kWarp;
  const int row = blockIdx.x * warps + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= rows) return;  // whole warps leave together
  const float4* row4 = reinterpret_cast<const float4*>(
      matrix + static_cast<int64_t>(row) * cols);
  const float4* x4 = reinterpret_cast<const float4*>(x);
  float sum = 0.0f;
  for (int i = lane; i < cols / 4; i += kWarp) {
    const float4 m = row4[i];
    const float4 v = x4[i];
    sum += m.x * v.x + m.y * v.y + m.z * v.z + m.w * v.w;
  }
  sum = WarpSum(sum);
  if (lane == 0) out[row] = sum;
}

__global__ void decode_gemv_bf16(const BFloat16* matrix, const float* x,
                                 float* out, int rows, int cols) {
  const int warps = blockDim.x / kWarp;
  const int row = blockIdx.x * warps + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= rows) return;
  const uint4* row8 =
      reinterpret_cast<const uint4*>(matrix + static_cast<int64_t>(row) * cols);
  const float4* x4 = reinterpret_cast<const float4*>(x);
  float sum = 0.0f;
  for (int i = lane; i < cols / 8; i += kWarp) {
    const uint4 m = row8[i];
    const float4 low = x4[2 * i];
    const float4 high = x4[2 * i + 1];
    // The lower half of a word is the earlier element.
    sum += __uint_as_float(m.x << 16) * low.x +
           __uint_as_float(m.x & 0xffff0000u) * low.y +
           __uint_as_float(m.y << 16) * low.z +
           __uint_as_float(m.y & 0xffff0000u) * low.w;
    sum += __uint_as_float(m.z << 16) * high.x +
           __uint_as_float(m.z & 0xffff0000u) * high.y +
           __uint_as_float(m.w << 16) * high.z +
           __uint_as_float(m.w & 0xffff0000u) * high.w;
  }
  sum = WarpSum(sum);
  if (lane == 0) out[row] = sum;
}

__global__ void decode_to_bf16(const float* x, BFloat16* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = decode::BFloat16FromBits(__float_as_uint(x[i]));
}

__global__ void decode_rope(float* x, const float* inverse_frequency,
                            const DecodeState* state, RopeShape shape) {
  const int half = shape.head_dim / 2;
  float* head = x + static_cast<int64_t>(blockIdx.x) * shape.head_dim;
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    const float angle =
        static_cast<float>(state->position) * inverse_frequency[i];
    const float c = cosf(angle);
    const float s = sinf(angle);
    const float first = head[i];
    const float second = head[i + half];
    head[i] = first * c - second * s;
    head[i + half] = second * c + first * s;
  }
}

__global__ void decode_kv_append(const float* key, const float* value,
                                 float* key_cache, float* value_cache,
                                 const DecodeState* state, int64_t layer_stride,
                                 int layer, int kv_heads, int head_dim,
                                 int max_seq) {
  const int head = blockIdx.x;
  if (head >= kv_heads) return;
  const int64_t to =
      layer * layer_stride +
      (static_cast<int64_t>(head) * max_seq + state->position) * head_dim;
  for (int i = threadIdx.x; i < head_dim; i += blockDim.x) {
    key_cache[to + i] = key[head * head_dim + i];
    value_cache[to + i] = value[head * head_dim + i];
  }
}

__global__ void decode_scores(const float* query, const float* keys,
                              const DecodeState* state, float* scores,
                              AttentionShape shape) {
  const int head = blockIdx.y;
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const int lane = threadIdx.x % kWarp;
  const int warps = blockDim.x / kWarp;
  const float* q = query + static_cast<int64_t>(head) * shape.head_dim;
  const float* k =
      keys + static_cast<int64_t>(kv_head) * shape.max_seq * shape.head_dim;
  const int begin = blockIdx.x * decode::kScoresPositions;
  const int end = min(begin + decode::kScoresPositions, state->position + 1);
  for (int p = begin + threadIdx.x / kWarp; p < end; p += warps) {
    float sum = 0.0f;
    for (int i = lane; i < shape.head_dim; i += kWarp) {
      sum += q[i] * k[static_cast<int64_t>(p) * shape.head_dim + i];
    }
    sum = WarpSum(sum);
    if (lane == 0) {
      scores[static_cast<int64_t>(head) * shape.max_seq + p] =
          sum * shape.scale;
    }
  }
}

__global__ void decode_softmax(float* scores, const DecodeState* state,
                               AttentionShape shape) {
  extern __shared__ float shared[];
  float* row = scores + static_cast<int64_t>(blockIdx.x) * shape.max_seq;
  const int count = state->position + 1;
  float largest = -INFINITY;
  for (int p = threadIdx.x; p < count; p += blockDim.x) {
    largest = fmaxf(largest, row[p]);
  }
  shared[threadIdx.x] = largest;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] =
          fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  largest = shared[0];
  __syncthreads();
  float sum = 0.0f;
  for (int p = threadIdx.x; p < count; p += blockDim.x) {
    const float e = expf(row[p] - largest);
    row[p] = e;
    sum += e;
  }
  const float total = BlockSum(sum, shared);
  for (int p = threadIdx.x; p < count; p += blockDim.x) row[p] /= total;
}

__global__ void decode_values(const float* scores, const float* values,
                              const DecodeState* state, float* out,
                              AttentionShape shape) {
  extern __shared__ float shared[];
  const int head = blockIdx.x;
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const int i = threadIdx.x;
  const float* weight = scores + static_cast<int64_t>(head) * shape.max_seq;
  const float* v =
      values + static_cast<int64_t>(kv_head) * shape.max_seq * shape.head_dim;
  const int count = state->position + 1;
  float sum = 0.0f;
  for (int p = threadIdx.y; p < count; p += blockDim.y) {
    sum += weight[p] * v[static_cast<int64_t>(p) * shape.head_dim + i];
  }
  shared[threadIdx.y * blockDim.x + i] = sum;
  __syncthreads();
  if (threadIdx.y != 0) return;
  for (int group = 1; group < blockDim.y; ++group) {
    sum += shared[group * blockDim.x + i];
  }
  out[head * shape.head_dim + i] = sum;
}

__global__ void decode_add(float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}

__global__ void decode_silu_mul(const float* gate, const float* up, float* out,
                                int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

__global__ void decode_argmax_blocks(const float* logits, int n,
                                     float* block_value, int32_t* block_index) {
  __shared__ float values[decode::kArgmaxThreads];
  __shared__ int indices[decode::kArgmaxThreads];
  const int begin = blockIdx.x * decode::kArgmaxItems;
  const int end = min(begin + decode::kArgmaxItems, n);
  // The first index of the block stands for "nothing larger", so that the
  // result is a valid token even if every logit is NaN.
  float value = -INFINITY;
  int index = begin;
  for (int i = begin + threadIdx.x; i < end; i += blockDim.x) {
    if (logits[i] > value) {
      value = logits[i];
      index = i;
    }
  }
  BlockArgmax(value, index, values, indices);
  if (threadIdx.x == 0) {
    block_value[blockIdx.x] = value;
    block_index[blockIdx.x] = index;
  }
}

__global__ void decode_argmax(const float* block_value,
                              const int32_t* block_index, int blocks,
                              int32_t* token) {
  __shared__ float values[decode::kArgmaxThreads];
  __shared__ int indices[decode::kArgmaxThreads];
  float value = -INFINITY;
  int index = 0;
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) {
    if (block_value[i] > value) {
      value = block_value[i];
      index = block_index[i];
    }
  }
  BlockArgmax(value, index, values, indices);
  if (threadIdx.x == 0) *token = index;
}

__global__ void decode_advance(DecodeState* state, const int32_t* prompt,
                               const int32_t* token, int32_t* history) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const int next = state->position + 1;
  if (next >= state->max_seq) return;
  const int32_t chosen = next < state->prompt_length ? prompt[next] : *token;
  history[next] = chosen;
  state->token = chosen;
  state->position = next;
}

}  // extern "C"

#define DECODE_CHECK_SIGNATURE(name, symbol)                        \
  static_assert(std::is_same_v<decltype(symbol), decode::name##Fn>, \
                #symbol " does not have the signature of kernel_types.h");
DECODE_KERNELS(DECODE_CHECK_SIGNATURE)
