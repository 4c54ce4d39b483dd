// SPDX-License-Identifier: Apache-2.0
// A sample of the sm_90 kernels of the libraries that are deployed, where they
// are installed. benchmarks/suite/check_patch.py takes all of them.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/nv_info.h"
#include "tests/unit/cubin/library_images.h"
#include "tests/unit/cubin/patch_checker.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

constexpr int kStride = 5;
constexpr std::chrono::seconds kBudget(8);

// Every code offset that the attributes hold is the start of an instruction:
// else their layout is another than ForEachCodeOffset believes. Returns how
// many there are.
int CheckCodeOffsets(absl::Span<const uint8_t> cubin) {
  absl::StatusOr<ElfView> elf = ElfView::Create(cubin);
  EXPECT_TRUE(elf.ok());
  int offsets = 0;
  for (const ElfSection& section : elf->sections()) {
    if (section.name.substr(0, 9) != ".nv.info.") continue;
    const ElfSection& text = elf->sections()[section.header.sh_info];
    EXPECT_EQ(text.name.substr(6), section.name.substr(9));
    EXPECT_TRUE(ForEachNvInfo(section.data, [&](const NvInfoAttribute& info) {
                  ForEachCodeOffset(info, [&](uint32_t offset) {
                    ++offsets;
                    EXPECT_EQ(offset % 16, 0u) << section.name << ", attribute "
                                               << static_cast<int>(info.code);
                    EXPECT_LT(offset, text.data.size())
                        << section.name << ", attribute "
                        << static_cast<int>(info.code);
                  });
                }).ok());
  }
  return offsets;
}

TEST(CodeOffsetsTest, AttributesNameInstructions) {
  for (const char* name :
       {"patch.sm_90.cubin", "patch.debug.cubin", "patch.linked.cubin",
        "patch.sm_100.cubin", "kernels.sm_80.cubin"}) {
    const std::vector<uint8_t> image = TestImage(name);
    if (image.empty()) continue;
    EXPECT_GT(CheckCodeOffsets(image), 9) << name;
  }
}

class PatchVendorTest : public testing::TestWithParam<std::string> {};

TEST_P(PatchVendorTest, EveryKernelOfASampleIsPatchedAndNothingElseChanges) {
  const auto start = std::chrono::steady_clock::now();
  int images = 0;
  int kernels = 0;
  int offsets = 0;
  const auto check = [&](const std::vector<uint8_t>& cubin) {
    if (images++ % kStride != 0) return true;
    offsets += CheckCodeOffsets(cubin);
    // Another prologue, and another hidden parameter, for each.
    const PatchOptions options{static_cast<Prologue>(images / kStride % 4),
                               static_cast<uint32_t>(images / kStride % 3 * 8)};
    absl::StatusOr<PatchedImage> patched = PatchCubin(cubin, options);
    EXPECT_TRUE(patched.ok()) << patched.status();
    if (!patched.ok()) return false;
    for (const KernelPatch& kernel : patched->kernels) {
      ++kernels;
      EXPECT_TRUE(kernel.patched) << kernel.name << ": " << kernel.reason;
    }
    EXPECT_EQ(CheckPatch(cubin, *patched, options), std::vector<std::string>());
    return !testing::Test::HasFailure() &&
           std::chrono::steady_clock::now() - start < kBudget;
  };
  bool found = false;
  for (const std::string folder : {"", "/../lib64"}) {
    for (const std::string suffix : {".13", ".12", ".9"}) {
      const std::string path = absl::StrCat(HEDDLE_CUDA_LIBRARIES, folder, "/",
                                            GetParam(), ".so", suffix);
      if (!found) found = ForEachLibraryCubin(path, 90, check) >= 0;
    }
  }
  if (!found) GTEST_SKIP() << GetParam() << " is not installed";
  EXPECT_GT(kernels, 0);
  EXPECT_GE(offsets, kernels);  // each exits somewhere
  std::printf("%d images, %d kernels\n", (images + kStride - 1) / kStride,
              kernels);
}

INSTANTIATE_TEST_SUITE_P(Libraries, PatchVendorTest,
                         testing::Values("libcublas", "libcublasLt",
                                         "libcudnn_engines_precompiled"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle::cubin
