// SPDX-License-Identifier: Apache-2.0
// The images that compilers write are one thing, those that are deployed are
// another: this reads every sm_80 and sm_90 image in cuBLAS, where it is
// installed. They come from several compiler versions and both cubin ABIs.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/fatbin.h"
#include "runtime/cubin/image.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

std::vector<uint8_t> ReadLibrary(const std::string& name) {
  for (const std::string folder : {"", "/../lib64"}) {
    for (const std::string suffix : {".13", ".12"}) {
      const std::string path =
          HEDDLE_CUDA_LIBRARIES + folder + "/" + name + suffix;
      std::ifstream file(path, std::ios::binary);
      if (!file) continue;
      return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
    }
  }
  return {};
}

TEST(VendorImagesTest, EveryKernelOfCublasHasAParameterLayout) {
  const std::vector<uint8_t> library = ReadLibrary("libcublas.so");
  if (library.empty()) GTEST_SKIP() << "cuBLAS is not installed";
  absl::StatusOr<ElfView> elf = ElfView::Create(library);
  ASSERT_TRUE(elf.ok()) << elf.status();
  const ElfSection* section = elf->Find(".nv_fatbin");
  ASSERT_NE(section, nullptr);

  int containers = 0;
  int kernels = 0;
  std::map<int, int> cubins_by_abi;
  Bytes rest = section->data;
  while (rest.size() >= kFatbinHeaderSize) {
    absl::StatusOr<ImageView> image = IdentifyImage(rest);
    if (!image.ok()) {  // padding between containers
      rest.remove_prefix(8);
      continue;
    }
    ASSERT_EQ(image->kind, ImageKind::kFatbin);
    ++containers;
    absl::StatusOr<std::vector<FatbinEntry>> entries =
        FatbinEntries(image->bytes);
    ASSERT_TRUE(entries.ok()) << entries.status();
    for (const FatbinEntry& entry : *entries) {
      if (entry.kind != FatbinEntryKind::kElf) continue;
      if (entry.arch != 80 && entry.arch != 90) continue;
      absl::StatusOr<std::vector<uint8_t>> content = FatbinEntryContent(entry);
      ASSERT_TRUE(content.ok()) << content.status();
      absl::StatusOr<ImageView> bare =
          IdentifyImage(static_cast<const void*>(content->data()));
      ASSERT_TRUE(bare.ok()) << bare.status();
      EXPECT_LE(bare->bytes.size(), content->size());
      EXPECT_GE(bare->bytes.size() + 8, content->size());
      absl::StatusOr<Cubin> cubin = ParseCubin(*content);
      ASSERT_TRUE(cubin.ok()) << cubin.status();
      EXPECT_EQ(cubin->arch, entry.arch);
      ++cubins_by_abi[cubin->abi];
      for (const Kernel& kernel : cubin->kernels) {
        ++kernels;
        EXPECT_GT(kernel.registers, 0u) << kernel.name;
        EXPECT_EQ(kernel.param_base, entry.arch == 80 ? 0x160u : 0x210u)
            << kernel.name;
        EXPECT_FALSE(kernel.params.empty()) << kernel.name;
      }
    }
    rest.remove_prefix(image->bytes.size());
  }
  EXPECT_GT(containers, 0);
  EXPECT_GT(kernels, 1000);
  std::string abis;
  for (const auto& [abi, count] : cubins_by_abi) {
    abis += "ABI " + std::to_string(abi) + ": " + std::to_string(count) + "; ";
  }
  std::printf("%d containers, %d kernels, %s\n", containers, kernels,
              abis.c_str());
}

}  // namespace
}  // namespace heddle::cubin
