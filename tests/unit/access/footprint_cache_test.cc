// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/footprint_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace heddle::access {
namespace {

namespace fs = std::filesystem;

class FootprintCacheTest : public testing::Test {
 protected:
  FootprintCacheTest() {
    std::string path = testing::TempDir() + "/footprints_XXXXXX";
    path_ = mkdtemp(path.data());
    folder_ = OpenFootprintFolder(path_);
  }
  ~FootprintCacheTest() override { fs::remove_all(path_); }

  static KernelFootprint Example() {
    KernelFootprint kernel;
    kernel.instructions = 77;
    Footprint part;
    part.offset = 0x120;
    part.name = "STG";
    part.mode = Mode::kWrite;
    part.bytes = 16;
    part.pointer = 2;
    part.origins = 5;
    part.bounded = true;
    part.lo = -16;
    part.hi = 4096;
    part.constant = -16;
    part.terms.push_back({SymbolKind::kBlock, 1, 512, 0, 7});
    part.tensor_map = -1;
    kernel.footprints.push_back(part);
    return kernel;
  }

  std::vector<uint8_t> FileBytes() const {
    for (const auto& entry : fs::directory_iterator(path_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
    }
    return {};
  }

  std::string path_;
  std::unique_ptr<cubin::CacheFolder> folder_;
};

TEST_F(FootprintCacheTest, WhatWasAddedIsThereInTheNextProcess) {
  {
    FootprintCache cache(folder_.get(), "image");
    EXPECT_EQ(cache.Find("key"), nullptr);
    cache.Add("key", Example());
    KernelFootprint unknown;
    unknown.unknown = "BRX at 0x10 branches to places that are not known";
    cache.Add(std::string("\0binary\xff", 8), unknown);
  }
  FootprintCache again(folder_.get(), "image");
  const KernelFootprint* kernel = again.Find("key");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->instructions, 77u);
  ASSERT_EQ(kernel->footprints.size(), 1u);
  const Footprint& part = kernel->footprints[0];
  const Footprint expected = Example().footprints[0];
  EXPECT_EQ(part.offset, expected.offset);
  EXPECT_EQ(part.name, expected.name);
  EXPECT_EQ(part.mode, expected.mode);
  EXPECT_EQ(part.bytes, expected.bytes);
  EXPECT_EQ(part.pointer, expected.pointer);
  EXPECT_EQ(part.origins, expected.origins);
  EXPECT_EQ(part.bounded, expected.bounded);
  EXPECT_EQ(part.lo, expected.lo);
  EXPECT_EQ(part.hi, expected.hi);
  EXPECT_EQ(part.constant, expected.constant);
  EXPECT_EQ(part.terms, expected.terms);
  EXPECT_EQ(part.tensor_map, expected.tensor_map);
  const KernelFootprint* other = again.Find(std::string("\0binary\xff", 8));
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->unknown.substr(0, 3), "BRX");
  EXPECT_EQ(FootprintCache(folder_.get(), "another image").Find("key"),
            nullptr);
}

TEST_F(FootprintCacheTest, DamagedFilesCountAsNone) {
  {
    FootprintCache cache(folder_.get(), "image");
    cache.Add("key", Example());
  }
  const std::vector<uint8_t> whole = FileBytes();
  ASSERT_GT(whole.size(), 64u);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::vector<uint8_t> damaged = whole;
    damaged[at] ^= 0x10;
    folder_->Store("image", damaged);
    ASSERT_EQ(FootprintCache(folder_.get(), "image").Find("key"), nullptr)
        << at;
    damaged = whole;
    damaged.resize(at);
    folder_->Store("image", damaged);
    ASSERT_EQ(FootprintCache(folder_.get(), "image").Find("key"), nullptr)
        << at;
  }
  folder_->Store("image", whole);
  EXPECT_NE(FootprintCache(folder_.get(), "image").Find("key"), nullptr);
}

TEST_F(FootprintCacheTest, WithoutAFolderResultsAreKeptInMemory) {
  FootprintCache cache(nullptr, "image");
  cache.Add("key", Example());
  EXPECT_NE(cache.Find("key"), nullptr);
}

TEST_F(FootprintCacheTest, KeysTellWhatDecidesTheAnalysis) {
  std::vector<uint8_t> params(24, 1);
  LaunchValues launch;
  launch.params = params;
  launch.pointers = {8};
  const std::string key = ShapeKey("kernel", launch);
  const auto with = [&](size_t byte) {
    std::vector<uint8_t> changed = params;
    changed[byte] ^= 0x40;
    LaunchValues other = launch;
    other.params = changed;
    return ShapeKey("kernel", other);
  };
  EXPECT_NE(with(0), key);  // a number
  EXPECT_NE(with(8), key);  // the alignment of a pointer
  EXPECT_EQ(with(9), key);  // the rest of it
  EXPECT_EQ(with(15), key);
  EXPECT_NE(with(16), key);
  LaunchValues other = launch;
  other.grid[1] = 2;
  EXPECT_NE(ShapeKey("kernel", other), key);
  other = launch;
  other.pointers = {};
  EXPECT_NE(ShapeKey("kernel", other), key);
  EXPECT_NE(ShapeKey("kernel2", launch), key);
}

}  // namespace
}  // namespace heddle::access
