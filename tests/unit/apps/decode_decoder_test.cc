// SPDX-License-Identifier: Apache-2.0
//
// The whole decoder on host kernels, against the reference.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "benchmarks/apps/decode/decoder.h"
#include "benchmarks/apps/decode/options.h"
#include "benchmarks/apps/decode/reference.h"
#include "benchmarks/apps/decode/session.h"
#include "benchmarks/apps/decode/weights.h"
#include "tests/unit/apps/host_backend.h"

namespace decode {
namespace {

Options MakeOptions(const std::vector<std::string>& args) {
  absl::StatusOr<Options> options = ParseOptions(args);
  EXPECT_TRUE(options.ok()) << options.status();
  return *options;
}

struct Generated {
  std::vector<int32_t> tokens;
  CheckResult check;
  int launches = 0;
  size_t graph_nodes = 0;
};

// Generates with host kernels and checks every step. `spoil` may change the
// weights that the device gets, not those of the reference.
template <typename Spoil>
Generated GenerateWith(const Options& options, const Spoil& spoil,
                       uint32_t block_order = 1) {
  ModelWeights weights = SeededWeights(options.model, options.seed);
  RoundWeights(options.dtype, &weights);
  ModelWeights device_weights = weights;
  spoil(&device_weights);
  HostBackend backend(block_order);
  auto decoder = Decoder::Create(options.model, device_weights, options.dtype,
                                 &backend, &backend, nullptr);
  EXPECT_TRUE(decoder.ok()) << decoder.status();
  Session session(options, &backend, decoder->get());
  EXPECT_TRUE(session.Prepare().ok());
  Reference reference(options.model, weights, /*round_inputs=*/false);
  Generated run;
  run.check.tolerance = 2e-4;
  auto tokens = session.Generate(&reference, &run.check);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  run.tokens = *tokens;
  run.launches = backend.launches();
  run.graph_nodes = backend.graph_nodes();
  return run;
}

Generated Generate(const Options& options, uint32_t block_order = 1) {
  return GenerateWith(
      options, [](ModelWeights*) {}, block_order);
}

TEST(Decode, EveryStepMatchesTheReference) {
  const Options options = MakeOptions({"--tokens", "40"});
  const Generated run = Generate(options);
  EXPECT_TRUE(run.check.ok()) << run.check.max_error;
  EXPECT_EQ(run.check.steps, 40);
  EXPECT_LT(run.check.max_error, 2e-5);
  EXPECT_GT(run.check.max_error, 0);  // something was compared
  // A model that says one word only would hide errors of position and cache.
  EXPECT_GT(std::set<int32_t>(run.tokens.begin(), run.tokens.end()).size(), 8u);
}

TEST(Decode, OddShapesMatchTheReference) {
  const std::vector<std::vector<std::string>> shapes = {
      {"--layers=1", "--hidden=8", "--heads=1", "--kv-heads=1", "--head-dim=8",
       "--intermediate=8", "--vocab=3", "--max-seq=33", "--tokens=32"},
      {"--layers=2", "--hidden=96", "--heads=6", "--kv-heads=6",
       "--intermediate=264", "--vocab=1500", "--max-seq=40", "--tokens=36"},
      {"--layers=2", "--hidden=64", "--heads=8", "--kv-heads=1",
       "--head-dim=18", "--vocab=1024", "--tokens=20", "--tie-embeddings"},
      {"--layers=1", "--hidden=256", "--heads=1", "--kv-heads=1",
       "--tokens=10"},
  };
  for (const std::vector<std::string>& shape : shapes) {
    const Generated run = Generate(MakeOptions(shape));
    EXPECT_TRUE(run.check.ok()) << shape[1] << ": " << run.check.max_error;
  }
}

TEST(Decode, Bf16WeightsMatchAReferenceWithTheSameWeights) {
  const Generated run = Generate(MakeOptions({"--dtype", "bf16"}));
  EXPECT_TRUE(run.check.ok()) << run.check.max_error;
}

TEST(Decode, AWrongWeightIsNoticed) {
  const Options options = MakeOptions({});
  for (int layer = 0; layer < options.model.layers; ++layer) {
    const Generated run = GenerateWith(options, [&](ModelWeights* weights) {
      weights->layers[layer].up.data[17] += 0.5f;
    });
    EXPECT_FALSE(run.check.ok()) << "layer " << layer;
  }
}

TEST(Decode, ANanIsNoticedAndDoesNotLeadOutOfTheVocabulary) {
  const Options options = MakeOptions({"--tokens=3"});
  const Generated run = GenerateWith(options, [](ModelWeights* weights) {
    weights->final_norm.data[0] = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_FALSE(run.check.ok());
  for (const int32_t token : run.tokens) {
    EXPECT_GE(token, 0);
    EXPECT_LT(token, options.model.vocab);
  }
}

TEST(Decode, AGraphReplayContinuesByItself) {
  const Generated stream = Generate(MakeOptions({"--tokens=30"}));
  const Generated graph = Generate(MakeOptions({"--tokens=30", "--graph"}));
  EXPECT_EQ(graph.tokens, stream.tokens);
  EXPECT_TRUE(graph.check.ok());
  EXPECT_EQ(graph.graph_nodes, 4u * 18 + 6);
  EXPECT_EQ(graph.launches, stream.launches);
}

TEST(Decode, TheOrderOfBlocksDoesNotMatter) {
  const Options options = MakeOptions({"--tokens=8"});
  const Generated first = Generate(options, 1);
  for (uint32_t order = 2; order < 6; ++order) {
    const Generated other = Generate(options, order);
    EXPECT_EQ(other.tokens, first.tokens);
    EXPECT_EQ(other.check.max_error, first.check.max_error);
  }
}

TEST(Decode, ThePromptIsFollowedThenLeft) {
  const Options options =
      MakeOptions({"--prompt=5,6,7,8", "--tokens=6", "--stream-tokens"});
  const Generated run = Generate(options);
  ASSERT_EQ(run.tokens.size(), 10u);
  EXPECT_EQ(std::vector<int32_t>(run.tokens.begin(), run.tokens.begin() + 4),
            options.prompt);
  EXPECT_TRUE(run.check.ok());
  EXPECT_EQ(run.check.steps, 9);
}

TEST(Decode, AnotherSeedSaysSomethingElse) {
  EXPECT_NE(Generate(MakeOptions({"--seed=1"})).tokens,
            Generate(MakeOptions({"--seed=2"})).tokens);
}

TEST(Decode, AFullSequenceStaysWhereItIs) {
  const Options options = MakeOptions({"--max-seq=4", "--tokens=3"});
  const ModelWeights weights = SeededWeights(options.model, 1);
  HostBackend backend;
  auto decoder = Decoder::Create(options.model, weights, DataType::kF32,
                                 &backend, &backend, nullptr);
  ASSERT_TRUE(decoder.ok());
  ASSERT_TRUE((*decoder)->Reset({1}).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE((*decoder)->EnqueueStep().ok());
  const auto state = (*decoder)->ReadState();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->position, 3);
}

TEST(Decode, AResetSequenceRepeatsItself) {
  const Options options = MakeOptions({});
  const ModelWeights weights = SeededWeights(options.model, 1);
  HostBackend backend;
  auto decoder = Decoder::Create(options.model, weights, DataType::kF32,
                                 &backend, &backend, nullptr);
  ASSERT_TRUE(decoder.ok());
  Session session(options, &backend, decoder->get());
  const auto first = session.Generate(nullptr, nullptr);
  const auto second = session.Generate(nullptr, nullptr);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(Decode, BadPromptsAreRefused) {
  const Options options = MakeOptions({});
  const ModelWeights weights = SeededWeights(options.model, 1);
  HostBackend backend;
  auto decoder = Decoder::Create(options.model, weights, DataType::kF32,
                                 &backend, &backend, nullptr);
  ASSERT_TRUE(decoder.ok());
  EXPECT_FALSE((*decoder)->Reset({}).ok());
  EXPECT_FALSE((*decoder)->Reset({options.model.vocab}).ok());
  EXPECT_FALSE((*decoder)->Reset({-1}).ok());
  EXPECT_FALSE((*decoder)->Reset(std::vector<int32_t>(65, 1)).ok());
}

TEST(Decode, BenchStartsNewSequencesWhenOneIsFull) {
  const Options options =
      MakeOptions({"--max-seq=5", "--tokens=4", "--bench=11"});
  const ModelWeights weights = SeededWeights(options.model, 1);
  HostBackend backend;
  auto decoder = Decoder::Create(options.model, weights, DataType::kF32,
                                 &backend, &backend, nullptr);
  ASSERT_TRUE(decoder.ok());
  Session session(options, &backend, decoder->get());
  const auto bench = session.Bench();
  ASSERT_TRUE(bench.ok()) << bench.status();
  // This backend's timer i reads i + 1 ms.
  EXPECT_EQ(bench->count, 11);
  EXPECT_DOUBLE_EQ(bench->min_us, 1000);
  EXPECT_DOUBLE_EQ(bench->median_us, 6000);
  EXPECT_DOUBLE_EQ(bench->max_us, 11000);
}

TEST(CompareLogits, ErrorsAreSharesOfTheLargestLogit) {
  CheckResult check;
  check.tolerance = 0.05;
  CompareLogits({1.0f, -10.2f, 3.0f}, {1.0f, -10.0f, 3.0f}, 2, &check);
  EXPECT_NEAR(check.max_error, 0.02, 1e-6);
  EXPECT_TRUE(check.ok());
  CompareLogits({1.0f, -10.0f, 3.0f}, {1.0f, -10.0f, 3.0f}, 0, &check);
  EXPECT_EQ(check.wrong_tokens, 1);
  EXPECT_FALSE(check.ok());
  EXPECT_EQ(check.steps, 2);
}

TEST(CompareLogits, ATieMayFallEitherWay) {
  CheckResult check;
  check.tolerance = 1e-4;
  CompareLogits({1.0f, 1.00001f}, {1.00001f, 1.0f}, 1, &check);
  EXPECT_TRUE(check.ok());
}

}  // namespace
}  // namespace decode
