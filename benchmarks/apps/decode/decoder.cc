// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/decoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/common/status_macros.h"

namespace decode {
namespace {

uint32_t Blocks(int items, int items_a_block) {
  return static_cast<uint32_t>((items + items_a_block - 1) / items_a_block);
}

LaunchShape Elementwise(int n) {
  return {.grid_x = Blocks(n, kThreads), .block_x = kThreads};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Decoder>> Decoder::Create(
    const ModelConfig& config, const ModelWeights& weights, DataType type,
    apps::Gpu* gpu, Launcher* launcher, Cublas* cublas) {
  APPS_RETURN_IF_ERROR(config.Validate());
  std::unique_ptr<Decoder> decoder(
      new Decoder(config, type, gpu, launcher, cublas));
  APPS_RETURN_IF_ERROR(decoder->UploadWeights(weights));
  APPS_RETURN_IF_ERROR(decoder->AllocateBuffers());
  return decoder;
}

template <typename T>
absl::Status Decoder::AllocateArray(size_t count, const char* what, T** out) {
  absl::StatusOr<void*> memory = gpu_->Allocate(count * sizeof(T), what);
  if (!memory.ok()) return memory.status();
  *out = static_cast<T*>(*memory);
  return absl::OkStatus();
}

absl::Status Decoder::UploadVector(const Tensor& tensor, const float** out) {
  float* memory = nullptr;
  APPS_RETURN_IF_ERROR(
      AllocateArray(tensor.data.size(), "a norm's weights", &memory));
  *out = memory;
  return gpu_->CopyToDevice(memory, tensor.data.data(),
                            tensor.data.size() * sizeof(float));
}

absl::Status Decoder::UploadMatrix(const Tensor& tensor, Matrix* out) {
  out->rows = tensor.rows;
  out->cols = tensor.cols;
  const size_t count = tensor.data.size();
  if (type_ == DataType::kF32) {
    float* memory = nullptr;
    APPS_RETURN_IF_ERROR(AllocateArray(count, "a weight matrix", &memory));
    out->data = memory;
    return gpu_->CopyToDevice(memory, tensor.data.data(),
                              count * sizeof(float));
  }
  BFloat16* memory = nullptr;
  APPS_RETURN_IF_ERROR(AllocateArray(count, "a weight matrix", &memory));
  out->data = memory;
  std::vector<BFloat16> packed(count);
  for (size_t i = 0; i < count; ++i) {
    packed[i] = BFloat16FromBits(std::bit_cast<uint32_t>(tensor.data[i]));
  }
  return gpu_->CopyToDevice(memory, packed.data(), count * sizeof(BFloat16));
}

absl::Status Decoder::UploadWeights(const ModelWeights& weights) {
  APPS_RETURN_IF_ERROR(UploadMatrix(weights.embedding, &embedding_));
  for (const LayerWeights& from : weights.layers) {
    Layer& to = layers_.emplace_back();
    APPS_RETURN_IF_ERROR(UploadVector(from.attention_norm, &to.attention_norm));
    APPS_RETURN_IF_ERROR(UploadMatrix(from.query, &to.query));
    APPS_RETURN_IF_ERROR(UploadMatrix(from.key, &to.key));
    APPS_RETURN_IF_ERROR(UploadMatrix(from.value, &to.value));
    APPS_RETURN_IF_ERROR(UploadMatrix(from.output, &to.output));
    APPS_RETURN_IF_ERROR(UploadVector(from.mlp_norm, &to.mlp_norm));
    APPS_RETURN_IF_ERROR(UploadMatrix(from.gate, &to.gate));
    APPS_RETURN_IF_ERROR(UploadMatrix(from.up, &to.up));
    APPS_RETURN_IF_ERROR(UploadMatrix(from.down, &to.down));
  }
  APPS_RETURN_IF_ERROR(UploadVector(weights.final_norm, &final_norm_));
  if (config_.tied_embeddings) {
    output_ = embedding_;
  } else {
    APPS_RETURN_IF_ERROR(UploadMatrix(weights.output, &output_));
  }
  Tensor frequencies;
  frequencies.data = RopeInverseFrequencies(config_);
  return UploadVector(frequencies, &inverse_frequency_);
}

absl::Status Decoder::AllocateBuffers() {
  const size_t hidden = config_.hidden;
  const size_t max_seq = config_.max_seq;
  const size_t kv_size = config_.kv_size();
  const size_t intermediate = config_.intermediate;
  const size_t cache = config_.layers * kv_size * max_seq;
  const size_t argmax_blocks = Blocks(config_.vocab, kArgmaxItems);
  APPS_RETURN_IF_ERROR(AllocateArray(1, "the state", &state_));
  APPS_RETURN_IF_ERROR(AllocateArray(max_seq, "the prompt", &prompt_));
  APPS_RETURN_IF_ERROR(AllocateArray(max_seq, "the tokens", &history_));
  APPS_RETURN_IF_ERROR(AllocateArray(1, "the chosen token", &token_));
  APPS_RETURN_IF_ERROR(AllocateArray(hidden, "the residual", &hidden_));
  APPS_RETURN_IF_ERROR(AllocateArray(hidden, "a norm", &normed_));
  APPS_RETURN_IF_ERROR(AllocateArray(hidden, "a projection", &projected_));
  APPS_RETURN_IF_ERROR(
      AllocateArray(config_.query_size(), "the query", &query_));
  APPS_RETURN_IF_ERROR(AllocateArray(kv_size, "the key", &key_));
  APPS_RETURN_IF_ERROR(AllocateArray(kv_size, "the value", &value_));
  APPS_RETURN_IF_ERROR(
      AllocateArray(config_.heads * max_seq, "the scores", &scores_));
  APPS_RETURN_IF_ERROR(
      AllocateArray(config_.query_size(), "attention's result", &attended_));
  APPS_RETURN_IF_ERROR(AllocateArray(intermediate, "the gate", &gate_));
  APPS_RETURN_IF_ERROR(AllocateArray(intermediate, "the MLP", &up_));
  APPS_RETURN_IF_ERROR(AllocateArray(intermediate, "the MLP", &activated_));
  APPS_RETURN_IF_ERROR(AllocateArray(cache, "the key cache", &key_cache_));
  APPS_RETURN_IF_ERROR(AllocateArray(cache, "the value cache", &value_cache_));
  APPS_RETURN_IF_ERROR(AllocateArray(config_.vocab, "the logits", &logits_));
  APPS_RETURN_IF_ERROR(
      AllocateArray(argmax_blocks, "the argmax", &block_value_));
  APPS_RETURN_IF_ERROR(
      AllocateArray(argmax_blocks, "the argmax", &block_index_));
  if (cublas_ == nullptr || type_ == DataType::kF32) return absl::OkStatus();
  const size_t longest = std::max<size_t>(
      {hidden, intermediate, static_cast<size_t>(config_.query_size())});
  return AllocateArray(longest, "a rounded input", &rounded_);
}

absl::Status Decoder::Reset(const std::vector<int32_t>& prompt) {
  if (prompt.empty() || prompt.size() > static_cast<size_t>(config_.max_seq)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the prompt has ", prompt.size(),
        " tokens; there must be 1 to max-seq = ", config_.max_seq));
  }
  for (const int32_t token : prompt) {
    if (token < 0 || token >= config_.vocab) {
      return absl::InvalidArgumentError(
          absl::StrCat("prompt token ", token, " is not in the vocabulary of ",
                       config_.vocab));
    }
  }
  const DecodeState state = {
      .token = prompt[0],
      .position = 0,
      .prompt_length = static_cast<int32_t>(prompt.size()),
      .max_seq = config_.max_seq};
  APPS_RETURN_IF_ERROR(gpu_->CopyToDevice(prompt_, prompt.data(),
                                          prompt.size() * sizeof(int32_t)));
  APPS_RETURN_IF_ERROR(
      gpu_->CopyToDevice(history_, prompt.data(), sizeof(int32_t)));
  return gpu_->CopyToDevice(state_, &state, sizeof(state));
}

absl::Status Decoder::Embed() {
  const LaunchShape shape = Elementwise(config_.hidden);
  if (type_ == DataType::kF32) {
    return launcher_->Launch(kernels::kEmbedF32, shape,
                             static_cast<const float*>(embedding_.data), state_,
                             hidden_, config_.hidden);
  }
  return launcher_->Launch(kernels::kEmbedBf16, shape,
                           static_cast<const BFloat16*>(embedding_.data),
                           state_, hidden_, config_.hidden);
}

absl::Status Decoder::Norm(const float* x, const float* weight, float* out) {
  return launcher_->Launch(kernels::kRmsNorm, {.block_x = kThreads}, x, weight,
                           out, config_.hidden, config_.norm_epsilon);
}

absl::Status Decoder::Multiply(const Matrix& matrix, const float* x,
                               float* out) {
  if (cublas_ != nullptr && type_ == DataType::kBf16) {
    APPS_RETURN_IF_ERROR(launcher_->Launch(
        kernels::kToBf16, Elementwise(matrix.cols), x, rounded_, matrix.cols));
    return cublas_->MultiplyBf16(static_cast<const BFloat16*>(matrix.data),
                                 rounded_, out, matrix.rows, matrix.cols);
  }
  if (cublas_ != nullptr) {
    return cublas_->MultiplyF32(static_cast<const float*>(matrix.data), x, out,
                                matrix.rows, matrix.cols);
  }
  const LaunchShape shape = {
      .grid_x = Blocks(matrix.rows, kGemvThreads / kWarp),
      .block_x = kGemvThreads};
  if (type_ == DataType::kF32) {
    return launcher_->Launch(kernels::kGemvF32, shape,
                             static_cast<const float*>(matrix.data), x, out,
                             matrix.rows, matrix.cols);
  }
  return launcher_->Launch(kernels::kGemvBf16, shape,
                           static_cast<const BFloat16*>(matrix.data), x, out,
                           matrix.rows, matrix.cols);
}

absl::Status Decoder::AddResidual(const float* y) {
  return launcher_->Launch(kernels::kAdd, Elementwise(config_.hidden), hidden_,
                           y, config_.hidden);
}

absl::Status Decoder::EnqueueAttention(int index) {
  const AttentionShape shape = {
      .heads = config_.heads,
      .kv_heads = config_.kv_heads,
      .head_dim = config_.head_dim,
      .max_seq = config_.max_seq,
      .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim))};
  const auto heads = static_cast<uint32_t>(config_.heads);
  const auto kv_heads = static_cast<uint32_t>(config_.kv_heads);
  const auto head_dim = static_cast<uint32_t>(config_.head_dim);
  const auto half = head_dim / 2;
  const int64_t layer_stride =
      static_cast<int64_t>(config_.kv_size()) * config_.max_seq;
  const float* keys = key_cache_ + index * layer_stride;
  const float* values = value_cache_ + index * layer_stride;
  APPS_RETURN_IF_ERROR(launcher_->Launch(
      kernels::kRope, {.grid_x = heads, .block_x = half}, query_,
      inverse_frequency_, state_, RopeShape{config_.heads, config_.head_dim}));
  APPS_RETURN_IF_ERROR(
      launcher_->Launch(kernels::kRope, {.grid_x = kv_heads, .block_x = half},
                        key_, inverse_frequency_, state_,
                        RopeShape{config_.kv_heads, config_.head_dim}));
  APPS_RETURN_IF_ERROR(launcher_->Launch(
      kernels::kKvAppend, {.grid_x = kv_heads, .block_x = head_dim}, key_,
      value_, key_cache_, value_cache_, state_, layer_stride, index,
      config_.kv_heads, config_.head_dim, config_.max_seq));
  APPS_RETURN_IF_ERROR(
      launcher_->Launch(kernels::kScores,
                        {.grid_x = Blocks(config_.max_seq, kScoresPositions),
                         .grid_y = heads,
                         .block_x = kScoresThreads},
                        query_, keys, state_, scores_, shape));
  APPS_RETURN_IF_ERROR(
      launcher_->Launch(kernels::kSoftmax,
                        {.grid_x = heads,
                         .block_x = kSoftmaxThreads,
                         .shared_bytes = kSoftmaxThreads * sizeof(float)},
                        scores_, state_, shape));
  const uint32_t groups = kValuesThreads / head_dim;
  return launcher_->Launch(kernels::kValues,
                           {.grid_x = heads,
                            .block_x = head_dim,
                            .block_y = groups,
                            .shared_bytes = static_cast<uint32_t>(
                                head_dim * groups * sizeof(float))},
                           scores_, values, state_, attended_, shape);
}

absl::Status Decoder::EnqueueMlp(const Layer& layer) {
  APPS_RETURN_IF_ERROR(Norm(hidden_, layer.mlp_norm, normed_));
  APPS_RETURN_IF_ERROR(Multiply(layer.gate, normed_, gate_));
  APPS_RETURN_IF_ERROR(Multiply(layer.up, normed_, up_));
  APPS_RETURN_IF_ERROR(
      launcher_->Launch(kernels::kSiluMul, Elementwise(config_.intermediate),
                        gate_, up_, activated_, config_.intermediate));
  APPS_RETURN_IF_ERROR(Multiply(layer.down, activated_, projected_));
  return AddResidual(projected_);
}

absl::Status Decoder::EnqueueLayer(int index) {
  const Layer& layer = layers_[index];
  APPS_RETURN_IF_ERROR(Norm(hidden_, layer.attention_norm, normed_));
  APPS_RETURN_IF_ERROR(Multiply(layer.query, normed_, query_));
  APPS_RETURN_IF_ERROR(Multiply(layer.key, normed_, key_));
  APPS_RETURN_IF_ERROR(Multiply(layer.value, normed_, value_));
  APPS_RETURN_IF_ERROR(EnqueueAttention(index));
  APPS_RETURN_IF_ERROR(Multiply(layer.output, attended_, projected_));
  APPS_RETURN_IF_ERROR(AddResidual(projected_));
  return EnqueueMlp(layer);
}

absl::Status Decoder::EnqueueChoice() {
  const uint32_t blocks = Blocks(config_.vocab, kArgmaxItems);
  APPS_RETURN_IF_ERROR(launcher_->Launch(
      kernels::kArgmaxBlocks, {.grid_x = blocks, .block_x = kArgmaxThreads},
      logits_, config_.vocab, block_value_, block_index_));
  APPS_RETURN_IF_ERROR(launcher_->Launch(
      kernels::kArgmax, {.block_x = kArgmaxThreads}, block_value_, block_index_,
      static_cast<int>(blocks), token_));
  return launcher_->Launch(kernels::kAdvance, {}, state_, prompt_, token_,
                           history_);
}

absl::Status Decoder::EnqueueStep() {
  APPS_RETURN_IF_ERROR(Embed());
  for (int i = 0; i < config_.layers; ++i) {
    APPS_RETURN_IF_ERROR(EnqueueLayer(i));
  }
  APPS_RETURN_IF_ERROR(Norm(hidden_, final_norm_, normed_));
  APPS_RETURN_IF_ERROR(Multiply(output_, normed_, logits_));
  return EnqueueChoice();
}

absl::StatusOr<std::vector<float>> Decoder::ReadLogits() {
  std::vector<float> logits(config_.vocab);
  APPS_RETURN_IF_ERROR(
      gpu_->CopyToHost(logits.data(), logits_, logits.size() * sizeof(float)));
  return logits;
}

absl::StatusOr<std::vector<int32_t>> Decoder::ReadTokens(int count) {
  if (count < 0 || count > config_.max_seq) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", count, " tokens of a sequence of ", config_.max_seq));
  }
  std::vector<int32_t> tokens(count);
  APPS_RETURN_IF_ERROR(gpu_->CopyToHost(tokens.data(), history_,
                                        tokens.size() * sizeof(int32_t)));
  return tokens;
}

absl::StatusOr<DecodeState> Decoder::ReadState() {
  DecodeState state = {};
  APPS_RETURN_IF_ERROR(gpu_->CopyToHost(&state, state_, sizeof(state)));
  return state;
}

}  // namespace decode
