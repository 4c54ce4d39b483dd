// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/model.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/decode/kernel_types.h"

namespace decode {
namespace {

// GEMV rows are read in 16-byte pieces: eight bfloat16 values.
constexpr int kVector = 8;

// grid.y counts attention heads.
constexpr int kMaxHeads = 65535;

struct Bound {
  const char* name;
  int value;
  int low;
  int high;
};

}  // namespace

absl::Status ModelConfig::Validate() const {
  constexpr int kAny = std::numeric_limits<int>::max() / 2;
  const Bound bounds[] = {
      {"layers", layers, 1, 1024},
      {"hidden", hidden, 1, 1 << 20},
      {"heads", heads, 1, kMaxHeads},
      {"kv-heads", kv_heads, 1, kMaxHeads},
      {"head-dim", head_dim, 1, kValuesThreads},
      {"intermediate", intermediate, 1, 1 << 20},
      {"vocab", vocab, 2, kAny},
      {"max-seq", max_seq, 2, 1 << 20},
  };
  for (const Bound& bound : bounds) {
    if (bound.value < bound.low || bound.value > bound.high) {
      return absl::InvalidArgumentError(
          absl::StrCat(bound.name, " is ", bound.value, "; it must be between ",
                       bound.low, " and ", bound.high));
    }
  }
  if (heads % kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kv-heads (", kv_heads, ") must divide heads (", heads, ")"));
  }
  if (head_dim % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("head-dim is ", head_dim,
                     "; it must be even, because rotary positions pair it up"));
  }
  const Bound vectors[] = {{"hidden", hidden, 0, 0},
                           {"heads * head-dim", query_size(), 0, 0},
                           {"intermediate", intermediate, 0, 0}};
  for (const Bound& vector : vectors) {
    if (vector.value % kVector != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(vector.name, " is ", vector.value,
                       "; it must be a multiple of ", kVector));
    }
  }
  if (!(rope_theta > 0) || !(norm_epsilon >= 0)) {
    return absl::InvalidArgumentError(
        "rope-theta must be positive and the norm's epsilon not negative");
  }
  return absl::OkStatus();
}

size_t ModelWeights::parameters() const {
  size_t count =
      embedding.data.size() + final_norm.data.size() + output.data.size();
  for (const LayerWeights& layer : layers) {
    for (const Tensor* tensor :
         {&layer.attention_norm, &layer.query, &layer.key, &layer.value,
          &layer.output, &layer.mlp_norm, &layer.gate, &layer.up,
          &layer.down}) {
      count += tensor->data.size();
    }
  }
  return count;
}

std::vector<float> RopeInverseFrequencies(const ModelConfig& config) {
  std::vector<float> result(config.head_dim / 2);
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<float>(
        std::pow(static_cast<double>(config.rope_theta),
                 -2.0 * static_cast<double>(i) / config.head_dim));
  }
  return result;
}

std::vector<NamedTensor> NameTensors(const ModelConfig& config,
                                     ModelWeights* weights) {
  weights->layers.resize(config.layers);
  std::vector<NamedTensor> result;
  result.push_back({"model.embed_tokens.weight", config.vocab, config.hidden,
                    &weights->embedding});
  for (int i = 0; i < config.layers; ++i) {
    LayerWeights& layer = weights->layers[i];
    const auto add = [&](const char* suffix, int rows, int cols,
                         Tensor* tensor) {
      result.push_back(
          {absl::StrCat("model.layers.", i, ".", suffix, ".weight"), rows, cols,
           tensor});
    };
    add("input_layernorm", 1, config.hidden, &layer.attention_norm);
    add("self_attn.q_proj", config.query_size(), config.hidden, &layer.query);
    add("self_attn.k_proj", config.kv_size(), config.hidden, &layer.key);
    add("self_attn.v_proj", config.kv_size(), config.hidden, &layer.value);
    add("self_attn.o_proj", config.hidden, config.query_size(), &layer.output);
    add("post_attention_layernorm", 1, config.hidden, &layer.mlp_norm);
    add("mlp.gate_proj", config.intermediate, config.hidden, &layer.gate);
    add("mlp.up_proj", config.intermediate, config.hidden, &layer.up);
    add("mlp.down_proj", config.hidden, config.intermediate, &layer.down);
  }
  result.push_back(
      {"model.norm.weight", 1, config.hidden, &weights->final_norm});
  if (!config.tied_embeddings) {
    result.push_back(
        {"lm_head.weight", config.vocab, config.hidden, &weights->output});
  }
  return result;
}

}  // namespace decode
