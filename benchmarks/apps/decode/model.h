// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_MODEL_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_MODEL_H_

// The shape of a Llama-like model and its weights on the host.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace decode {

// Storage of the weights on the device. Arithmetic is fp32 either way.
enum class DataType : uint8_t { kF32, kBf16 };

struct ModelConfig {
  int layers = 4;
  int hidden = 128;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 32;
  int intermediate = 384;
  int vocab = 512;
  int max_seq = 64;
  bool tied_embeddings = false;  // the embedding is also the output matrix
  float rope_theta = 10000.0f;
  float norm_epsilon = 1e-5f;

  int query_size() const { return heads * head_dim; }
  int kv_size() const { return kv_heads * head_dim; }

  // InvalidArgument if the kernels cannot run this shape; says which rule.
  absl::Status Validate() const;
};

// A dense row-major matrix, or a vector if rows is 1.
struct Tensor {
  int rows = 0;
  int cols = 0;
  std::vector<float> data;
};

struct LayerWeights {
  Tensor attention_norm;
  Tensor query;
  Tensor key;
  Tensor value;
  Tensor output;
  Tensor mlp_norm;
  Tensor gate;
  Tensor up;
  Tensor down;
};

struct ModelWeights {
  Tensor embedding;  // vocab x hidden
  std::vector<LayerWeights> layers;
  Tensor final_norm;
  Tensor output;  // vocab x hidden; empty if the embeddings are tied

  const Tensor& output_matrix() const {
    return output.data.empty() ? embedding : output;
  }
  size_t parameters() const;
};

// inverse_frequency[i] = theta^(-2i / head_dim) for i < head_dim / 2. The
// frequency scaling of Llama 3.1 and later is not applied.
std::vector<float> RopeInverseFrequencies(const ModelConfig& config);

// Name, expected rows and columns, and destination of every tensor of a model,
// by the names that Hugging Face checkpoints use ("model.layers.0. ...").
struct NamedTensor {
  std::string name;
  int rows;
  int cols;
  Tensor* tensor;
};

// Resizes weights->layers. The pointers are into *weights.
std::vector<NamedTensor> NameTensors(const ModelConfig& config,
                                     ModelWeights* weights);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_MODEL_H_
