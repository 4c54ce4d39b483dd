// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_REFERENCE_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_REFERENCE_H_

// A decoder in plain C++, written from the formulas and not from the kernels,
// that says what the logits should be. Slow, and accumulates in double.

#include <vector>

#include "benchmarks/apps/decode/model.h"

namespace decode {

class Reference {
 public:
  // `weights` must outlive the object. With `round_inputs`, the vectors that go
  // into matrix products are rounded to bfloat16 first, as a library product of
  // two bfloat16 operands does.
  Reference(const ModelConfig& config, const ModelWeights& weights,
            bool round_inputs);

  // The logits after `token` at the next position: the first call is position
  // 0. `token` must be in [0, vocab) and there must be room: position() <
  // max_seq.
  std::vector<float> Forward(int token);

  int position() const { return position_; }

 private:
  using Vector = std::vector<double>;

  Vector Multiply(const Tensor& matrix, const Vector& x) const;
  Vector Norm(const Vector& x, const Tensor& weight) const;
  void Rotate(int heads, Vector* x) const;
  Vector Attend(const Vector& query, const std::vector<Vector>& keys,
                const std::vector<Vector>& values) const;

  const ModelConfig config_;
  const ModelWeights& weights_;
  const bool round_inputs_;
  const std::vector<float> inverse_frequency_;
  int position_ = 0;
  // [layer][position], each kv_heads * head_dim long.
  std::vector<std::vector<Vector>> keys_;
  std::vector<std::vector<Vector>> values_;
};

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_REFERENCE_H_
