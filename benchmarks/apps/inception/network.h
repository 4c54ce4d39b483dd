// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_INCEPTION_NETWORK_H_
#define HEDDLE_BENCHMARKS_APPS_INCEPTION_NETWORK_H_

// The shape of the network and its weights, on the host.
//
// A chain of blocks, each with four branches that read the block's input and
// whose outputs are concatenated by channel. The widths are those of inception
// (4a) in "Going Deeper with Convolutions" (Szegedy et al., 2014, table 1),
// scaled so that a block has as many channels out as in:
//   a: 1x1                      (3/8 of the channels)
//   b: 1x1 reduce, 3x3          (3/16, 13/32)
//   c: 1x1 reduce, 5x5          (1/32, 3/32)
//   d: 3x3 max pool, 1x1        (1/8)
// Every convolution has a bias and a ReLU. Stride 1, same size throughout.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace inception {

struct NetworkConfig {
  int blocks = 9;
  int channels = 512;  // a multiple of 32
  int size = 14;       // height and width
  int batch = 1;

  size_t plane() const { return static_cast<size_t>(size) * size; }
  size_t elements() const { return plane() * channels * batch; }

  // InvalidArgument says which rule is broken.
  absl::Status Validate() const;
};

// A square convolution that keeps the size of its planes.
struct Convolution {
  std::string name;
  int in_channels = 0;
  int out_channels = 0;
  int kernel = 1;             // odd
  std::vector<float> filter;  // out_channels x in_channels x kernel x kernel
  std::vector<float> bias;    // out_channels

  int padding() const { return kernel / 2; }
};

// The convolutions of a block, in the order in which they are issued.
enum BlockConvolution : uint8_t {
  kBranchA,
  kBranchBReduce,
  kBranchB,
  kBranchCReduce,
  kBranchC,
  kBranchD,
  kBlockConvolutions,
};

// The four that end a branch; their outputs are concatenated in this order.
inline constexpr std::array kBranchEnds = {kBranchA, kBranchB, kBranchC,
                                           kBranchD};

using Block = std::array<Convolution, kBlockConvolutions>;

// A network with seeded weights that keep the variance of what flows through.
std::vector<Block> SeededNetwork(const NetworkConfig& config, uint64_t seed);

}  // namespace inception

#endif  // HEDDLE_BENCHMARKS_APPS_INCEPTION_NETWORK_H_
