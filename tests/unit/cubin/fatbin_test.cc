// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/fatbin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "runtime/cubin/elf.h"
#include "runtime/cubin/image.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

constexpr const char* kFatbins[] = {
    "kernels.plain.fatbin", "kernels.packed.fatbin", "kernels.lz4.fatbin",
    "kernels.zstd.fatbin"};

// "ptx_90", "sm_90", "sm_90a": what cuobjdump would list.
std::string Label(const FatbinEntry& entry) {
  return (entry.kind == FatbinEntryKind::kPtx ? "ptx_" : "sm_") +
         std::to_string(entry.arch) + (entry.arch_specific ? "a" : "") +
         (entry.family_specific ? "f" : "");
}

std::set<std::string> Labels(absl::Span<const uint8_t> fatbin) {
  std::set<std::string> labels;
  absl::StatusOr<std::vector<FatbinEntry>> entries = FatbinEntries(fatbin);
  EXPECT_TRUE(entries.ok()) << entries.status();
  if (entries.ok()) {
    for (const FatbinEntry& entry : *entries) labels.insert(Label(entry));
  }
  return labels;
}

// A container of empty entries, for the rules that need chips which the
// installed nvcc may not know.
struct FakeEntry {
  uint16_t kind;
  uint32_t arch;
  uint64_t flags;
};
std::vector<uint8_t> FakeFatbin(const std::vector<FakeEntry>& entries) {
  std::vector<uint8_t> out(16 + 64 * entries.size());
  const auto put = [&](size_t at, auto value) {
    std::memcpy(out.data() + at, &value, sizeof(value));
  };
  put(0, kFatbinMagic);
  put(4, uint16_t{1});
  put(6, uint16_t{16});
  put(8, uint64_t{64 * entries.size()});
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t at = 16 + 64 * i;
    put(at, entries[i].kind);
    put(at + 4, uint32_t{64});
    put(at + 28, entries[i].arch);
    put(at + 40, entries[i].flags);
  }
  return out;
}

std::set<std::string> FilteredLabels(const std::vector<FakeEntry>& entries,
                                     int major, int minor) {
  absl::StatusOr<std::vector<uint8_t>> filtered =
      FilterFatbin(FakeFatbin(entries), major, minor);
  if (!filtered.ok()) {
    EXPECT_EQ(filtered.status().code(), absl::StatusCode::kNotFound);
    return {};
  }
  return Labels(*filtered);
}

TEST(FatbinTest, ListsWhatNvccPutIn) {
  for (const char* name : kFatbins) {
    const std::vector<uint8_t> fatbin = TestImage(name);
    if (fatbin.empty()) continue;
    EXPECT_EQ(Labels(fatbin), (std::set<std::string>{"sm_80", "sm_90", "sm_90a",
                                                     "ptx_80", "ptx_90"}))
        << name;
  }
}

TEST(FatbinTest, DecompressesEachEntryToTheImageThatNvccCompiled) {
  const std::vector<uint8_t> sm80 = TestImage("kernels.sm_80.cubin");
  for (const char* name : kFatbins) {
    const std::vector<uint8_t> fatbin = TestImage(name);
    if (fatbin.empty()) continue;
    absl::StatusOr<std::vector<FatbinEntry>> entries = FatbinEntries(fatbin);
    ASSERT_TRUE(entries.ok()) << entries.status();
    for (const FatbinEntry& entry : *entries) {
      absl::StatusOr<std::vector<uint8_t>> content = FatbinEntryContent(entry);
      ASSERT_TRUE(content.ok()) << name << ": " << content.status();
      absl::StatusOr<ImageView> image =
          IdentifyImage(absl::Span<const uint8_t>(*content));
      ASSERT_TRUE(image.ok()) << name << ": " << image.status();
      if (entry.kind == FatbinEntryKind::kPtx) {
        EXPECT_EQ(image->kind, ImageKind::kPtx);
        continue;
      }
      EXPECT_EQ(image->kind, ImageKind::kElf);
      absl::StatusOr<Cubin> cubin = ParseCubin(*content);
      ASSERT_TRUE(cubin.ok()) << cubin.status();
      EXPECT_EQ(cubin->arch, entry.arch);
      EXPECT_NE(cubin->FindKernel("mixed"), nullptr);
    }
  }
}

TEST(FatbinTest, TheCompressionsOccurWhereTheyWereAskedFor) {
  for (const auto& [name, compression] :
       {std::pair("kernels.lz4.fatbin", FatbinCompression::kLz4),
        std::pair("kernels.zstd.fatbin", FatbinCompression::kZstd),
        std::pair("kernels.plain.fatbin", FatbinCompression::kNone)}) {
    const std::vector<uint8_t> fatbin = TestImage(name);
    if (fatbin.empty()) continue;
    const auto entries = FatbinEntries(fatbin);
    ASSERT_TRUE(entries.ok());
    EXPECT_TRUE(std::any_of(entries->begin(), entries->end(),
                            [&](const FatbinEntry& entry) {
                              return entry.compression == compression;
                            }))
        << name;
  }
}

TEST(FilterFatbinTest, KeepsTheCubinsOfTheDeviceAsTheyAre) {
  for (const char* name : kFatbins) {
    const std::vector<uint8_t> fatbin = TestImage(name);
    if (fatbin.empty()) continue;
    absl::StatusOr<std::vector<uint8_t>> filtered = FilterFatbin(fatbin, 9, 0);
    ASSERT_TRUE(filtered.ok()) << filtered.status();
    EXPECT_LT(filtered->size(), fatbin.size());
    EXPECT_EQ(Labels(*filtered), (std::set<std::string>{"sm_90", "sm_90a"}));
    const auto before = FatbinEntries(fatbin);
    const auto after = FatbinEntries(*filtered);
    for (const FatbinEntry& kept : *after) {
      EXPECT_TRUE(std::any_of(
          before->begin(), before->end(),
          [&](const FatbinEntry& entry) { return entry.bytes == kept.bytes; }));
    }
    absl::StatusOr<ImageView> image =
        IdentifyImage(absl::Span<const uint8_t>(*filtered));
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->bytes.size(), filtered->size());
  }
}

TEST(FilterFatbinTest, FallsBackToPtxOnAChipWithoutACubin) {
  const std::vector<uint8_t> fatbin = TestImage("kernels.plain.fatbin");
  const auto next = FilterFatbin(fatbin, 10, 0);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(Labels(*next), (std::set<std::string>{"ptx_80", "ptx_90"}));
  EXPECT_EQ(FilterFatbin(fatbin, 7, 5).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(FilterFatbinTest, FollowsTheCompatibilityRulesOfChips) {
  constexpr uint64_t kArch = 0x100000;
  constexpr uint64_t kFamily = 0x200000;
  const std::vector<FakeEntry> entries = {
      {2, 80, 0},        {2, 86, 0},  {2, 90, kArch}, {2, 100, kArch},
      {2, 100, kFamily}, {2, 103, 0}, {1, 90, 0},     {1, 100, kFamily},
      {1, 120, 0},       {8, 90, 0}};
  using Set = std::set<std::string>;
  EXPECT_EQ(FilteredLabels(entries, 8, 0), Set({"sm_80"}));
  EXPECT_EQ(FilteredLabels(entries, 8, 6), Set({"sm_80", "sm_86"}));
  EXPECT_EQ(FilteredLabels(entries, 9, 0), Set({"sm_90a"}));
  EXPECT_EQ(FilteredLabels(entries, 10, 0), Set({"sm_100a", "sm_100f"}));
  EXPECT_EQ(FilteredLabels(entries, 10, 3), Set({"sm_100f", "sm_103"}));
  EXPECT_EQ(FilteredLabels(entries, 11, 0), Set({"ptx_90"}));
  EXPECT_EQ(FilteredLabels(entries, 12, 0), Set({"ptx_90", "ptx_120"}));
  EXPECT_EQ(FilteredLabels(entries, 7, 5), Set());
}

TEST(FatbinTest, SurvivesDamage) {
  for (const char* name : {"kernels.plain.fatbin", "kernels.packed.fatbin",
                           "kernels.lz4.fatbin"}) {
    const std::vector<uint8_t> fatbin = TestImage(name);
    if (fatbin.empty()) continue;
    ForEachDamaged(fatbin, [](absl::Span<const uint8_t> bytes) {
      absl::StatusOr<std::vector<FatbinEntry>> entries = FatbinEntries(bytes);
      absl::StatusOr<std::vector<uint8_t>> filtered = FilterFatbin(bytes, 9, 0);
      EXPECT_TRUE(entries.ok() || !filtered.ok());
      if (!entries.ok()) return;
      for (const FatbinEntry& entry : *entries) {
        // Stated sizes may be wild; the content is then refused, not tried.
        if (entry.uncompressed_size > (64u << 20)) continue;
        absl::StatusOr<std::vector<uint8_t>> content =
            FatbinEntryContent(entry);
        if (!content.ok()) continue;
        EXPECT_EQ(content->size(), entry.uncompressed_size);
      }
    });
  }
}

}  // namespace
}  // namespace heddle::cubin
