// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "benchmarks/apps/decode/options.h"

namespace decode {
namespace {

using testing::HasSubstr;

std::string Refusal(const std::vector<std::string>& args) {
  const auto options = ParseOptions(args);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(Options, DefaultsAreAModelThatTheKernelsCanRun) {
  const auto options = ParseOptions({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->model.Validate().ok());
  EXPECT_EQ(options->model.head_dim,
            options->model.hidden / options->model.heads);
  EXPECT_FALSE(options->graph || options->check || options->help);
}

TEST(Options, EveryOptionReachesItsField) {
  const auto options = ParseOptions(absl::StrSplit(
      "--layers 3 --hidden=256 --heads 8 --kv-heads 4 --intermediate 512 "
      "--vocab=1000 --max-seq 99 --rope-theta=5e5 --tie-embeddings "
      "--dtype=bf16 --seed 12345678901234567890 --prompt=3,0,7 --tokens 20 "
      "--graph --gemm=cublas --load dlsym --image=cubin --device=1 "
      "--stream-tokens --steps-range --check --bench=5 --json -",
      ' '));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->model.layers, 3);
  EXPECT_EQ(options->model.hidden, 256);
  EXPECT_EQ(options->model.heads, 8);
  EXPECT_EQ(options->model.kv_heads, 4);
  EXPECT_EQ(options->model.head_dim, 32);
  EXPECT_EQ(options->model.intermediate, 512);
  EXPECT_EQ(options->model.vocab, 1000);
  EXPECT_EQ(options->model.max_seq, 99);
  EXPECT_TRUE(options->model.tied_embeddings);
  EXPECT_EQ(options->model.rope_theta, 500000.0f);
  EXPECT_EQ(options->dtype, DataType::kBf16);
  EXPECT_EQ(options->seed, 12345678901234567890u);
  EXPECT_EQ(options->prompt, (std::vector<int32_t>{3, 0, 7}));
  EXPECT_EQ(options->tokens, 20);
  EXPECT_TRUE(options->graph);
  EXPECT_EQ(options->gemm, GemmKind::kCublas);
  EXPECT_EQ(options->load, "dlsym");
  EXPECT_EQ(options->image, "cubin");
  EXPECT_EQ(options->device, 1);
  EXPECT_TRUE(options->stream_tokens);
  EXPECT_TRUE(options->steps_range);
  EXPECT_TRUE(options->check);
  EXPECT_EQ(options->bench, 5);
  EXPECT_EQ(options->json_path, "-");
}

TEST(Options, APresetCanBeChangedByWhatFollows) {
  const auto options = ParseOptions({"--preset=1b", "--layers=2"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->model.hidden, 2048);
  EXPECT_EQ(options->model.head_dim, 64);
  EXPECT_EQ(options->model.vocab, 128256);
  EXPECT_EQ(options->model.layers, 2);
  // The preset comes last: it wins.
  EXPECT_EQ(ParseOptions({"--layers=2", "--preset=1b"})->model.layers, 16);
}

TEST(Options, AHeadWidthMayDifferFromHiddenByHeads) {
  const auto options =
      ParseOptions({"--hidden=64", "--heads=4", "--head-dim=64"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->model.head_dim, 64);
  EXPECT_THAT(Refusal({"--hidden=128", "--heads=3", "--kv-heads=1"}),
              HasSubstr("--head-dim"));
}

TEST(Options, WhatIsWrongIsNamed) {
  EXPECT_THAT(Refusal({"--tokns=3"}), HasSubstr("--tokns"));
  EXPECT_THAT(Refusal({"extra"}), HasSubstr("\"extra\""));
  EXPECT_THAT(Refusal({"--tokens"}), HasSubstr("--tokens wants a value"));
  EXPECT_THAT(Refusal({"--tokens=0"}), HasSubstr("at least 1"));
  EXPECT_THAT(Refusal({"--tokens=3x"}), HasSubstr("--tokens \"3x\""));
  EXPECT_THAT(Refusal({"--tokens=99999999999"}), HasSubstr("whole number"));
  EXPECT_THAT(Refusal({"--graph=yes"}), HasSubstr("takes no value"));
  EXPECT_THAT(Refusal({"--dtype=f16"}), HasSubstr("f32, bf16"));
  EXPECT_THAT(Refusal({"--load=ld"}), HasSubstr("direct, dlsym"));
  EXPECT_THAT(Refusal({"--preset=70b"}), HasSubstr("tiny, 1b"));
  EXPECT_THAT(Refusal({"--prompt=1,,2"}), HasSubstr("--prompt"));
  EXPECT_THAT(Refusal({"--prompt=512"}), HasSubstr("--vocab 512"));
  EXPECT_THAT(Refusal({"--seed=-1"}), HasSubstr("--seed"));
  EXPECT_THAT(Refusal({"--device=-1"}), HasSubstr("--device"));
  EXPECT_THAT(Refusal({"--json="}), HasSubstr("file name"));
  for (const char* theta : {"0", "-1", "inf", "nan", "1e50", "ten"}) {
    EXPECT_THAT(Refusal({"--rope-theta", theta}), HasSubstr("above 0"))
        << theta;
  }
}

TEST(Options, ShapesThatTheKernelsCannotRunAreRefused) {
  EXPECT_THAT(Refusal({"--kv-heads=3"}), HasSubstr("divide heads"));
  EXPECT_THAT(Refusal({"--head-dim=33"}), HasSubstr("even"));
  EXPECT_THAT(Refusal({"--head-dim=512"}), HasSubstr("between 1 and 256"));
  EXPECT_THAT(Refusal({"--intermediate=100"}), HasSubstr("multiple of 8"));
  EXPECT_THAT(Refusal({"--hidden=132", "--head-dim=32"}),
              HasSubstr("multiple of 8"));
  EXPECT_THAT(Refusal({"--vocab=1"}), HasSubstr("vocab"));
}

TEST(Options, TheSequenceMustFitTheCache) {
  EXPECT_EQ(Refusal({"--max-seq=10", "--tokens=9"}), "");
  EXPECT_THAT(Refusal({"--max-seq=10", "--tokens=10"}),
              HasSubstr("--max-seq 11"));
}

TEST(Options, HelpShowsEveryOptionWithinEightyColumns) {
  const std::string help = HelpText("decode");
  for (const char* name :
       {"--preset", "--layers", "--weights", "--graph", "--load", "--check",
        "--bench", "--json", "--help", "Exit codes"}) {
    EXPECT_THAT(help, HasSubstr(name));
  }
  size_t begin = 0;
  while (begin < help.size()) {
    const size_t end = help.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - begin, 80u) << help.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Options, HelpWinsOverErrorsOfOtherOptionsTogether) {
  const auto options = ParseOptions({"--help", "--kv-heads=3"});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->help);
}

}  // namespace
}  // namespace decode
