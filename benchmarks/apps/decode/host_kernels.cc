// SPDX-License-Identifier: Apache-2.0
//
// The kernels of kernels.cu as host functions, for the host device: one call
// does the work of one block. They follow the device code in what a block
// reads and writes, and in the split of sums over lanes, but not bit for bit
// (the device contracts products and sums).

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "benchmarks/apps/decode/kernel_types.h"
#include "tests/hostdevice/host_kernel.h"

namespace decode {
namespace {

// Calls `body` with the kernel's parameters, typed by its signature.
template <typename... P, typename Body, size_t... I>
void CallUnpacked(void (*)(P...), void* const* params,
                  std::index_sequence<I...>, const Body& body) {
  body(*static_cast<const std::decay_t<P>*>(params[I])...);
}

template <typename... P>
constexpr size_t CountParameters(void (*)(P...)) {
  return sizeof...(P);
}

template <typename Signature, typename Body>
void Call(void* const* params, const Body& body) {
  constexpr Signature* kNone = nullptr;
  CallUnpacked(kNone, params,
               std::make_index_sequence<CountParameters(kNone)>(), body);
}

float FromBf16(BFloat16 bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// The items [begin, end) of an elementwise kernel that fall to this block.
std::pair<int, int> Items(const HeddleHostBlock& block, int n) {
  const int64_t threads = block.block[0];
  const int64_t begin = block.block_index[0] * threads;
  return {static_cast<int>(std::min<int64_t>(begin, n)),
          static_cast<int>(std::min<int64_t>(begin + threads, n))};
}

// As WarpSum: pairs at distance 16, 8, 4, 2, 1.
float SumLanes(float* lanes) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    for (int lane = 0; lane < offset; ++lane) {
      lanes[lane] += lanes[lane + offset];
    }
  }
  return lanes[0];
}

template <typename Element, typename Load>
void Gemv(const HeddleHostBlock& block, const Element* matrix, const float* x,
          float* out, int rows, int cols, const Load& load) {
  const auto warps = static_cast<int>(block.block[0]) / kWarp;
  const int first = static_cast<int>(block.block_index[0]) * warps;
  for (int row = first; row < std::min(first + warps, rows); ++row) {
    const Element* weights = matrix + static_cast<int64_t>(row) * cols;
    float lanes[kWarp] = {};
    int i = 0;
    for (; i + kWarp <= cols; i += kWarp) {
      for (int lane = 0; lane < kWarp; ++lane) {
        lanes[lane] += load(weights[i + lane]) * x[i + lane];
      }
    }
    for (; i < cols; ++i) lanes[i % kWarp] += load(weights[i]) * x[i];
    out[row] = SumLanes(lanes);
  }
}

template <typename Element, typename Load>
void Embed(const HeddleHostBlock& block, const Element* table,
           const DecodeState* state, float* out, int hidden, const Load& load) {
  const auto [begin, end] = Items(block, hidden);
  for (int i = begin; i < end; ++i) {
    out[i] = load(table[static_cast<int64_t>(state->token) * hidden + i]);
  }
}

float Same(float x) { return x; }

}  // namespace

HEDDLE_HOST_KERNEL(decode_embed_f32) {
  Call<EmbedF32Fn>(params, [&](const float* table, const DecodeState* state,
                               float* out, int hidden) {
    Embed(*block, table, state, out, hidden, Same);
  });
}

HEDDLE_HOST_KERNEL(decode_embed_bf16) {
  Call<EmbedBf16Fn>(params, [&](const BFloat16* table, const DecodeState* state,
                                float* out, int hidden) {
    Embed(*block, table, state, out, hidden, FromBf16);
  });
}

HEDDLE_HOST_KERNEL(decode_rmsnorm) {
  if (block->block_index[0] != 0) return;
  Call<RmsNormFn>(params, [](const float* x, const float* weight, float* out,
                             int n, float epsilon) {
    float lanes[kWarp] = {};
    for (int i = 0; i < n; ++i) lanes[i % kWarp] += x[i] * x[i];
    const float mean = SumLanes(lanes) / static_cast<float>(n);
    const float inverse = 1.0f / std::sqrt(mean + epsilon);
    for (int i = 0; i < n; ++i) out[i] = x[i] * inverse * weight[i];
  });
}

HEDDLE_HOST_KERNEL(decode_gemv_f32) {
  Call<GemvF32Fn>(params, [&](const float* matrix, const float* x, float* out,
                              int rows, int cols) {
    Gemv(*block, matrix, x, out, rows, cols, Same);
  });
}

HEDDLE_HOST_KERNEL(decode_gemv_bf16) {
  Call<GemvBf16Fn>(params, [&](const BFloat16* matrix, const float* x,
                               float* out, int rows, int cols) {
    Gemv(*block, matrix, x, out, rows, cols, FromBf16);
  });
}

HEDDLE_HOST_KERNEL(decode_to_bf16) {
  Call<ToBf16Fn>(params, [&](const float* x, BFloat16* out, int n) {
    const auto [begin, end] = Items(*block, n);
    for (int i = begin; i < end; ++i) {
      out[i] = BFloat16FromBits(std::bit_cast<uint32_t>(x[i]));
    }
  });
}

HEDDLE_HOST_KERNEL(decode_rope) {
  Call<RopeFn>(params, [&](float* x, const float* inverse_frequency,
                           const DecodeState* state, RopeShape shape) {
    const int half = shape.head_dim / 2;
    float* head =
        x + static_cast<int64_t>(block->block_index[0]) * shape.head_dim;
    for (int i = 0; i < half; ++i) {
      const float angle =
          static_cast<float>(state->position) * inverse_frequency[i];
      const float c = std::cos(angle);
      const float s = std::sin(angle);
      const float first = head[i];
      const float second = head[i + half];
      head[i] = first * c - second * s;
      head[i + half] = second * c + first * s;
    }
  });
}

HEDDLE_HOST_KERNEL(decode_kv_append) {
  Call<KvAppendFn>(
      params,
      [&](const float* key, const float* value, float* key_cache,
          float* value_cache, const DecodeState* state, int64_t layer_stride,
          int layer, int kv_heads, int head_dim, int max_seq) {
        const auto head = static_cast<int>(block->block_index[0]);
        if (head >= kv_heads) return;
        const int64_t from = static_cast<int64_t>(head) * head_dim;
        const int64_t to =
            layer * layer_stride +
            (static_cast<int64_t>(head) * max_seq + state->position) * head_dim;
        for (int i = 0; i < head_dim; ++i) {
          key_cache[to + i] = key[from + i];
          value_cache[to + i] = value[from + i];
        }
      });
}

HEDDLE_HOST_KERNEL(decode_scores) {
  Call<ScoresFn>(params, [&](const float* query, const float* keys,
                             const DecodeState* state, float* scores,
                             AttentionShape shape) {
    const auto head = static_cast<int64_t>(block->block_index[1]);
    const int64_t kv_head = head / (shape.heads / shape.kv_heads);
    const float* q = query + head * shape.head_dim;
    const float* k = keys + kv_head * shape.max_seq * shape.head_dim;
    const int begin =
        static_cast<int>(block->block_index[0]) * kScoresPositions;
    const int end = std::min(begin + kScoresPositions, state->position + 1);
    for (int p = begin; p < end; ++p) {
      float lanes[kWarp] = {};
      for (int i = 0; i < shape.head_dim; ++i) {
        lanes[i % kWarp] +=
            q[i] * k[static_cast<int64_t>(p) * shape.head_dim + i];
      }
      scores[head * shape.max_seq + p] = SumLanes(lanes) * shape.scale;
    }
  });
}

HEDDLE_HOST_KERNEL(decode_softmax) {
  Call<SoftmaxFn>(params, [&](float* scores, const DecodeState* state,
                              AttentionShape shape) {
    float* row =
        scores + static_cast<int64_t>(block->block_index[0]) * shape.max_seq;
    // A thread's share of the sum, in the block's dynamic shared memory.
    auto* shared = static_cast<float*>(block->shared);
    const auto threads = static_cast<int>(block->block[0]);
    const int count = state->position + 1;
    const float largest = *std::max_element(row, row + count);
    std::fill_n(shared, threads, 0.0f);
    for (int p = 0; p < count; ++p) {
      row[p] = std::exp(row[p] - largest);
      shared[p % threads] += row[p];
    }
    float lanes[kWarp] = {};
    for (int i = 0; i < threads; ++i) lanes[i % kWarp] += shared[i];
    const float total = SumLanes(lanes);
    for (int p = 0; p < count; ++p) row[p] /= total;
  });
}

HEDDLE_HOST_KERNEL(decode_values) {
  Call<ValuesFn>(params, [&](const float* scores, const float* values,
                             const DecodeState* state, float* out,
                             AttentionShape shape) {
    const auto head = static_cast<int64_t>(block->block_index[0]);
    const int64_t kv_head = head / (shape.heads / shape.kv_heads);
    const float* weight = scores + head * shape.max_seq;
    const float* v = values + kv_head * shape.max_seq * shape.head_dim;
    const auto width = static_cast<int>(block->block[0]);
    const auto groups = static_cast<int>(block->block[1]);
    auto* shared = static_cast<float*>(block->shared);  // groups x width
    std::fill_n(shared, static_cast<size_t>(groups) * width, 0.0f);
    for (int p = 0; p <= state->position; ++p) {
      float* sums = shared + static_cast<size_t>(p % groups) * width;
      for (int i = 0; i < width; ++i) {
        sums[i] += weight[p] * v[static_cast<int64_t>(p) * shape.head_dim + i];
      }
    }
    for (int i = 0; i < width; ++i) {
      float sum = shared[i];
      for (int group = 1; group < groups; ++group) {
        sum += shared[static_cast<size_t>(group) * width + i];
      }
      out[head * shape.head_dim + i] = sum;
    }
  });
}

HEDDLE_HOST_KERNEL(decode_add) {
  Call<AddFn>(params, [&](float* x, const float* y, int n) {
    const auto [begin, end] = Items(*block, n);
    for (int i = begin; i < end; ++i) x[i] += y[i];
  });
}

HEDDLE_HOST_KERNEL(decode_silu_mul) {
  Call<SiluMulFn>(params,
                  [&](const float* gate, const float* up, float* out, int n) {
                    const auto [begin, end] = Items(*block, n);
                    for (int i = begin; i < end; ++i) {
                      out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
                    }
                  });
}

HEDDLE_HOST_KERNEL(decode_argmax_blocks) {
  Call<ArgmaxBlocksFn>(params, [&](const float* logits, int n,
                                   float* block_value, int32_t* block_index) {
    const auto index = block->block_index[0];
    const int begin = static_cast<int>(index) * kArgmaxItems;
    const int end = std::min(begin + kArgmaxItems, n);
    float best = -std::numeric_limits<float>::infinity();
    int best_index = begin;
    for (int i = begin; i < end; ++i) {
      if (logits[i] > best) {
        best = logits[i];
        best_index = i;
      }
    }
    block_value[index] = best;
    block_index[index] = best_index;
  });
}

HEDDLE_HOST_KERNEL(decode_argmax) {
  if (block->block_index[0] != 0) return;
  Call<ArgmaxFn>(params,
                 [](const float* block_value, const int32_t* block_index,
                    int blocks, int32_t* token) {
                   float best = -std::numeric_limits<float>::infinity();
                   int32_t best_index = 0;
                   for (int i = 0; i < blocks; ++i) {
                     if (block_value[i] > best) {
                       best = block_value[i];
                       best_index = block_index[i];
                     }
                   }
                   *token = best_index;
                 });
}

HEDDLE_HOST_KERNEL(decode_advance) {
  if (block->block_index[0] != 0) return;
  Call<AdvanceFn>(params, [](DecodeState* state, const int32_t* prompt,
                             const int32_t* token, int32_t* history) {
    const int next = state->position + 1;
    if (next >= state->max_seq) return;
    const int32_t chosen = next < state->prompt_length ? prompt[next] : *token;
    history[next] = chosen;
    state->token = chosen;
    state->position = next;
  });
}

}  // namespace decode
