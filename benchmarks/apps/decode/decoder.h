// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_DECODER_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_DECODER_H_

// The decoder on a device: buffers, and the launches of one step.
//
// A step takes state.token at state.position, leaves the logits of the next
// token in logits(), and moves the state on. It is 18 launches a layer and 6
// around them, all on one stream, and the same launches every
// time: the position is read on the device, so a captured step can be replayed.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/decode/cublas.h"
#include "benchmarks/apps/decode/launcher.h"
#include "benchmarks/apps/decode/model.h"

namespace decode {

class Decoder {
 public:
  // Uploads the weights. `cublas` may be null: products are then our own
  // kernels. The launcher uses the GPU's stream. All three must
  // outlive the decoder.
  static absl::StatusOr<std::unique_ptr<Decoder>> Create(
      const ModelConfig& config, const ModelWeights& weights, DataType type,
      apps::Gpu* gpu, Launcher* launcher, Cublas* cublas);

  // Starts a new sequence. Tokens must be in [0, vocab); 1 to max_seq of them.
  absl::Status Reset(const std::vector<int32_t>& prompt);

  // Issues one step and returns at once.
  absl::Status EnqueueStep();

  // The logits of the last step, and the sequence so far (`count` tokens, the
  // prompt included). Both wait for the device.
  absl::StatusOr<std::vector<float>> ReadLogits();
  absl::StatusOr<std::vector<int32_t>> ReadTokens(int count);
  absl::StatusOr<DecodeState> ReadState();

 private:
  // A weight matrix on the device; `data` is float or BFloat16.
  struct Matrix {
    const void* data = nullptr;
    int rows = 0;
    int cols = 0;
  };
  struct Layer {
    const float* attention_norm = nullptr;
    Matrix query, key, value, output;
    const float* mlp_norm = nullptr;
    Matrix gate, up, down;
  };

  Decoder(const ModelConfig& config, DataType type, apps::Gpu* gpu,
          Launcher* launcher, Cublas* cublas)
      : config_(config),
        type_(type),
        gpu_(gpu),
        launcher_(launcher),
        cublas_(cublas) {}

  absl::Status UploadWeights(const ModelWeights& weights);
  absl::Status AllocateBuffers();

  absl::Status UploadVector(const Tensor& tensor, const float** out);
  absl::Status UploadMatrix(const Tensor& tensor, Matrix* out);
  template <typename T>
  absl::Status AllocateArray(size_t count, const char* what, T** out);

  absl::Status EnqueueLayer(int index);
  absl::Status EnqueueAttention(int index);
  absl::Status EnqueueMlp(const Layer& layer);
  absl::Status EnqueueChoice();
  absl::Status Embed();
  absl::Status Norm(const float* x, const float* weight, float* out);
  absl::Status Multiply(const Matrix& matrix, const float* x, float* out);
  absl::Status AddResidual(const float* y);

  const ModelConfig config_;
  const DataType type_;
  apps::Gpu* const gpu_;
  Launcher* const launcher_;
  Cublas* const cublas_;

  Matrix embedding_;
  std::vector<Layer> layers_;
  const float* final_norm_ = nullptr;
  Matrix output_;
  const float* inverse_frequency_ = nullptr;

  DecodeState* state_ = nullptr;
  int32_t* prompt_ = nullptr;   // max_seq
  int32_t* history_ = nullptr;  // max_seq
  int32_t* token_ = nullptr;
  float* hidden_ = nullptr;     // the residual stream
  float* normed_ = nullptr;     // hidden
  float* projected_ = nullptr;  // hidden: what is added to the residual
  float* query_ = nullptr;      // heads x head_dim
  float* key_ = nullptr;        // kv_heads x head_dim
  float* value_ = nullptr;      // kv_heads x head_dim
  float* scores_ = nullptr;     // heads x max_seq
  float* attended_ = nullptr;   // heads x head_dim
  float* gate_ = nullptr;       // intermediate
  float* up_ = nullptr;         // intermediate
  float* activated_ = nullptr;  // intermediate
  float* key_cache_ = nullptr;  // layers x kv_heads x max_seq x head_dim
  float* value_cache_ = nullptr;
  float* logits_ = nullptr;       // vocab
  float* block_value_ = nullptr;  // one a block of decode_argmax_blocks
  int32_t* block_index_ = nullptr;
  BFloat16* rounded_ = nullptr;  // input of a cuBLAS product in bfloat16
};

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_DECODER_H_
