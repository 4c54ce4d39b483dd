// SPDX-License-Identifier: Apache-2.0
// What the analysis says of copies by the tensor memory accelerator, and of
// calls of the device runtime.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/access/code_image.h"
#include "runtime/access/launch_access.h"
#include "runtime/cubin/elf.h"

namespace heddle::access {
namespace {

constexpr uint64_t kMemory = 0x7f0000000000;
constexpr uint64_t kMemoryBytes = 1 << 20;

class TensorCopyTest : public testing::Test {
 protected:
  TensorCopyTest() {
    std::ifstream file(std::string(HEDDLE_TEST_IMAGES) + "/tensor_copy.cubin",
                       std::ios::binary);
    image_.assign(std::istreambuf_iterator<char>(file), {});
    view_.allocation = [](uint64_t address) -> std::optional<Extent> {
      if (address - kMemory >= kMemoryBytes) return std::nullopt;
      return Extent{kMemory, kMemoryBytes};
    };
    // A map of this test says in its first byte which one it is.
    view_.tensor_map =
        [](absl::Span<const uint8_t> map) -> std::optional<ExtentSet> {
      if (map[0] == 0) return std::nullopt;
      return ExtentSet({Extent{kMemory + map[0] * uint64_t{4096}, 2048}});
    };
  }

  // The set of a launch whose parameters are filled by `fill(ordinal, bytes)`.
  template <typename Fill>
  AccessSet Of(const char* name, const Fill& fill) {
    const absl::StatusOr<cubin::Cubin> cubin = cubin::ParseCubin(image_);
    EXPECT_TRUE(cubin.ok()) << cubin.status();
    const cubin::Kernel* kernel = cubin->FindKernel(name);
    absl::StatusOr<std::unique_ptr<CodeImage>> code = CodeImage::Create(image_);
    EXPECT_TRUE(code.ok() && kernel != nullptr);
    std::vector<uint8_t> params(kernel->param_size);
    for (size_t i = 0; i < kernel->params.size(); ++i) {
      fill(i, params.data() + kernel->params[i].offset);
    }
    LaunchValues launch;
    launch.grid = {4, 2, 1};
    launch.block = {32, 1, 1};
    launch.param_base = kernel->param_base;
    launch.params = params;
    bool too_many = false;
    launch.pointers = FindPointers(params, view_, &too_many);
    return AccessOfLaunch(AnalyzeKernel((*code)->Find(name)->code, launch),
                          launch, view_);
  }

  std::vector<uint8_t> image_;
  MemoryView view_;
};

TEST_F(TensorCopyTest, MapsAmongTheParametersSayWhatIsCopied) {
  const AccessSet set = Of("tensor_copy", [](size_t ordinal, uint8_t* bytes) {
    if (ordinal < 2) bytes[0] = static_cast<uint8_t>(ordinal + 1);
    if (ordinal == 3) {
      const uint64_t pointer = kMemory + 65536;
      std::memcpy(bytes, &pointer, sizeof(pointer));
    }
  });
  ASSERT_TRUE(set.reads_known() && set.writes_known())
      << set.unknown_reads << set.unknown_writes;
  EXPECT_EQ(set.Reads(), ExtentSet({Extent{kMemory + 4096, 2048}}));
  EXPECT_EQ(set.Writes(), ExtentSet({Extent{kMemory + 8192, 2048},
                                     Extent{kMemory + 65536, 16}}));
  int by_map = 0;
  for (const Access& access : set.accesses) {
    by_map += access.provenance == Provenance::kTensorMap ? 1 : 0;
  }
  EXPECT_EQ(by_map, 2);
}

TEST_F(TensorCopyTest, AMapThatWasNotSeenLeavesItsSideUnknown) {
  const AccessSet set = Of("tensor_copy", [](size_t ordinal, uint8_t* bytes) {
    if (ordinal == 0) bytes[0] = 1;  // the other map stays unknown
    if (ordinal == 3) {
      const uint64_t pointer = kMemory;
      std::memcpy(bytes, &pointer, sizeof(pointer));
    }
  });
  EXPECT_TRUE(set.reads_known());
  EXPECT_FALSE(set.writes_known());
}

TEST_F(TensorCopyTest, AMapInDeviceMemoryIsUnknown) {
  const AccessSet set =
      Of("tensor_copy_by_pointer", [](size_t, uint8_t* bytes) {
        const uint64_t pointer = kMemory;
        std::memcpy(bytes, &pointer, sizeof(pointer));
      });
  EXPECT_FALSE(set.reads_known());
}

TEST_F(TensorCopyTest, BulkCopiesStayInTheAllocationOfTheirPointer) {
  const AccessSet set = Of("bulk_copy", [](size_t ordinal, uint8_t* bytes) {
    const uint64_t value = ordinal == 0 ? kMemory + 256 : 1024;
    std::memcpy(bytes, &value, ordinal == 0 ? 8 : 4);
  });
  ASSERT_TRUE(set.writes_known()) << set.unknown_writes;
  EXPECT_EQ(set.Writes(), ExtentSet({Extent{kMemory, kMemoryBytes}}));
}

TEST_F(TensorCopyTest, FailedAssertionsEndAndOtherCallsMayDoAnything) {
  const auto fill = [](size_t ordinal, uint8_t* bytes) {
    const uint64_t value = ordinal == 2 ? 96 : kMemory + ordinal * 4096;
    std::memcpy(bytes, &value, ordinal == 2 ? 4 : 8);
  };
  const AccessSet checked = Of("checked_copy", fill);
  ASSERT_TRUE(checked.reads_known() && checked.writes_known())
      << checked.unknown_writes;
  // What the assertion says bounds what comes behind it.
  EXPECT_EQ(checked.Writes(), ExtentSet({Extent{kMemory, 96 * 4}}));
  EXPECT_EQ(checked.Reads(), ExtentSet({Extent{kMemory + 4096, 96 * 4}}));
  EXPECT_FALSE(Of("printing_copy", fill).writes_known());
}

}  // namespace
}  // namespace heddle::access
