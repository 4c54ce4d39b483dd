// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "benchmarks/apps/decode/weights.h"

namespace decode {
namespace {

void AddTo(std::vector<double>* x, const std::vector<double>& y) {
  for (size_t i = 0; i < x->size(); ++i) (*x)[i] += y[i];
}

// Several independent sums, so that the compiler can vectorize.
double Dot(const float* a, const double* b, size_t n) {
  constexpr size_t kLanes = 8;
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += a[i + lane] * b[i + lane];
    }
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Reference::Reference(const ModelConfig& config, const ModelWeights& weights,
                     bool round_inputs)
    : config_(config),
      weights_(weights),
      round_inputs_(round_inputs),
      inverse_frequency_(RopeInverseFrequencies(config)),
      keys_(config.layers),
      values_(config.layers) {}

Reference::Vector Reference::Multiply(const Tensor& matrix,
                                      const Vector& x) const {
  Vector input = x;
  if (round_inputs_) {
    for (double& value : input) {
      value = RoundToBf16(static_cast<float>(value));
    }
  }
  Vector out(matrix.rows);
  for (int row = 0; row < matrix.rows; ++row) {
    out[row] = Dot(matrix.data.data() + static_cast<size_t>(row) * matrix.cols,
                   input.data(), matrix.cols);
  }
  return out;
}

Reference::Vector Reference::Norm(const Vector& x, const Tensor& weight) const {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double root = std::sqrt(squares / static_cast<double>(x.size()) +
                                static_cast<double>(config_.norm_epsilon));
  Vector out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] / root * weight.data[i];
  return out;
}

void Reference::Rotate(int heads, Vector* x) const {
  const int half = config_.head_dim / 2;
  for (int head = 0; head < heads; ++head) {
    for (int i = 0; i < half; ++i) {
      // The angle is an fp32 product by definition: at large positions its
      // rounding is visible, and is part of what the model was trained with.
      const float angle = static_cast<float>(position_) * inverse_frequency_[i];
      const double c = std::cos(static_cast<double>(angle));
      const double s = std::sin(static_cast<double>(angle));
      double& a = (*x)[head * config_.head_dim + i];
      double& b = (*x)[head * config_.head_dim + half + i];
      const double rotated = a * c - b * s;
      b = b * c + a * s;
      a = rotated;
    }
  }
}

Reference::Vector Reference::Attend(const Vector& query,
                                    const std::vector<Vector>& keys,
                                    const std::vector<Vector>& values) const {
  Vector out(config_.query_size(), 0.0);
  const int group = config_.heads / config_.kv_heads;
  for (int head = 0; head < config_.heads; ++head) {
    const size_t q = static_cast<size_t>(head) * config_.head_dim;
    const size_t kv = static_cast<size_t>(head / group) * config_.head_dim;
    Vector weights(keys.size());
    for (size_t p = 0; p < keys.size(); ++p) {
      double sum = 0;
      for (int i = 0; i < config_.head_dim; ++i) {
        sum += query[q + i] * keys[p][kv + i];
      }
      weights[p] = sum / std::sqrt(static_cast<double>(config_.head_dim));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& weight : weights) {
      weight = std::exp(weight - largest);
      total += weight;
    }
    for (size_t p = 0; p < keys.size(); ++p) {
      for (int i = 0; i < config_.head_dim; ++i) {
        out[q + i] += weights[p] / total * values[p][kv + i];
      }
    }
  }
  return out;
}

std::vector<float> Reference::Forward(int token) {
  const auto row = weights_.embedding.data.begin() +
                   static_cast<std::ptrdiff_t>(token) * config_.hidden;
  Vector x(row, row + config_.hidden);
  for (int i = 0; i < config_.layers; ++i) {
    const LayerWeights& layer = weights_.layers[i];
    const Vector attention_in = Norm(x, layer.attention_norm);
    Vector query = Multiply(layer.query, attention_in);
    Vector key = Multiply(layer.key, attention_in);
    Rotate(config_.heads, &query);
    Rotate(config_.kv_heads, &key);
    keys_[i].push_back(key);
    values_[i].push_back(Multiply(layer.value, attention_in));
    AddTo(&x, Multiply(layer.output, Attend(query, keys_[i], values_[i])));

    const Vector mlp_in = Norm(x, layer.mlp_norm);
    Vector gate = Multiply(layer.gate, mlp_in);
    const Vector up = Multiply(layer.up, mlp_in);
    for (size_t j = 0; j < gate.size(); ++j) {
      gate[j] = gate[j] / (1.0 + std::exp(-gate[j])) * up[j];
    }
    AddTo(&x, Multiply(layer.down, gate));
  }
  const Vector logits =
      Multiply(weights_.output_matrix(), Norm(x, weights_.final_norm));
  ++position_;
  return std::vector<float>(logits.begin(), logits.end());
}

}  // namespace decode
