// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/step_params.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/steps/trace_builder.h"

namespace heddle::trace {
namespace {

struct Result {
  std::unique_ptr<Reader> reader;
  StepParams params;
};

Result Compare(TraceBuilder& builder) {
  Result result;
  result.reader = builder.Read();
  auto steps = FindSteps(*result.reader, {});
  EXPECT_TRUE(steps.ok());
  result.params = CompareStepParams(*result.reader, *steps);
  return result;
}

// Steps of two launches, the second with the parameters given.
Result CompareParams(const std::vector<uint32_t>& sizes,
                     const std::vector<std::vector<uint8_t>>& params) {
  TraceBuilder builder;
  const uint32_t first = builder.Kernel("first", {});
  const uint32_t second = builder.Kernel("second", sizes);
  for (const std::vector<uint8_t>& bytes : params) {
    builder.Launch(first);
    builder.Launch(second, bytes);
  }
  return Compare(builder);
}

TEST(StepParams, WhatNeverChangesIsConstant) {
  const auto bytes = BytesOf(uint64_t{0x7f00}, int32_t{5});
  const Result result = CompareParams({8, 4}, {bytes, bytes, bytes});
  EXPECT_EQ(result.params.steps, 3u);
  EXPECT_EQ(result.params.launches, 2u);
  EXPECT_EQ(result.params.constant, 2u);
  EXPECT_TRUE(result.params.varying.empty());
}

TEST(StepParams, ACounterIsAffine) {
  std::vector<std::vector<uint8_t>> params;
  for (int32_t i = 0; i < 5; ++i) {
    params.push_back(
        BytesOf(uint64_t{0x7f00}, int32_t{512 + 3 * i}, int32_t{40 - i}));
  }
  const StepParams result = CompareParams({8, 4, 4}, params).params;
  EXPECT_EQ(result.constant, 1u);
  EXPECT_EQ(result.affine, 2u);
  ASSERT_EQ(result.varying.size(), 2u);
  EXPECT_EQ(result.varying[0].launch, 1u);
  EXPECT_EQ(result.varying[0].param, 1u);
  EXPECT_EQ(result.varying[0].offset, 8u);
  EXPECT_EQ(result.varying[0].size, 4u);
  EXPECT_EQ(result.varying[0].variation, Variation::kAffine);
  EXPECT_EQ(result.varying[0].first, 512u);
  EXPECT_EQ(result.varying[0].slope, 3);
  EXPECT_EQ(result.varying[1].first, 40u);
  EXPECT_EQ(result.varying[1].slope, -1);
}

TEST(StepParams, APointerThatAdvancesIsAffineThroughACarry) {
  std::vector<std::vector<uint8_t>> params;
  for (uint64_t i = 0; i < 4; ++i) {
    params.push_back(BytesOf(uint64_t{0x7f00fffff000} + 0x800 * i));
  }
  const StepParams result = CompareParams({8}, params).params;
  ASSERT_EQ(result.varying.size(), 1u);
  EXPECT_EQ(result.varying[0].size, 8u);
  EXPECT_EQ(result.varying[0].variation, Variation::kAffine);
  EXPECT_EQ(result.varying[0].first, 0x7f00fffff000u);
  EXPECT_EQ(result.varying[0].slope, 0x800);
}

TEST(StepParams, WhatJumpsIsOther) {
  std::vector<std::vector<uint8_t>> params;
  for (const int32_t value : {1, 2, 4, 8}) params.push_back(BytesOf(value));
  const StepParams result = CompareParams({4}, params).params;
  EXPECT_EQ(result.other, 1u);
  ASSERT_EQ(result.varying.size(), 1u);
  EXPECT_EQ(result.varying[0].variation, Variation::kOther);
}

TEST(StepParams, WhatChangesLateIsOther) {
  std::vector<std::vector<uint8_t>> params;
  for (const int32_t value : {1, 1, 1, 2}) params.push_back(BytesOf(value));
  const StepParams result = CompareParams({4}, params).params;
  EXPECT_EQ(result.other, 1u);
  EXPECT_EQ(result.affine, 0u);
}

TEST(StepParams, TwoStepsAreTooFewToCallAnythingAffine) {
  const StepParams result =
      CompareParams({4}, {BytesOf(int32_t{1}), BytesOf(int32_t{2})}).params;
  EXPECT_EQ(result.other, 1u);
  EXPECT_EQ(result.affine, 0u);
}

TEST(StepParams, WordsOfAStructAreToldApart) {
  struct Struct {
    int32_t position;
    int32_t length;
    uint64_t pointer;
    int32_t random;
    int32_t constant;
  };
  std::vector<std::vector<uint8_t>> params;
  const int32_t values[] = {3, 17, 4, 99};
  for (int32_t i = 0; i < 4; ++i) {
    params.push_back(BytesOf(Struct{
        i, 100 - 2 * i, 0x7f00fffffc00 + uint64_t{0x200} * i, values[i], 5}));
  }
  const StepParams result = CompareParams({24}, params).params;
  EXPECT_EQ(result.other, 1u);  // one parameter, as bad as its worst word
  ASSERT_EQ(result.varying.size(), 4u);
  EXPECT_EQ(result.varying[0].offset, 0u);
  EXPECT_EQ(result.varying[0].size, 4u);
  EXPECT_EQ(result.varying[0].slope, 1);
  EXPECT_EQ(result.varying[1].offset, 4u);
  EXPECT_EQ(result.varying[1].slope, -2);
  EXPECT_EQ(result.varying[2].offset, 8u);
  EXPECT_EQ(result.varying[2].size, 8u);
  EXPECT_EQ(result.varying[2].slope, 0x200);
  EXPECT_EQ(result.varying[3].offset, 16u);
  EXPECT_EQ(result.varying[3].variation, Variation::kOther);
}

TEST(StepParams, GraphParametersAreThoseOfTheUpdatedNode) {
  TraceBuilder builder;
  const uint32_t kernel = builder.Kernel("kernel", {4});
  builder.Graph(1, {kernel, kernel}, BytesOf(int32_t{10}));
  builder.Instantiate(0x10, 1);
  for (int32_t i = 0; i < 4; ++i) {
    if (i > 0) builder.UpdateNode(0x10, 1, 1, kernel, BytesOf(10 + 5 * i));
    builder.GraphLaunch(0x10, 1);
  }
  const StepParams result = Compare(builder).params;
  EXPECT_EQ(result.steps, 4u);
  EXPECT_EQ(result.constant, 1u);
  ASSERT_EQ(result.varying.size(), 1u);
  EXPECT_EQ(result.varying[0].launch, 1u);
  EXPECT_EQ(result.varying[0].first, 10u);
  EXPECT_EQ(result.varying[0].slope, 5);
}

TEST(StepParams, AStepThatIsLeftOutStillCounts) {
  // The third occurrence is interrupted; the counter goes on.
  TraceBuilder builder;
  const uint32_t a = builder.Kernel("a", {4});
  const uint32_t b = builder.Kernel("b", {});
  for (int32_t i = 0; i < 6; ++i) {
    builder.Push("step");
    builder.Launch(a, BytesOf(100 + i));
    if (i == 2) builder.Launch(b, {}, 9);
    builder.Launch(b);
    builder.Pop();
  }
  const StepParams result = Compare(builder).params;
  EXPECT_EQ(result.steps, 5u);
  EXPECT_EQ(result.affine, 1u);
  ASSERT_EQ(result.varying.size(), 1u);
  EXPECT_EQ(result.varying[0].first, 100u);
  EXPECT_EQ(result.varying[0].slope, 1);
}

TEST(StepParams, ParametersOfAnUnknownKernelAreOneBlock) {
  TraceBuilder builder;
  for (int32_t i = 0; i < 3; ++i) {
    builder.Launch(77, BytesOf(uint64_t{1}, int32_t{i}));
  }
  const StepParams result = Compare(builder).params;
  EXPECT_EQ(result.affine, 1u);
  ASSERT_EQ(result.varying.size(), 1u);
  EXPECT_EQ(result.varying[0].param, ~uint32_t{0});
  EXPECT_EQ(result.varying[0].offset, 8u);
}

}  // namespace
}  // namespace heddle::trace
