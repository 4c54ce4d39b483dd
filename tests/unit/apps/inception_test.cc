// SPDX-License-Identifier: Apache-2.0
//
// The reference of inception against direct formulas, and its options.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "benchmarks/apps/inception/network.h"
#include "benchmarks/apps/inception/options.h"
#include "benchmarks/apps/inception/reference.h"

namespace inception {
namespace {

using testing::HasSubstr;

Activation RandomActivation(int batch, int channels, int height, int width) {
  std::mt19937 random(batch * 1000 + channels);
  std::normal_distribution<float> normal;
  Activation x = {batch, channels, height, width, {}};
  x.data.resize(static_cast<size_t>(batch) * channels * height * width);
  for (float& value : x.data) value = normal(random);
  return x;
}

// x at [n][c][row][col], `outside` where there is none.
float At(const Activation& x, int n, int c, int row, int col, float outside) {
  if (row < 0 || row >= x.height || col < 0 || col >= x.width) return outside;
  return x.data[((static_cast<size_t>(n) * x.channels + c) * x.height + row) *
                    x.width +
                col];
}

TEST(InceptionReference, ConvolutionMatchesTheSevenfoldSum) {
  for (const int kernel : {1, 3, 5}) {
    const Activation x = RandomActivation(2, 3, 4, 6);
    Convolution convolution;
    convolution.in_channels = 3;
    convolution.out_channels = 4;
    convolution.kernel = kernel;
    convolution.filter = RandomActivation(4, 3, kernel, kernel).data;
    convolution.bias = {0.5f, -0.5f, 0.0f, 1.0f};
    const Activation out = ConvolveRelu(x, convolution);
    ASSERT_EQ(out.channels, 4);
    int cut = 0;
    for (int n = 0; n < 2; ++n) {
      for (int k = 0; k < 4; ++k) {
        for (int row = 0; row < 4; ++row) {
          for (int col = 0; col < 6; ++col) {
            double sum = convolution.bias[k];
            for (int c = 0; c < 3; ++c) {
              for (int r = 0; r < kernel; ++r) {
                for (int s = 0; s < kernel; ++s) {
                  sum += static_cast<double>(
                             convolution
                                 .filter[((k * 3 + c) * kernel + r) * kernel +
                                         s]) *
                         At(x, n, c, row + r - kernel / 2, col + s - kernel / 2,
                            0.0f);
                }
              }
            }
            cut += sum < 0;
            EXPECT_NEAR(At(out, n, k, row, col, 0.0f), std::max(sum, 0.0),
                        1e-5);
          }
        }
      }
    }
    EXPECT_GT(cut, 0);  // the ReLU did something
  }
}

TEST(InceptionReference, MaxPoolIgnoresWhatLiesOutside) {
  Activation x = RandomActivation(1, 2, 3, 5);
  for (float& value : x.data) value = -std::abs(value) - 1;  // all below zero
  const Activation out = MaxPool3x3(x);
  for (int c = 0; c < 2; ++c) {
    for (int row = 0; row < 3; ++row) {
      for (int col = 0; col < 5; ++col) {
        float best = -1e30f;
        for (int r = -1; r <= 1; ++r) {
          for (int s = -1; s <= 1; ++s) {
            best = std::max(best, At(x, 0, c, row + r, col + s, -1e30f));
          }
        }
        EXPECT_EQ(At(out, 0, c, row, col, 0.0f), best);
      }
    }
  }
}

TEST(InceptionReference, ConcatenationInterleavesBatches) {
  const Activation a = {2, 1, 1, 2, {1, 2, 3, 4}};
  const Activation b = {2, 2, 1, 2, {5, 6, 7, 8, 9, 10, 11, 12}};
  const Activation out = Concatenate({a, b});
  EXPECT_EQ(out.channels, 3);
  EXPECT_EQ(out.data,
            (std::vector<float>{1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12}));
}

TEST(InceptionNetwork, ABlockHasAsManyChannelsOutAsIn) {
  NetworkConfig config;
  for (const int channels : {32, 64, 512}) {
    config.channels = channels;
    config.blocks = 2;
    for (const Block& block : SeededNetwork(config, 1)) {
      int total = 0;
      for (const BlockConvolution end : kBranchEnds) {
        total += block[end].out_channels;
      }
      EXPECT_EQ(total, channels);
      EXPECT_EQ(block[kBranchB].in_channels,
                block[kBranchBReduce].out_channels);
      EXPECT_EQ(block[kBranchC].in_channels,
                block[kBranchCReduce].out_channels);
      for (const Convolution& convolution : block) {
        EXPECT_EQ(convolution.filter.size(),
                  static_cast<size_t>(convolution.in_channels) *
                      convolution.out_channels * convolution.kernel *
                      convolution.kernel);
        EXPECT_EQ(convolution.bias.size(),
                  static_cast<size_t>(convolution.out_channels));
      }
    }
  }
}

TEST(InceptionNetwork, ValuesNeitherVanishNorExplodeWithDepth) {
  NetworkConfig config;
  config.channels = 64;
  config.size = 6;
  config.blocks = 9;
  Activation x = RandomActivation(1, 64, 6, 6);
  for (const Block& block : SeededNetwork(config, 3)) {
    x = RunBlock(x, block);
    double squares = 0;
    for (const float value : x.data)
      squares += static_cast<double>(value) * value;
    const double mean_square = squares / static_cast<double>(x.data.size());
    EXPECT_GT(mean_square, 0.01);
    EXPECT_LT(mean_square, 1000);
  }
}

TEST(InceptionOptions, EveryOptionReachesItsField) {
  const auto options = ParseOptions(absl::StrSplit(
      "--blocks=2 --channels=64 --size=7 --batch=3 --seed=9 --images=5 "
      "--graph --concat=memcpy --workspace=shared --tf32 --load=procaddress "
      "--device=2 --steps-range --check --bench=10 --json=x.json",
      ' '));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->network.blocks, 2);
  EXPECT_EQ(options->network.channels, 64);
  EXPECT_EQ(options->network.size, 7);
  EXPECT_EQ(options->network.batch, 3);
  EXPECT_EQ(options->seed, 9u);
  EXPECT_EQ(options->images, 5);
  EXPECT_TRUE(options->graph);
  EXPECT_EQ(options->concat, ConcatKind::kMemcpy);
  EXPECT_EQ(options->workspace, WorkspaceKind::kShared);
  EXPECT_TRUE(options->tf32);
  EXPECT_EQ(options->load, apps::LoadRoute::kProcAddress);
  EXPECT_EQ(options->device, 2);
  EXPECT_TRUE(options->steps_range);
  EXPECT_TRUE(options->check);
  EXPECT_EQ(options->bench, 10);
  EXPECT_EQ(options->json_path, "x.json");
}

TEST(InceptionOptions, ShapesThatCannotBeAreRefused) {
  const auto refusal = [](const std::vector<std::string>& args) {
    return std::string(ParseOptions(args).status().message());
  };
  EXPECT_THAT(refusal({"--channels=48"}), HasSubstr("multiple of 32"));
  EXPECT_THAT(refusal({"--channels=16"}), HasSubstr("between 32"));
  EXPECT_THAT(refusal({"--size=4096", "--channels=512"}),
              HasSubstr("too large"));
  EXPECT_THAT(refusal({"--concat=cat"}), HasSubstr("kernel, memcpy"));
}

}  // namespace
}  // namespace inception
