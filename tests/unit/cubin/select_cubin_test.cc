// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/select_cubin.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/cubin/elf.h"
#include "runtime/cubin/fatbin.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

class SelectFatbinTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fatbin_ = TestImage(GetParam());
    if (fatbin_.empty()) GTEST_SKIP() << "this toolkit cannot make it";
  }
  // The content of the entry for `arch`.
  std::vector<uint8_t> Entry(uint32_t arch, bool specific) const {
    absl::StatusOr<std::vector<FatbinEntry>> entries = FatbinEntries(fatbin_);
    for (const FatbinEntry& entry : *entries) {
      if (entry.kind == FatbinEntryKind::kElf && entry.arch == arch &&
          entry.arch_specific == specific) {
        return *FatbinEntryContent(entry);
      }
    }
    ADD_FAILURE() << "no entry for " << arch;
    return {};
  }
  std::vector<uint8_t> fatbin_;
};

TEST_P(SelectFatbinTest, TheMostSpecificCodeIsTaken) {
  // The fatbin has sm_80, sm_90, sm_90a, and PTX for 8.0 and 9.0.
  absl::StatusOr<std::vector<uint8_t>> cubin = SelectCubin(fatbin_, 9, 0);
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_EQ(*cubin, Entry(90, true));
  EXPECT_EQ(ParseCubin(*cubin)->arch, 90u);
}

TEST_P(SelectFatbinTest, CodeForAnEarlierChipOfTheSameMajorRuns) {
  for (const int minor : {0, 6, 9}) {
    absl::StatusOr<std::vector<uint8_t>> cubin = SelectCubin(fatbin_, 8, minor);
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    EXPECT_EQ(*cubin, Entry(80, false));
  }
}

TEST_P(SelectFatbinTest, WhatOnlyPtxFitsIsNotCode) {
  for (const int major : {10, 12}) {
    EXPECT_TRUE(absl::IsUnimplemented(SelectCubin(fatbin_, major, 0).status()));
  }
}

TEST_P(SelectFatbinTest, NothingFitsAnOlderDevice) {
  EXPECT_TRUE(absl::IsNotFound(SelectCubin(fatbin_, 7, 5).status()));
}

TEST_P(SelectFatbinTest, DamagedImagesAreSurvived) {
  int found = 0;
  ForEachDamaged(fatbin_, [&](absl::Span<const uint8_t> bytes) {
    found += SelectCubin(bytes, 9, 0).ok();
  });
  EXPECT_GT(found, 0);
}

INSTANTIATE_TEST_SUITE_P(Fatbins, SelectFatbinTest,
                         testing::Values("kernels.packed.fatbin",
                                         "kernels.plain.fatbin",
                                         "kernels.zstd.fatbin"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '.') c = '_';
                           }
                           return name;
                         });

TEST(SelectCubinTest, ACubinIsItself) {
  const std::vector<uint8_t> cubin = TestImage("kernels.sm_90.cubin");
  absl::StatusOr<std::vector<uint8_t>> selected = SelectCubin(cubin, 9, 0);
  ASSERT_TRUE(selected.ok()) << selected.status();
  EXPECT_EQ(*selected, cubin);
  EXPECT_TRUE(absl::IsNotFound(SelectCubin(cubin, 8, 9).status()));
  EXPECT_TRUE(absl::IsNotFound(SelectCubin(cubin, 10, 0).status()));
}

TEST(SelectCubinTest, PtxIsNotCode) {
  EXPECT_TRUE(absl::IsUnimplemented(
      SelectCubin(TestImage("kernels.ptx"), 9, 0).status()));
}

TEST(SelectCubinTest, WhatIsNoImageIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(SelectCubin({}, 9, 0).status()));
  const std::vector<uint8_t> noise(100, 0x5a);
  EXPECT_TRUE(absl::IsInvalidArgument(SelectCubin(noise, 9, 0).status()));
}

}  // namespace
}  // namespace heddle::cubin
