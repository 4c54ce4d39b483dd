// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/steps.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/steps/trace_builder.h"

namespace heddle::trace {
namespace {

StepList Find(const Reader& reader, const std::string& by = "auto") {
  auto steps = FindSteps(reader, {.by = by});
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  return *std::move(steps);
}

using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;

Ranges RangesOf(const StepList& list) {
  Ranges ranges;
  for (const Step& step : list.steps) {
    ranges.emplace_back(step.first_record, step.end_record);
  }
  return ranges;
}

class Steps : public testing::Test {
 protected:
  // One step: embed, four layers, head. Returns {first, last + 1}.
  std::pair<uint64_t, uint64_t> RunStep() {
    const uint64_t first = builder_.Launch(embed_);
    uint64_t last = first;
    for (int layer = 0; layer < 4; ++layer) {
      builder_.Launch(attention_);
      builder_.Launch(mlp_);
    }
    last = builder_.Launch(head_);
    return {first, last + 1};
  }

  TraceBuilder builder_;
  const uint32_t embed_ = builder_.Kernel("embed", {});
  const uint32_t attention_ = builder_.Kernel("attention", {});
  const uint32_t mlp_ = builder_.Kernel("mlp", {});
  const uint32_t head_ = builder_.Kernel("head", {});
};

TEST_F(Steps, AnEmptyTraceHasNone) {
  const auto reader = builder_.Read();
  for (const char* by : {"auto", "recorded", "graph", "nvtx", "repeat"}) {
    const StepList list = Find(*reader, by);
    EXPECT_TRUE(list.steps.empty()) << by;
    EXPECT_EQ(list.source, "") << by;
  }
}

TEST_F(Steps, AnUnknownSourceIsAnErrorThatQuotesIt) {
  const auto reader = builder_.Read();
  for (const char* by : {"", "magic", "graph:1", "repeat:", "repeat:0",
                         "repeat:x", "nvtx:", "recorded:2"}) {
    const auto steps = FindSteps(*reader, {.by = by});
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kInvalidArgument) << by;
    EXPECT_NE(std::string(steps.status().message()).find(by), std::string::npos)
        << by << ": " << steps.status().message();
  }
}

TEST_F(Steps, TheLaunchSequenceRepeats) {
  builder_.Launch(head_, {}, 7);
  Ranges expected;
  for (int i = 0; i < 5; ++i) {
    expected.push_back(RunStep());
    builder_.Wait();
  }
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "repeat");
  EXPECT_EQ(RangesOf(list), expected);
  EXPECT_EQ(list.matching, 5u);
  EXPECT_FALSE(list.shapes_vary);
  for (const Step& step : list.steps) {
    EXPECT_EQ(step.launches, 10u);
    EXPECT_EQ(step.signature, list.signature);
    EXPECT_EQ(step.snapshot_record, kNoSnapshot);
  }
}

TEST_F(Steps, CapturedLaunchesDoNotCount) {
  for (int i = 0; i < 8; ++i) builder_.Launch(mlp_, {}, 1, /*capturing=*/true);
  Ranges expected;
  for (int i = 0; i < 3; ++i) expected.push_back(RunStep());
  const auto reader = builder_.Read();
  EXPECT_EQ(RangesOf(Find(*reader)), expected);
}

TEST_F(Steps, LaunchesOfTheGraphThatDoesMostAreSteps) {
  builder_.Graph(1, {embed_, mlp_, mlp_, mlp_, mlp_, head_});
  builder_.Instantiate(0x10, 1);
  Ranges expected;
  for (int i = 0; i < 4; ++i) {
    builder_.Launch(attention_);
    const uint64_t launch = builder_.GraphLaunch(0x10, 1);
    expected.emplace_back(launch, launch + 1);
  }
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "graph");
  EXPECT_EQ(RangesOf(list), expected);
  EXPECT_EQ(list.steps[0].launches, 6u);
}

TEST_F(Steps, AGraphThatDoesLittleIsPartOfTheStep) {
  builder_.Graph(1, {mlp_});
  builder_.Instantiate(0x10, 1);
  for (int i = 0; i < 4; ++i) {
    RunStep();
    builder_.GraphLaunch(0x10, 1);
  }
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "repeat");
  ASSERT_EQ(list.steps.size(), 4u);
  EXPECT_EQ(list.steps[0].launches, 11u);
  EXPECT_EQ(Find(*reader, "graph").steps.size(), 4u);
  EXPECT_EQ(Find(*reader, "graph").steps[0].launches, 1u);
}

TEST_F(Steps, AGraphThatIsInstantiatedAnewEachTimeIsOneGraph) {
  for (uint32_t i = 1; i <= 4; ++i) {
    builder_.Graph(i, {embed_, mlp_, head_});
    builder_.Instantiate(0x10 * i, i);
    builder_.GraphLaunch(0x10 * i, i);
  }
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "graph");
  EXPECT_EQ(list.matching, 4u);
}

TEST_F(Steps, RangesThatHoldNearlyAllWorkAreSteps) {
  Ranges expected;
  RunStep();
  for (int i = 0; i < 3; ++i) {
    const uint64_t push = builder_.Push("decode");
    builder_.Push("layer");
    RunStep();
    builder_.Pop();
    expected.emplace_back(push, builder_.Pop() + 1);
  }
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "nvtx:decode");
  EXPECT_EQ(RangesOf(list), expected);
  EXPECT_EQ(Find(*reader, "nvtx:layer").steps.size(), 3u);
  EXPECT_TRUE(Find(*reader, "nvtx:other").steps.empty());
}

TEST_F(Steps, RangesOfSingleOperatorsAreNoSteps) {
  for (int i = 0; i < 4; ++i) {
    builder_.Launch(embed_);
    for (int layer = 0; layer < 3; ++layer) {
      builder_.Launch(attention_);
      builder_.Push("linear");
      builder_.Launch(mlp_);
      builder_.Launch(mlp_);
      builder_.Pop();
    }
  }
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "repeat");
  EXPECT_EQ(list.steps.size(), 4u);
  EXPECT_EQ(Find(*reader, "nvtx").source, "nvtx:linear");
}

TEST_F(Steps, UnbalancedRangesAreIgnored) {
  builder_.Pop();
  builder_.Push("decode");
  for (int i = 0; i < 3; ++i) RunStep();
  const auto reader = builder_.Read();
  EXPECT_EQ(Find(*reader).source, "repeat");
  EXPECT_TRUE(Find(*reader, "nvtx:decode").steps.empty());
}

TEST_F(Steps, ASnapshotBelongsToTheStepThatStartsFromIt) {
  RunStep();
  RunStep();
  builder_.Mark(fb::StepOp::kBegin, 0);
  const uint64_t snapshot = builder_.Snapshot(1);
  const auto third = RunStep();
  builder_.Mark(fb::StepOp::kEnd, 0);
  RunStep();
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "repeat");
  ASSERT_EQ(list.steps.size(), 4u);
  EXPECT_EQ(list.steps[2].first_record, third.first);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(list.steps[i].snapshot_record, i == 2 ? snapshot : kNoSnapshot);
  }
  const StepList recorded = Find(*reader, "recorded");
  ASSERT_EQ(recorded.steps.size(), 1u);
  EXPECT_EQ(recorded.steps[0].snapshot_record, snapshot);
  EXPECT_EQ(recorded.steps[0].launches, 10u);
}

TEST_F(Steps, TheRecordersMarkSaysWhereAStepBegins) {
  // The recorder saw the step begin with the head.
  std::vector<uint64_t> begins;
  for (int i = 0; i < 5; ++i) {
    RunStep();
    if (i == 2) {
      builder_.Mark(fb::StepOp::kBegin, 0);
      builder_.Snapshot(1);
    }
    begins.push_back(builder_.Launch(head_, {}, 3));
  }
  builder_.Mark(fb::StepOp::kEnd, 0);
  const auto reader = builder_.Read();
  const StepList list = Find(*reader, "repeat");
  ASSERT_EQ(list.steps.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(list.steps[i].first_record, begins[i]);
  }
  EXPECT_NE(list.steps[2].snapshot_record, kNoSnapshot);
}

TEST_F(Steps, OneRecordedStepIsNotCutIntoItsLayers) {
  builder_.Mark(fb::StepOp::kBegin, 7);
  RunStep();
  builder_.Mark(fb::StepOp::kEnd, 7);
  const auto reader = builder_.Read();
  const StepList list = Find(*reader);
  EXPECT_EQ(list.source, "recorded");
  ASSERT_EQ(list.steps.size(), 1u);
  EXPECT_EQ(list.steps[0].launches, 10u);
}

TEST_F(Steps, AMarkWithoutItsEndIsNoStep) {
  builder_.Mark(fb::StepOp::kBegin, 0);
  RunStep();
  const auto reader = builder_.Read();
  EXPECT_TRUE(Find(*reader, "recorded").steps.empty());
}

TEST_F(Steps, TheSameProgramHasTheSameSignatureInAnotherTrace) {
  for (int i = 0; i < 3; ++i) RunStep();
  const auto reader = builder_.Read();
  TraceBuilder other;
  other.Kernel("unused", {});  // so that the ids differ
  const uint32_t embed = other.Kernel("embed", {});
  const uint32_t attention = other.Kernel("attention", {});
  const uint32_t mlp = other.Kernel("mlp", {});
  const uint32_t head = other.Kernel("head", {});
  for (int i = 0; i < 2; ++i) {
    other.Launch(embed);
    for (int layer = 0; layer < 4; ++layer) {
      other.Launch(attention);
      other.Launch(mlp);
    }
    other.Launch(head);
  }
  const auto other_reader = other.Read();
  EXPECT_EQ(Find(*reader).signature, Find(*other_reader).signature);
}

}  // namespace
}  // namespace heddle::trace
