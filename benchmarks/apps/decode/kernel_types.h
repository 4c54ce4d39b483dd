// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_KERNEL_TYPES_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_KERNEL_TYPES_H_

// What the device code, the host kernels and the launching code agree on: the
// structs that cross the boundary, and the signature of every kernel.
//
// The signatures are the one source of truth. kernels.cu asserts that its
// kernels have them, host kernels unpack their parameters by them, and a launch
// type-checks its arguments against them, so a parameter of the wrong width
// does not compile anywhere.
//
// All arrays are dense and row-major; floats are fp32. Pointers are device
// pointers.

#include <cstdint>

namespace decode {

// The bits of a bfloat16: the upper half of an IEEE single.
using BFloat16 = uint16_t;

#if defined(__CUDACC__)
#define DECODE_HOST_DEVICE __host__ __device__
#else
#define DECODE_HOST_DEVICE
#endif

// Rounds to nearest, ties to even. NaN stays NaN.
DECODE_HOST_DEVICE constexpr BFloat16 BFloat16FromBits(uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<BFloat16>((bits >> 16) | 0x40u);
  }
  return static_cast<BFloat16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Where the sequence is. One object, in device memory: kernels read it and
// decode_advance moves it on, so a replayed graph continues by itself.
struct DecodeState {
  int32_t token;          // input of the current step
  int32_t position;       // its place in the sequence, from 0
  int32_t prompt_length;  // positions below this take the prompt's tokens
  int32_t max_seq;        // capacity; the last position is never left
};

struct RopeShape {
  int32_t heads;
  int32_t head_dim;
};

struct AttentionShape {
  int32_t heads;
  int32_t kv_heads;  // divides heads
  int32_t head_dim;
  int32_t max_seq;
  float scale;  // 1 / sqrt(head_dim)
};

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 256;         // elementwise kernels and rmsnorm
inline constexpr int kGemvThreads = 128;     // one warp a row
inline constexpr int kScoresThreads = 128;   // one warp a position at a time
inline constexpr int kScoresPositions = 32;  // positions a block
inline constexpr int kSoftmaxThreads = 128;
inline constexpr int kValuesThreads = 256;  // head_dim * position groups
inline constexpr int kArgmaxThreads = 256;
inline constexpr int kArgmaxItems = 1024;  // logits a block

// out[hidden] = table[state.token]. Grid: hidden in blocks of blockDim.x.
using EmbedF32Fn = void(const float* table, const DecodeState* state,
                        float* out, int hidden);
using EmbedBf16Fn = void(const BFloat16* table, const DecodeState* state,
                         float* out, int hidden);
// out = x / sqrt(mean(x^2) + epsilon) * weight. One block, static shared.
using RmsNormFn = void(const float* x, const float* weight, float* out, int n,
                       float epsilon);
// out[rows] = matrix[rows][cols] * x[cols]; cols a multiple of 8. A warp a row.
using GemvF32Fn = void(const float* matrix, const float* x, float* out,
                       int rows, int cols);
using GemvBf16Fn = void(const BFloat16* matrix, const float* x, float* out,
                        int rows, int cols);
// out = bfloat16(x), for matrix products in a library.
using ToBf16Fn = void(const float* x, BFloat16* out, int n);
// Rotates the pairs (x[h][i], x[h][i + head_dim/2]) in place by the angle
// position * inverse_frequency[i]. A block a head, head_dim/2 threads.
using RopeFn = void(float* x, const float* inverse_frequency,
                    const DecodeState* state, RopeShape shape);
// cache[layer][h][position] = the new key and value. A block a kv head.
using KvAppendFn = void(const float* key, const float* value, float* key_cache,
                        float* value_cache, const DecodeState* state,
                        int64_t layer_stride, int layer, int kv_heads,
                        int head_dim, int max_seq);
// scores[h][p] = scale * q[h] . keys[h / group][p] for p <= position.
// Grid: (max_seq in blocks of kScoresPositions, heads). Later positions are
// left as they are.
using ScoresFn = void(const float* query, const float* keys,
                      const DecodeState* state, float* scores,
                      AttentionShape shape);
// Softmax of scores[h][0..position] in place. A block a head; blockDim.x floats
// of dynamic shared memory.
using SoftmaxFn = void(float* scores, const DecodeState* state,
                       AttentionShape shape);
// out[h] = sum over p <= position of scores[h][p] * values[h / group][p]. A
// block a head, (head_dim, groups) threads, as many floats of dynamic shared.
using ValuesFn = void(const float* scores, const float* values,
                      const DecodeState* state, float* out,
                      AttentionShape shape);
// x += y.
using AddFn = void(float* x, const float* y, int n);
// out = gate * sigmoid(gate) * up.
using SiluMulFn = void(const float* gate, const float* up, float* out, int n);
// The largest logit of every kArgmaxItems and its index; the lowest one wins.
using ArgmaxBlocksFn = void(const float* logits, int n, float* block_value,
                            int32_t* block_index);
// One block: the best of the blocks' results.
using ArgmaxFn = void(const float* block_value, const int32_t* block_index,
                      int blocks, int32_t* token);
// One thread: history[position + 1] = the prompt's token or else *token, and
// the state moves there. Does nothing once the sequence is full.
using AdvanceFn = void(DecodeState* state, const int32_t* prompt,
                       const int32_t* token, int32_t* history);

// X(name in C++, name in the device image)
#define DECODE_KERNELS(X)               \
  X(EmbedF32, decode_embed_f32)         \
  X(EmbedBf16, decode_embed_bf16)       \
  X(RmsNorm, decode_rmsnorm)            \
  X(GemvF32, decode_gemv_f32)           \
  X(GemvBf16, decode_gemv_bf16)         \
  X(ToBf16, decode_to_bf16)             \
  X(Rope, decode_rope)                  \
  X(KvAppend, decode_kv_append)         \
  X(Scores, decode_scores)              \
  X(Softmax, decode_softmax)            \
  X(Values, decode_values)              \
  X(Add, decode_add)                    \
  X(SiluMul, decode_silu_mul)           \
  X(ArgmaxBlocks, decode_argmax_blocks) \
  X(Argmax, decode_argmax)              \
  X(Advance, decode_advance)

enum class Kernel : uint8_t {
#define DECODE_KERNEL_ENUM(name, symbol) k##name,
  DECODE_KERNELS(DECODE_KERNEL_ENUM)
#undef DECODE_KERNEL_ENUM
};

// A kernel with its signature, for launches: kernels::kRmsNorm.
template <typename Signature>
struct TypedKernel {
  Kernel id;
};

namespace kernels {
#define DECODE_KERNEL_CONSTANT(name, symbol) \
  inline constexpr TypedKernel<name##Fn> k##name{Kernel::k##name};
DECODE_KERNELS(DECODE_KERNEL_CONSTANT)
#undef DECODE_KERNEL_CONSTANT
}  // namespace kernels

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_KERNEL_TYPES_H_
