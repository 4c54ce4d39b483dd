// SPDX-License-Identifier: Apache-2.0
//
// Each host kernel against its formula, written here independently and in
// double.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "benchmarks/apps/decode/kernel_types.h"
#include "tests/unit/apps/host_backend.h"

namespace decode {
namespace {

constexpr float kUntouched = -12345.0f;

class DecodeKernels : public testing::Test {
 protected:
  std::vector<float> Random(size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> result(count);
    for (float& value : result) value = normal(random_);
    return result;
  }

  template <typename Signature, typename... Args>
  void Launch(TypedKernel<Signature> kernel, LaunchShape shape, Args... args) {
    ASSERT_TRUE(backend_.Launch(kernel, shape, args...).ok());
  }

  static uint32_t Blocks(int items, int each) {
    return static_cast<uint32_t>((items + each - 1) / each);
  }

  std::mt19937 random_{7};
  HostBackend backend_;
};

TEST_F(DecodeKernels, EmbedCopiesTheRowOfTheCurrentToken) {
  constexpr int kHidden = 300;  // a block and a bit
  const std::vector<float> table = Random(5 * kHidden);
  const DecodeState state = {3, 0, 1, 8};
  std::vector<float> out(kHidden + 1, kUntouched);
  Launch(kernels::kEmbedF32, {.grid_x = 2, .block_x = kThreads}, table.data(),
         &state, out.data(), kHidden);
  for (int i = 0; i < kHidden; ++i) EXPECT_EQ(out[i], table[3 * kHidden + i]);
  EXPECT_EQ(out[kHidden], kUntouched);
}

TEST_F(DecodeKernels, EmbedBf16WidensTheRowOfTheCurrentToken) {
  const std::vector<BFloat16> table = {0x3f80, 0xc000, 0x0000, 0x4049};
  const DecodeState state = {1, 0, 1, 8};
  std::vector<float> out(2);
  Launch(kernels::kEmbedBf16, {.block_x = kThreads}, table.data(), &state,
         out.data(), 2);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[1], 3.140625f);
}

TEST_F(DecodeKernels, RmsNormScalesToUnitMeanSquareTimesTheWeight) {
  for (const int n : {1, 31, 128, 1000}) {
    const std::vector<float> x = Random(n);
    const std::vector<float> weight = Random(n);
    std::vector<float> out(n);
    Launch(kernels::kRmsNorm, {.block_x = kThreads}, x.data(), weight.data(),
           out.data(), n, 0.01f);
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    for (int i = 0; i < n; ++i) {
      const double expected = x[i] / std::sqrt(squares / n + 0.01f) * weight[i];
      EXPECT_NEAR(out[i], expected, 1e-5) << "n " << n << " at " << i;
    }
  }
}

TEST_F(DecodeKernels, GemvMultipliesEveryRow) {
  for (const auto& [rows, cols] :
       {std::pair{1, 8}, {7, 40}, {64, 128}, {33, 384}}) {
    const std::vector<float> matrix = Random(rows * cols);
    const std::vector<float> x = Random(cols);
    std::vector<float> out(rows + 1, kUntouched);
    Launch(kernels::kGemvF32,
           {.grid_x = Blocks(rows, 4), .block_x = kGemvThreads}, matrix.data(),
           x.data(), out.data(), rows, cols);
    for (int row = 0; row < rows; ++row) {
      double sum = 0;
      for (int i = 0; i < cols; ++i) {
        sum += static_cast<double>(matrix[row * cols + i]) * x[i];
      }
      EXPECT_NEAR(out[row], sum, 1e-4) << rows << "x" << cols;
    }
    EXPECT_EQ(out[rows], kUntouched);
  }
}

TEST_F(DecodeKernels, GemvBf16MultipliesTheWidenedMatrix) {
  constexpr int kRows = 9;
  constexpr int kCols = 48;
  std::vector<BFloat16> matrix;
  std::vector<double> wide;
  for (const float value : Random(kRows * kCols)) {
    // Truncated: any bfloat16 will do.
    const uint32_t bits = std::bit_cast<uint32_t>(value) & 0xffff0000u;
    matrix.push_back(static_cast<BFloat16>(bits >> 16));
    wide.push_back(std::bit_cast<float>(bits));
  }
  const std::vector<float> x = Random(kCols);
  std::vector<float> out(kRows);
  Launch(kernels::kGemvBf16,
         {.grid_x = Blocks(kRows, 4), .block_x = kGemvThreads}, matrix.data(),
         x.data(), out.data(), kRows, kCols);
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kCols; ++i) sum += wide[row * kCols + i] * x[i];
    EXPECT_NEAR(out[row], sum, 1e-4);
  }
}

TEST_F(DecodeKernels, ToBf16RoundsToNearestEven) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {
      1.0f,        1.00390625f,  // halfway to the next: stays even
      1.01171875f,               // halfway, from odd: goes up
      -2.5f,       inf,         std::numeric_limits<float>::quiet_NaN(),
      3.4e38f};  // rounds to infinity
  std::vector<BFloat16> out(x.size());
  Launch(kernels::kToBf16, {.block_x = kThreads}, x.data(), out.data(),
         static_cast<int>(x.size()));
  EXPECT_EQ(out[0], 0x3f80);
  EXPECT_EQ(out[1], 0x3f80);
  EXPECT_EQ(out[2], 0x3f82);
  EXPECT_EQ(out[3], 0xc020);
  EXPECT_EQ(out[4], 0x7f80);
  EXPECT_EQ(out[5] & 0x7f80, 0x7f80);
  EXPECT_NE(out[5] & 0x007f, 0);
  EXPECT_EQ(out[6], 0x7f80);
}

TEST_F(DecodeKernels, RopeRotatesPairsByThePositionsAngle) {
  constexpr int kHeads = 3;
  constexpr int kDim = 8;
  const std::vector<float> before = Random(kHeads * kDim);
  const std::vector<float> frequency = {1.0f, 0.5f, 0.1f, 0.01f};
  const DecodeState state = {0, 17, 1, 64};
  std::vector<float> x = before;
  Launch(kernels::kRope, {.grid_x = kHeads, .block_x = kDim / 2}, x.data(),
         frequency.data(), &state, RopeShape{kHeads, kDim});
  for (int head = 0; head < kHeads; ++head) {
    for (int i = 0; i < kDim / 2; ++i) {
      const double angle = 17 * static_cast<double>(frequency[i]);
      const double a = before[head * kDim + i];
      const double b = before[head * kDim + i + kDim / 2];
      EXPECT_NEAR(x[head * kDim + i], a * std::cos(angle) - b * std::sin(angle),
                  1e-5);
      EXPECT_NEAR(x[head * kDim + i + kDim / 2],
                  b * std::cos(angle) + a * std::sin(angle), 1e-5);
    }
  }
}

TEST_F(DecodeKernels, KvAppendWritesOnePositionOfOneLayerAndNothingElse) {
  constexpr int kLayers = 3;
  constexpr int kHeads = 2;
  constexpr int kDim = 4;
  constexpr int kMaxSeq = 5;
  const std::vector<float> key = Random(kHeads * kDim);
  const std::vector<float> value = Random(kHeads * kDim);
  std::vector<float> keys(kLayers * kHeads * kMaxSeq * kDim, kUntouched);
  std::vector<float> values = keys;
  const DecodeState state = {0, 3, 1, kMaxSeq};
  Launch(kernels::kKvAppend, {.grid_x = kHeads, .block_x = kDim}, key.data(),
         value.data(), keys.data(), values.data(), &state,
         int64_t{kHeads * kMaxSeq * kDim}, 1, kHeads, kDim, kMaxSeq);
  size_t at = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int head = 0; head < kHeads; ++head) {
      for (int p = 0; p < kMaxSeq; ++p) {
        for (int i = 0; i < kDim; ++i, ++at) {
          const bool here = layer == 1 && p == 3;
          EXPECT_EQ(keys[at], here ? key[head * kDim + i] : kUntouched);
          EXPECT_EQ(values[at], here ? value[head * kDim + i] : kUntouched);
        }
      }
    }
  }
}

class DecodeAttention : public DecodeKernels {
 protected:
  static constexpr AttentionShape kShape = {6, 2, 16, 70, 0.25f};

  // 40 is in the second block of positions.
  static constexpr int kPositions[] = {0, 1, 31, 32, 40, 69};
};

TEST_F(DecodeAttention, ScoresAreScaledProductsUpToThePosition) {
  const std::vector<float> query = Random(kShape.heads * kShape.head_dim);
  const std::vector<float> keys =
      Random(kShape.kv_heads * kShape.max_seq * kShape.head_dim);
  for (const int position : kPositions) {
    const DecodeState state = {0, position, 1, kShape.max_seq};
    std::vector<float> scores(kShape.heads * kShape.max_seq, kUntouched);
    Launch(kernels::kScores,
           {.grid_x = Blocks(kShape.max_seq, kScoresPositions),
            .grid_y = static_cast<uint32_t>(kShape.heads),
            .block_x = kScoresThreads},
           query.data(), keys.data(), &state, scores.data(), kShape);
    for (int head = 0; head < kShape.heads; ++head) {
      for (int p = 0; p < kShape.max_seq; ++p) {
        double sum = 0;
        for (int i = 0; i < kShape.head_dim; ++i) {
          // Three query heads share a key head.
          sum += static_cast<double>(query[head * kShape.head_dim + i]) *
                 keys[((head / 3) * kShape.max_seq + p) * kShape.head_dim + i];
        }
        const float got = scores[head * kShape.max_seq + p];
        if (p <= position) {
          EXPECT_NEAR(got, sum * 0.25, 1e-5);
        } else {
          EXPECT_EQ(got, kUntouched);
        }
      }
    }
  }
}

TEST_F(DecodeAttention, SoftmaxNormalizesUpToThePosition) {
  for (const int position : kPositions) {
    const DecodeState state = {0, position, 1, kShape.max_seq};
    std::vector<float> before = Random(kShape.heads * kShape.max_seq);
    before[0] = 90.0f;  // exp would overflow fp32 without the shift
    std::vector<float> scores = before;
    Launch(kernels::kSoftmax,
           {.grid_x = static_cast<uint32_t>(kShape.heads),
            .block_x = kSoftmaxThreads,
            .shared_bytes = kSoftmaxThreads * sizeof(float)},
           scores.data(), &state, kShape);
    for (int head = 0; head < kShape.heads; ++head) {
      const float* row = before.data() + head * kShape.max_seq;
      double total = 0;
      for (int p = 0; p <= position; ++p) {
        total += std::exp(static_cast<double>(row[p]));
      }
      for (int p = 0; p < kShape.max_seq; ++p) {
        const float got = scores[head * kShape.max_seq + p];
        if (p <= position) {
          EXPECT_NEAR(got, std::exp(static_cast<double>(row[p])) / total, 1e-6);
        } else {
          EXPECT_EQ(got, row[p]);
        }
      }
    }
  }
}

TEST_F(DecodeAttention, ValuesAreWeightedUpToThePosition) {
  const std::vector<float> scores = Random(kShape.heads * kShape.max_seq);
  const std::vector<float> values =
      Random(kShape.kv_heads * kShape.max_seq * kShape.head_dim);
  const uint32_t groups = kValuesThreads / kShape.head_dim;
  for (const int position : kPositions) {
    const DecodeState state = {0, position, 1, kShape.max_seq};
    std::vector<float> out(kShape.heads * kShape.head_dim);
    Launch(kernels::kValues,
           {.grid_x = static_cast<uint32_t>(kShape.heads),
            .block_x = static_cast<uint32_t>(kShape.head_dim),
            .block_y = groups,
            .shared_bytes = kValuesThreads * sizeof(float)},
           scores.data(), values.data(), &state, out.data(), kShape);
    for (int head = 0; head < kShape.heads; ++head) {
      for (int i = 0; i < kShape.head_dim; ++i) {
        double sum = 0;
        for (int p = 0; p <= position; ++p) {
          sum +=
              static_cast<double>(scores[head * kShape.max_seq + p]) *
              values[((head / 3) * kShape.max_seq + p) * kShape.head_dim + i];
        }
        EXPECT_NEAR(out[head * kShape.head_dim + i], sum, 1e-4);
      }
    }
  }
}

TEST_F(DecodeKernels, AddAndSiluMulStayWithinTheirLength) {
  constexpr int kCount = 257;
  const std::vector<float> gate = Random(kCount);
  const std::vector<float> up = Random(kCount);
  std::vector<float> out(kCount + 1, kUntouched);
  const LaunchShape shape = {.grid_x = 2, .block_x = kThreads};
  Launch(kernels::kSiluMul, shape, gate.data(), up.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) {
    const double g = gate[i];
    EXPECT_NEAR(out[i], g / (1 + std::exp(-g)) * up[i], 1e-6);
  }
  EXPECT_EQ(out[kCount], kUntouched);
  std::vector<float> x = gate;
  x.push_back(kUntouched);
  Launch(kernels::kAdd, shape, x.data(), up.data(), kCount);
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(x[i], gate[i] + up[i]);
  EXPECT_EQ(x[kCount], kUntouched);
}

class DecodeArgmax : public DecodeKernels {
 protected:
  int32_t Argmax(const std::vector<float>& logits) {
    const int n = static_cast<int>(logits.size());
    const uint32_t blocks = Blocks(n, kArgmaxItems);
    std::vector<float> value(blocks);
    std::vector<int32_t> index(blocks);
    int32_t token = -1;
    Launch(kernels::kArgmaxBlocks,
           {.grid_x = blocks, .block_x = kArgmaxThreads}, logits.data(), n,
           value.data(), index.data());
    Launch(kernels::kArgmax, {.block_x = kArgmaxThreads}, value.data(),
           index.data(), static_cast<int>(blocks), &token);
    return token;
  }
};

TEST_F(DecodeArgmax, FindsTheLargestWhereverItIs) {
  std::vector<float> logits = Random(2500);
  for (const int at : {0, 1023, 1024, 2047, 2499}) {
    std::vector<float> changed = logits;
    changed[at] = 100.0f;
    EXPECT_EQ(Argmax(changed), at);
  }
}

TEST_F(DecodeArgmax, TheLowestIndexWinsATie) {
  std::vector<float> logits(2500, -1.0f);
  logits[2100] = logits[1500] = logits[1400] = 2.0f;
  EXPECT_EQ(Argmax(logits), 1400);
}

TEST_F(DecodeArgmax, NansAndInfinitiesGiveATokenOfTheVocabulary) {
  std::vector<float> logits(2500, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(Argmax(logits), 0);
  logits.assign(2500, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(Argmax(logits), 0);
  logits[1234] = -5.0f;
  EXPECT_EQ(Argmax(logits), 1234);
}

TEST_F(DecodeKernels, AdvanceTakesThePromptThenTheChoiceThenStops) {
  const std::vector<int32_t> prompt = {10, 11};
  std::vector<int32_t> history(3, -1);
  DecodeState state = {10, 0, 2, 3};
  const int32_t chosen = 99;
  for (int step = 0; step < 4; ++step) {
    Launch(kernels::kAdvance, {}, &state, prompt.data(), &chosen,
           history.data());
  }
  EXPECT_EQ(history, (std::vector<int32_t>{-1, 11, 99}));
  EXPECT_EQ(state.position, 2);
  EXPECT_EQ(state.token, 99);
}

}  // namespace
}  // namespace decode
