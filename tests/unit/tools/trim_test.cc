// SPDX-License-Identifier: Apache-2.0
#include "tools/trim.h"

#include <map>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "runtime/trace/steps.h"
#include "tests/unit/tools/synthetic_reader.h"

namespace heddle::tools {
namespace {

class TrimTest : public testing::Test {
 protected:
  TrimTest() : reader_(SyntheticReader()) {
    auto steps = trace::FindSteps(*reader_, {});
    EXPECT_TRUE(steps.ok());
    steps_ = *std::move(steps);
  }

  TrimRequest Request(size_t step) const {
    TrimRequest request;
    request.first_record = steps_.steps[step].first_record;
    request.end_record = steps_.steps[step].end_record;
    request.contains = [](uint64_t) { return true; };
    return request;
  }

  // How many records of each type are kept.
  std::map<std::string, int> Kept(const TrimPlan& plan) const {
    std::map<std::string, int> kept;
    for (const trace::Record& record : reader_->records()) {
      if (plan.keep[record.index]) ++kept[trace::RecordTypeName(record.type)];
    }
    return kept;
  }

  // Ids, addresses and hashes that kept records name must be of kept records.
  void ExpectClosed(const TrimPlan& plan, bool images, bool memory) const {
    std::set<uint32_t> kernels;
    std::set<uint32_t> modules;
    std::set<uint32_t> stored;
    std::set<std::string> blobs;
    for (const trace::Record& record : reader_->records()) {
      if (!plan.keep[record.index]) continue;
      if (const auto* kernel = record.As<fb::Kernel>()) {
        kernels.insert(kernel->id());
        EXPECT_EQ(modules.count(kernel->module_id()), 1u);
      } else if (const auto* module = record.As<fb::Module>()) {
        modules.insert(module->id());
        EXPECT_EQ(stored.count(module->image()), 1u);
      } else if (const auto* image = record.As<fb::Image>()) {
        stored.insert(image->id());
      } else if (const auto* launch = record.As<fb::Launch>()) {
        EXPECT_EQ(kernels.count(launch->head()->kernel()), 1u);
      } else if (const auto* blob = record.As<fb::Blob>()) {
        blobs.insert(
            trace::Hash128{blob->hash()->lo(), blob->hash()->hi()}.ToHex());
      }
    }
    const auto has = [&](const fb::Hash128* hash) {
      return blobs.count(trace::Hash128{hash->lo(), hash->hi()}.ToHex()) == 1;
    };
    for (const trace::Record& record : reader_->records()) {
      if (!plan.keep[record.index]) continue;
      if (const auto* image = record.As<fb::Image>();
          image != nullptr && image->stored()) {
        EXPECT_EQ(has(image->hash()), images);
      } else if (const auto* copy = record.As<fb::Memcpy>();
                 copy != nullptr && copy->data() != nullptr) {
        EXPECT_EQ(has(copy->data()), memory);
      } else if (const auto* range = record.As<fb::MemoryRange>();
                 range != nullptr && range->fill() == fb::FillKind::kExact) {
        EXPECT_TRUE(memory && has(range->hash()));
      }
    }
  }

  std::unique_ptr<trace::Reader> reader_;
  trace::StepList steps_;
};

TEST_F(TrimTest, AStepWithASnapshotNeedsNothingBeforeIt) {
  const TrimPlan plan = PlanTrim(*reader_, Request(2));
  ASSERT_TRUE(plan.snapshot_record.has_value());
  EXPECT_EQ(*plan.snapshot_record, steps_.steps[2].snapshot_record);
  EXPECT_EQ(plan.prefix_operations, 0u);
  EXPECT_EQ(plan.operations, kSyntheticLaunchesPerStep + 2);
  const auto kept = Kept(plan);
  EXPECT_EQ(kept.at("launch"), 11);
  EXPECT_EQ(kept.at("memcpy"), 2);
  EXPECT_EQ(kept.at("snapshot"), 2);  // the one at the end, too
  EXPECT_EQ(kept.at("memory-range"), 6);
  EXPECT_EQ(kept.at("alloc"), 4);  // not the one that was freed
  EXPECT_EQ(kept.count("free"), 0u);
  EXPECT_EQ(kept.at("kernel"), 5);  // not the one that is never launched
  EXPECT_EQ(kept.at("module"), 2);
  EXPECT_EQ(kept.at("tensor-map"), 1);  // the one that is a parameter
  EXPECT_EQ(kept.at("kernel-attribute"), 1);
  EXPECT_EQ(kept.at("global"), 1);
  EXPECT_EQ(kept.at("stream"), 2);
  EXPECT_EQ(kept.at("event"), 2 + 12);
  EXPECT_EQ(kept.count("graph"), 0u);
  EXPECT_EQ(kept.count("graph-exec"), 0u);
  ExpectClosed(plan, true, true);
}

TEST_F(TrimTest, ALaterStepBringsTheWorkSinceTheSnapshot) {
  TrimRequest request = Request(4);
  const TrimPlan plan = PlanTrim(*reader_, request);
  EXPECT_EQ(*plan.snapshot_record, steps_.steps[2].snapshot_record);
  EXPECT_EQ(plan.prefix_operations, 2 * (kSyntheticLaunchesPerStep + 2));
  EXPECT_EQ(Kept(plan).at("launch"), 33);
  EXPECT_EQ(Kept(plan).at("snapshot"), 1);  // memory has moved on
  ExpectClosed(plan, true, true);
  request.prefix = false;
  const TrimPlan alone = PlanTrim(*reader_, request);
  EXPECT_EQ(alone.prefix_operations, 0u);
  EXPECT_EQ(Kept(alone).at("launch"), 11);
}

TEST_F(TrimTest, AnEarlierStepBringsAllWorkBeforeIt) {
  const TrimPlan plan = PlanTrim(*reader_, Request(0));
  EXPECT_FALSE(plan.snapshot_record.has_value());
  // The weights' copy, the graph launch and the prefill.
  EXPECT_EQ(plan.prefix_operations, 1u + 1 + 4);
  const auto kept = Kept(plan);
  EXPECT_EQ(kept.at("graph"), 1);
  EXPECT_EQ(kept.at("graph-exec"), 1);
  EXPECT_EQ(kept.at("launch"), 4 + 11);  // not the captured one
  ExpectClosed(plan, true, true);
}

TEST_F(TrimTest, ImagesAndMemoryCanBeLeftOut) {
  TrimRequest request = Request(2);
  request.images = false;
  request.memory = false;
  const TrimPlan plan = PlanTrim(*reader_, request);
  const auto kept = Kept(plan);
  EXPECT_EQ(kept.count("blob"), 0u);
  EXPECT_EQ(kept.count("snapshot"), 0u);
  EXPECT_EQ(kept.count("memory-range"), 0u);
  EXPECT_EQ(kept.at("image"), 2);
  EXPECT_EQ(plan.prefix_operations, 0u);
  ExpectClosed(plan, false, false);
}

TEST_F(TrimTest, CallsOutsideOfTheSetAreDropped) {
  TrimRequest request = Request(2);
  const uint64_t first = request.first_record;
  request.contains = [first](uint64_t record) {
    return record == first + 1 || record == first + 2;
  };
  const TrimPlan plan = PlanTrim(*reader_, request);
  EXPECT_EQ(plan.operations, 2u);
  const auto kept = Kept(plan);
  EXPECT_EQ(kept.at("launch"), 2);
  EXPECT_EQ(kept.at("kernel"), 2);
  EXPECT_EQ(kept.count("tensor-map"), 0u);
  ExpectClosed(plan, true, true);
}

}  // namespace
}  // namespace heddle::tools
