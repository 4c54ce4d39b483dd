// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/weights.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/apps/common/seeded.h"
#include "benchmarks/apps/decode/kernel_types.h"

namespace decode {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// The two lengths of a matrix in the file.
absl::StatusOr<std::pair<int, int>> MatrixShape(const SafetensorsFile& file,
                                                const std::string& name) {
  absl::StatusOr<const SafetensorsEntry*> entry = file.Find(name);
  if (!entry.ok()) return entry.status();
  const std::vector<int64_t>& shape = (*entry)->shape;
  constexpr int64_t kLimit = std::numeric_limits<int>::max();
  if (shape.size() != 2 || shape[0] > kLimit || shape[1] > kLimit) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": tensor \"", name, "\" has shape ",
                     ShapeText(shape), ", not that of a weight matrix"));
  }
  return std::make_pair(static_cast<int>(shape[0]), static_cast<int>(shape[1]));
}

}  // namespace

ModelWeights SeededWeights(const ModelConfig& config, uint64_t seed) {
  ModelWeights weights;
  for (const NamedTensor& named : NameTensors(config, &weights)) {
    named.tensor->rows = named.rows;
    named.tensor->cols = named.cols;
    const size_t count = static_cast<size_t>(named.rows) * named.cols;
    // A matrix is uniform in ±sqrt(3 / cols): a row times a vector of unit
    // variance has unit variance.
    const bool norm = named.rows == 1;
    const float radius = std::sqrt(3.0f / static_cast<float>(named.cols));
    named.tensor->data = apps::SeededFloats(
        seed, named.name, count, norm ? 1.0f : 0.0f, norm ? 0.25f : radius);
  }
  return weights;
}

absl::Status InferConfig(const SafetensorsFile& file, ModelConfig* config) {
  const auto embedding = MatrixShape(file, "model.embed_tokens.weight");
  if (!embedding.ok()) return embedding.status();
  config->vocab = embedding->first;
  config->hidden = embedding->second;
  const auto query =
      MatrixShape(file, "model.layers.0.self_attn.q_proj.weight");
  if (!query.ok()) return query.status();
  if (config->heads <= 0 || query->first % config->heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--heads ", config->heads, " does not divide the ", query->first,
        " rows of q_proj in ", file.path(),
        "; pass num_attention_heads of the checkpoint's config.json"));
  }
  config->head_dim = query->first / config->heads;
  const auto key = MatrixShape(file, "model.layers.0.self_attn.k_proj.weight");
  if (!key.ok()) return key.status();
  if (config->head_dim == 0 || key->first % config->head_dim != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "k_proj of ", file.path(), " has ", key->first,
        " rows, not a multiple of the head size ", config->head_dim,
        "; is --heads ", config->heads, " right?"));
  }
  config->kv_heads = key->first / config->head_dim;
  const auto gate = MatrixShape(file, "model.layers.0.mlp.gate_proj.weight");
  if (!gate.ok()) return gate.status();
  config->intermediate = gate->first;
  const auto& tensors = file.header().tensors;
  config->tied_embeddings = tensors.find("lm_head.weight") == tensors.end();
  config->layers = 0;
  while (tensors.find(absl::StrCat("model.layers.", config->layers,
                                   ".input_layernorm.weight")) !=
         tensors.end()) {
    ++config->layers;
  }
  return config->Validate();
}

absl::StatusOr<ModelWeights> ReadWeights(const SafetensorsFile& file,
                                         const ModelConfig& config) {
  ModelWeights weights;
  for (const NamedTensor& named : NameTensors(config, &weights)) {
    absl::StatusOr<const SafetensorsEntry*> entry = file.Find(named.name);
    if (!entry.ok()) return entry.status();
    std::vector<int64_t> expected = {named.rows, named.cols};
    if (named.rows == 1) expected = {named.cols};
    if ((*entry)->shape != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path(), ": tensor \"", named.name, "\" has shape ",
                       ShapeText((*entry)->shape), "; the model needs ",
                       ShapeText(expected)));
    }
    absl::StatusOr<std::vector<float>> values = file.ReadFloats(named.name);
    if (!values.ok()) return values.status();
    named.tensor->rows = named.rows;
    named.tensor->cols = named.cols;
    named.tensor->data = *std::move(values);
  }
  return weights;
}

float RoundToBf16(float x) {
  const uint32_t bits = BFloat16FromBits(std::bit_cast<uint32_t>(x));
  return std::bit_cast<float>(bits << 16);
}

void RoundWeights(DataType type, ModelWeights* weights) {
  if (type == DataType::kF32) return;
  const auto round = [](Tensor* tensor) {
    for (float& value : tensor->data) value = RoundToBf16(value);
  };
  round(&weights->embedding);
  round(&weights->output);
  for (LayerWeights& layer : weights->layers) {
    for (Tensor* tensor :
         {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate,
          &layer.up, &layer.down}) {
      round(tensor);
    }
  }
}

}  // namespace decode
