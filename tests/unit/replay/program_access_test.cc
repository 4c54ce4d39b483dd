// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/program_access.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>

#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {
namespace {

using access::Extent;
using access::ExtentSet;

constexpr uint64_t kBase = 0x7f0000000000;

// A program of one module, whose image is none.
class ProgramAccessTest : public testing::Test {
 protected:
  ProgramAccessTest() {
    trace_.Image({1, 2, 3}, fb::ImageKind::kCubin, 9, 0);
    trace_.Kernel("scale", {8, 4});
    reader_ = trace_.Read();
    program_.modules.emplace_back();
    program_.kernels.emplace_back();
    program_.kernels[0].name = "scale";
    program_.compute_major = 9;
    program_.allocations.push_back({kBase, 4096});
  }

  access::AccessSet Of(Operation operation) {
    program_.step.operations = {std::move(operation)};
    const absl::StatusOr<StepAccess> found = FindAccesses(*reader_, program_);
    EXPECT_TRUE(found.ok()) << found.status();
    return found->operations.at(0);
  }

  TestTrace trace_;
  std::unique_ptr<trace::Reader> reader_;
  Program program_;
};

TEST_F(ProgramAccessTest, CopiesAndFillsTouchTheRowsThatTheySay) {
  Operation operation;
  CopyWork copy;
  copy.src.address = kBase;
  copy.src.pitch = 64;
  copy.dst.address = kBase + 1024;
  copy.dst.pitch = 16;
  copy.width = 16;
  copy.height = 3;
  operation.work = copy;
  access::AccessSet set = Of(operation);
  EXPECT_EQ(set.Reads(), ExtentSet({Extent{kBase, 16}, Extent{kBase + 64, 16},
                                    Extent{kBase + 128, 16}}));
  EXPECT_EQ(set.Writes(), ExtentSet({Extent{kBase + 1024, 48}}));
  EXPECT_FALSE(set.ordering_point);
  copy.dst.host = true;
  operation.work = copy;
  set = Of(operation);
  EXPECT_TRUE(set.Writes().empty());
  EXPECT_TRUE(set.ordering_point);

  FillWork fill;
  fill.address = kBase;
  fill.element_size = 4;
  fill.width = 2;
  fill.height = 2;
  fill.pitch = 32;
  operation.work = fill;
  set = Of(operation);
  EXPECT_EQ(set.Writes(), ExtentSet({Extent{kBase, 8}, Extent{kBase + 32, 8}}));
  EXPECT_TRUE(set.Reads().empty());
}

TEST_F(ProgramAccessTest, OnlyWorkThatOthersNoticeKeepsItsPlace) {
  Operation operation;
  operation.work = EmptyWork{.joins = true};
  EXPECT_FALSE(Of(operation).ordering_point);
  operation.work = EmptyWork{};
  EXPECT_TRUE(Of(operation).ordering_point);
}

TEST_F(ProgramAccessTest, ALaunchWhoseCodeCannotBeReadMayTouchAnything) {
  Operation operation;
  operation.work = LaunchWork{};
  const access::AccessSet set = Of(operation);
  EXPECT_FALSE(set.reads_known());
  EXPECT_FALSE(set.writes_known());
  EXPECT_NE(set.unknown_writes.find("code could not be read"),
            std::string::npos);
}

TEST_F(ProgramAccessTest, CooperativeLaunchesMayTouchAnythingHoweverAskedFor) {
  Operation operation;
  LaunchWork launch;
  launch.cooperative = true;
  operation.work = launch;
  EXPECT_NE(Of(operation).unknown_writes.find("cooperative"),
            std::string::npos);
  launch.cooperative = false;
  CUlaunchAttributeValue value;
  std::memset(&value, 0, sizeof(value));
  launch.attributes.push_back({CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {}});
  launch.attributes[0].value.resize(sizeof(value));
  operation.work = launch;
  EXPECT_EQ(Of(operation).unknown_writes.find("cooperative"),
            std::string::npos);
  value.cooperative = 1;
  std::memcpy(launch.attributes[0].value.data(), &value, sizeof(value));
  operation.work = launch;
  EXPECT_NE(Of(operation).unknown_writes.find("cooperative"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::replay
