// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/inception/reference.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace inception {
namespace {

Activation LikeWithChannels(const Activation& x, int channels) {
  Activation out = {x.batch, channels, x.height, x.width, {}};
  out.data.resize(static_cast<size_t>(x.batch) * channels * x.height * x.width);
  return out;
}

// Adds weight * x to `sum`, both planes of height x width, with x shifted by
// (dy, dx) and zero outside.
void AddShifted(const float* x, int height, int width, int dy, int dx,
                double weight, double* sum) {
  for (int row = std::max(0, -dy); row < std::min(height, height - dy); ++row) {
    const float* from = x + static_cast<ptrdiff_t>(row + dy) * width + dx;
    double* to = sum + static_cast<ptrdiff_t>(row) * width;
    const int end = std::min(width, width - dx);
    for (int col = std::max(0, -dx); col < end; ++col) {
      to[col] += weight * from[col];
    }
  }
}

}  // namespace

Activation ConvolveRelu(const Activation& x, const Convolution& convolution) {
  Activation out = LikeWithChannels(x, convolution.out_channels);
  const size_t plane = static_cast<size_t>(x.height) * x.width;
  const int kernel = convolution.kernel;
  const int padding = convolution.padding();
  std::vector<double> sum(plane);
  for (int n = 0; n < x.batch; ++n) {
    for (int k = 0; k < convolution.out_channels; ++k) {
      std::fill(sum.begin(), sum.end(), convolution.bias[k]);
      const float* weight = convolution.filter.data() + static_cast<size_t>(k) *
                                                            x.channels *
                                                            kernel * kernel;
      for (int c = 0; c < x.channels; ++c) {
        const float* in =
            x.data.data() + (static_cast<size_t>(n) * x.channels + c) * plane;
        for (int r = 0; r < kernel; ++r) {
          for (int s = 0; s < kernel; ++s, ++weight) {
            AddShifted(in, x.height, x.width, r - padding, s - padding, *weight,
                       sum.data());
          }
        }
      }
      float* to =
          out.data.data() + (static_cast<size_t>(n) * out.channels + k) * plane;
      for (size_t i = 0; i < plane; ++i) {
        to[i] = static_cast<float>(std::max(0.0, sum[i]));
      }
    }
  }
  return out;
}

Activation MaxPool3x3(const Activation& x) {
  Activation out = LikeWithChannels(x, x.channels);
  const size_t plane = static_cast<size_t>(x.height) * x.width;
  const size_t planes = static_cast<size_t>(x.batch) * x.channels;
  for (size_t p = 0; p < planes; ++p) {
    const float* in = x.data.data() + p * plane;
    float* to = out.data.data() + p * plane;
    for (int row = 0; row < x.height; ++row) {
      for (int col = 0; col < x.width; ++col) {
        float best = -std::numeric_limits<float>::infinity();
        for (int r = std::max(0, row - 1); r <= std::min(x.height - 1, row + 1);
             ++r) {
          for (int c = std::max(0, col - 1);
               c <= std::min(x.width - 1, col + 1); ++c) {
            best = std::max(best, in[static_cast<ptrdiff_t>(r) * x.width + c]);
          }
        }
        to[static_cast<ptrdiff_t>(row) * x.width + col] = best;
      }
    }
  }
  return out;
}

Activation Concatenate(const std::vector<Activation>& parts) {
  const Activation& first = parts.front();
  int channels = 0;
  for (const Activation& part : parts) channels += part.channels;
  Activation out = {first.batch, channels, first.height, first.width, {}};
  const size_t plane = static_cast<size_t>(first.height) * first.width;
  for (int n = 0; n < first.batch; ++n) {
    for (const Activation& part : parts) {
      const size_t size = part.channels * plane;
      const auto begin = part.data.begin() + static_cast<ptrdiff_t>(n * size);
      out.data.insert(out.data.end(), begin,
                      begin + static_cast<ptrdiff_t>(size));
    }
  }
  return out;
}

Activation RunBlock(const Activation& x, const Block& block) {
  const Activation b = ConvolveRelu(x, block[kBranchBReduce]);
  const Activation c = ConvolveRelu(x, block[kBranchCReduce]);
  return Concatenate({ConvolveRelu(x, block[kBranchA]),
                      ConvolveRelu(b, block[kBranchB]),
                      ConvolveRelu(c, block[kBranchC]),
                      ConvolveRelu(MaxPool3x3(x), block[kBranchD])});
}

}  // namespace inception
