// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/inception/network.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/common/seeded.h"

namespace inception {
namespace {

// The widths are whole 32nds of the channels.
constexpr int kShares = 32;

absl::Status CheckRange(const char* name, int value, int low, int high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is ", value, "; it must be between ", low, " and ", high));
}

Convolution MakeConvolution(std::string name, int in_channels, int out_channels,
                            int kernel, uint64_t seed) {
  Convolution convolution;
  convolution.in_channels = in_channels;
  convolution.out_channels = out_channels;
  convolution.kernel = kernel;
  const int fan_in = in_channels * kernel * kernel;
  // He et al. 2015, uniform: keeps the mean square through a ReLU.
  const float radius = std::sqrt(6.0f / static_cast<float>(fan_in));
  convolution.filter = apps::SeededFloats(
      seed, absl::StrCat(name, ".filter"),
      static_cast<size_t>(fan_in) * out_channels, 0.0f, radius);
  convolution.bias = apps::SeededFloats(seed, absl::StrCat(name, ".bias"),
                                        out_channels, 0.0f, 0.1f);
  convolution.name = std::move(name);
  return convolution;
}

}  // namespace

absl::Status NetworkConfig::Validate() const {
  for (const absl::Status& status :
       {CheckRange("blocks", blocks, 1, 1000),
        CheckRange("channels", channels, kShares, 1 << 16),
        CheckRange("size", size, 1, 4096),
        CheckRange("batch", batch, 1, 1024)}) {
    if (!status.ok()) return status;
  }
  if (channels % kShares != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "channels is ", channels, "; it must be a multiple of ", kShares));
  }
  // cuDNN counts elements in an int.
  if (elements() > size_t{1} << 30) {
    return absl::InvalidArgumentError(
        absl::StrCat("an activation of ", elements(),
                     " elements is too large; the limit is 2^30"));
  }
  return absl::OkStatus();
}

std::vector<Block> SeededNetwork(const NetworkConfig& config, uint64_t seed) {
  struct Shape {
    const char* name;
    int in_shares;
    int out_shares;
    int kernel;
  };
  constexpr std::array<Shape, kBlockConvolutions> kShapes = {{
      {"a", kShares, 12, 1},
      {"b.reduce", kShares, 6, 1},
      {"b", 6, 13, 3},
      {"c.reduce", kShares, 1, 1},
      {"c", 1, 3, 5},
      {"d", kShares, 4, 1},
  }};
  const int share = config.channels / kShares;
  std::vector<Block> blocks(config.blocks);
  for (int i = 0; i < config.blocks; ++i) {
    for (size_t j = 0; j < kShapes.size(); ++j) {
      const Shape& shape = kShapes[j];
      blocks[i][j] = MakeConvolution(
          absl::StrCat("block", i, ".", shape.name), share * shape.in_shares,
          share * shape.out_shares, shape.kernel, seed);
    }
  }
  return blocks;
}

}  // namespace inception
