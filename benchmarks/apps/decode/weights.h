// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_WEIGHTS_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_WEIGHTS_H_

// Where weights come from: a seed, or a Hugging Face Llama checkpoint.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/apps/decode/model.h"
#include "benchmarks/apps/decode/safetensors.h"

namespace decode {

// Random weights that keep the variance of what flows through them, so values
// neither vanish nor explode with depth. A tensor depends on the seed and its
// name only, on every machine.
ModelWeights SeededWeights(const ModelConfig& config, uint64_t seed);

// Fills the sizes of `config` that a checkpoint determines (layers, hidden,
// vocab, intermediate, kv_heads, head_dim, tied_embeddings) from the shapes of
// its tensors. config->heads must be set: it is not in the file.
absl::Status InferConfig(const SafetensorsFile& file, ModelConfig* config);

// Reads every tensor of `config`, checking its shape.
absl::StatusOr<ModelWeights> ReadWeights(const SafetensorsFile& file,
                                         const ModelConfig& config);

// Rounds the matrices and the embedding to what `type` can hold, so that host
// and device compute with the same numbers. Norms stay fp32.
void RoundWeights(DataType type, ModelWeights* weights);

// x rounded to bfloat16.
float RoundToBf16(float x);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_WEIGHTS_H_
