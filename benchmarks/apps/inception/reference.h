// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_INCEPTION_REFERENCE_H_
#define HEDDLE_BENCHMARKS_APPS_INCEPTION_REFERENCE_H_

// The network in plain C++, from the formulas. Slow; sums in double.

#include <vector>

#include "benchmarks/apps/inception/network.h"

namespace inception {

// batch x channels x height x width, dense.
struct Activation {
  int batch = 1;
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<float> data;
};

// Convolution with zero padding, plus bias, then ReLU.
Activation ConvolveRelu(const Activation& x, const Convolution& convolution);

// 3x3 maximum, stride 1. What lies outside does not count.
Activation MaxPool3x3(const Activation& x);

// By channel; the parts agree in the other dimensions. At least one.
Activation Concatenate(const std::vector<Activation>& parts);

Activation RunBlock(const Activation& x, const Block& block);

}  // namespace inception

#endif  // HEDDLE_BENCHMARKS_APPS_INCEPTION_REFERENCE_H_
