// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "benchmarks/apps/decode/reference.h"
#include "benchmarks/apps/decode/safetensors.h"
#include "benchmarks/apps/decode/weights.h"
#include "tests/unit/apps/safetensors_builder.h"

namespace decode {
namespace {

using testing::HasSubstr;

ModelConfig SmallConfig() {
  ModelConfig config;
  config.layers = 2;
  config.hidden = 32;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.intermediate = 48;
  config.vocab = 100;
  return config;
}

TEST(Weights, SeededTensorsKeepVarianceAndAreRepeatable) {
  const ModelConfig config;
  const ModelWeights weights = SeededWeights(config, 5);
  const Tensor& down = weights.layers[1].down;
  double sum = 0;
  double squares = 0;
  for (const float value : down.data) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const double count = static_cast<double>(down.data.size());
  EXPECT_NEAR(sum / count, 0, 0.001);
  // A row's squares add up to 1.
  EXPECT_NEAR(squares / count * down.cols, 1, 0.02);
  EXPECT_EQ(SeededWeights(config, 5).layers[1].down.data, down.data);
  EXPECT_NE(SeededWeights(config, 6).layers[1].down.data, down.data);
  EXPECT_NE(weights.layers[0].down.data, down.data);
}

TEST(Weights, ACheckpointGivesBackItsShapeAndItsNumbers) {
  for (const bool tied : {false, true}) {
    ModelConfig config = SmallConfig();
    config.tied_embeddings = tied;
    const ModelWeights weights = SeededWeights(config, 9);
    const TemporaryFile bytes(CheckpointBytes(config, weights));
    const auto file = SafetensorsFile::Open(bytes.path());
    ASSERT_TRUE(file.ok()) << file.status();
    ModelConfig inferred;
    inferred.heads = config.heads;
    const absl::Status status = InferConfig(*file, &inferred);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(inferred.layers, config.layers);
    EXPECT_EQ(inferred.hidden, config.hidden);
    EXPECT_EQ(inferred.kv_heads, config.kv_heads);
    EXPECT_EQ(inferred.head_dim, config.head_dim);
    EXPECT_EQ(inferred.intermediate, config.intermediate);
    EXPECT_EQ(inferred.vocab, config.vocab);
    EXPECT_EQ(inferred.tied_embeddings, tied);
    const auto read = ReadWeights(*file, inferred);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->parameters(), weights.parameters());
    Reference from_seed(config, weights, false);
    Reference from_file(inferred, *read, false);
    for (const int token : {3, 99, 0}) {
      EXPECT_EQ(from_file.Forward(token), from_seed.Forward(token));
    }
  }
}

TEST(Weights, AHeadCountThatCannotBeIsRefused) {
  const ModelConfig config = SmallConfig();
  const TemporaryFile bytes(CheckpointBytes(config, SeededWeights(config, 9)));
  const auto file = SafetensorsFile::Open(bytes.path());
  ASSERT_TRUE(file.ok());
  ModelConfig inferred;
  for (const int heads : {0, 3, 1}) {
    inferred.heads = heads;
    const absl::Status status = InferConfig(*file, &inferred);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << heads;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--heads")) << heads;
  }
}

TEST(Weights, AMissingOrMisshapenTensorIsNamed) {
  ModelConfig config = SmallConfig();
  const ModelWeights weights = SeededWeights(config, 9);
  const TemporaryFile bytes(CheckpointBytes(config, weights));
  const auto file = SafetensorsFile::Open(bytes.path());
  ASSERT_TRUE(file.ok());
  ModelConfig more = config;
  more.layers = 3;
  EXPECT_THAT(std::string(ReadWeights(*file, more).status().message()),
              HasSubstr("model.layers.2.input_layernorm.weight"));
  ModelConfig wider = config;
  wider.intermediate = 56;
  EXPECT_THAT(std::string(ReadWeights(*file, wider).status().message()),
              HasSubstr("[48, 32]; the model needs [56, 32]"));
}

TEST(Weights, AFileThatIsNoLlamaIsNamed) {
  const TemporaryFile bytes(SafetensorsBytes(
      R"({"conv1":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
  const auto file = SafetensorsFile::Open(bytes.path());
  ASSERT_TRUE(file.ok());
  ModelConfig config;
  const std::string message(InferConfig(*file, &config).message());
  EXPECT_THAT(message, HasSubstr("model.embed_tokens.weight"));
  EXPECT_THAT(message, HasSubstr("conv1"));
}

TEST(Weights, RoundingLeavesWhatBf16Holds) {
  EXPECT_EQ(RoundToBf16(1.0f), 1.0f);
  EXPECT_EQ(RoundToBf16(-0.0f), 0.0f);
  EXPECT_EQ(RoundToBf16(3.14159265f), 3.140625f);
  ModelWeights weights = SeededWeights(SmallConfig(), 1);
  const ModelWeights before = weights;
  RoundWeights(DataType::kF32, &weights);
  EXPECT_EQ(weights.embedding.data, before.embedding.data);
  RoundWeights(DataType::kBf16, &weights);
  EXPECT_EQ(weights.final_norm.data, before.final_norm.data);
  for (size_t i = 0; i < weights.embedding.data.size(); ++i) {
    const float rounded = weights.embedding.data[i];
    EXPECT_EQ(RoundToBf16(rounded), rounded);
    EXPECT_NEAR(rounded, before.embedding.data[i],
                std::abs(rounded) / 256 + 1e-30);
  }
}

TEST(Reference, AttendingToOnePositionReturnsItsValue) {
  // With one position the softmax is 1 whatever the scores, so queries and keys
  // do not matter.
  ModelConfig config = SmallConfig();
  ModelWeights weights = SeededWeights(config, 4);
  Reference first(config, weights, false);
  const std::vector<float> before = first.Forward(7);
  for (LayerWeights& layer : weights.layers) {
    for (float& value : layer.query.data) value *= -3.0f;
    for (float& value : layer.key.data) value += 1.0f;
  }
  Reference second(config, weights, false);
  const std::vector<float> after = second.Forward(7);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after[i], before[i], 1e-6);
  }
  // At the next position they do.
  EXPECT_NE(first.Forward(8), second.Forward(8));
}

}  // namespace
}  // namespace decode
