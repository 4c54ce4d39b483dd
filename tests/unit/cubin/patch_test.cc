// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/patch.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/elf_writer.h"
#include "runtime/cubin/instruction.h"
#include "runtime/cubin/stubs.h"
#include "tests/unit/cubin/patch_checker.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

constexpr Prologue kPrologues[] = {Prologue::kNone, Prologue::kWait,
                                   Prologue::kTriggerWait,
                                   Prologue::kWaitTrigger};

// Every form in which nvcc writes the kernels of patch_kernels.cu.
class PatchImageTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    image_ = TestImage(GetParam());
    if (image_.empty()) GTEST_SKIP() << "this toolkit cannot make it";
  }
  std::vector<uint8_t> image_;
};

TEST_P(PatchImageTest, EveryKernelIsPatchedAndNothingElseChanges) {
  for (const Prologue prologue : kPrologues) {
    for (const uint32_t hidden : {0, 8, 16, 24, 4096}) {
      const PatchOptions options{prologue, hidden};
      absl::StatusOr<PatchedImage> patched = PatchCubin(image_, options);
      ASSERT_TRUE(patched.ok()) << patched.status();
      EXPECT_GE(patched->kernels.size(), 12u);
      for (const KernelPatch& kernel : patched->kernels) {
        EXPECT_TRUE(kernel.patched) << kernel.name << ": " << kernel.reason;
      }
      EXPECT_EQ(CheckPatch(image_, *patched, options),
                std::vector<std::string>());
    }
  }
}

TEST_P(PatchImageTest, ThePatchedImageHasTheSameKernelsWithOneMoreParameter) {
  absl::StatusOr<PatchedImage> patched =
      PatchCubin(image_, {Prologue::kWaitTrigger, 24});
  ASSERT_TRUE(patched.ok()) << patched.status();
  absl::StatusOr<Cubin> before = ParseCubin(image_);
  absl::StatusOr<Cubin> after = ParseCubin(patched->image);
  ASSERT_TRUE(before.ok() && after.ok()) << after.status();
  ASSERT_EQ(before->kernels.size(), after->kernels.size());
  for (size_t i = 0; i < after->kernels.size(); ++i) {
    const Kernel& kernel = after->kernels[i];
    std::vector<KernelParam> expected = before->kernels[i].params;
    const KernelPatch& patch = patched->kernels[i];
    EXPECT_EQ(patch.name, kernel.name);
    EXPECT_EQ(patch.hidden_ordinal, expected.size()) << kernel.name;
    expected.push_back({patch.hidden_offset, 24});
    EXPECT_EQ(kernel.params, expected) << kernel.name;
    EXPECT_EQ(kernel.param_size, patch.hidden_offset + 24) << kernel.name;
    EXPECT_EQ(kernel.param_base, after->arch >= 100 ? 0x380 : 0x210)
        << kernel.name;
    EXPECT_EQ(kernel.registers, before->kernels[i].registers) << kernel.name;
    EXPECT_EQ(kernel.cluster, before->kernels[i].cluster) << kernel.name;
  }
}

TEST_P(PatchImageTest, AskedForNothingThePatcherChangesNothing) {
  absl::StatusOr<PatchedImage> patched =
      PatchCubin(image_, {Prologue::kNone, 0});
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(patched->image, image_);
}

TEST_P(PatchImageTest, PatchingTwiceGivesTheSameBytes) {
  absl::StatusOr<PatchedImage> one = PatchCubin(image_, {});
  absl::StatusOr<PatchedImage> two = PatchCubin(image_, {});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->image, two->image);
  EXPECT_EQ(one->kernels, two->kernels);
}

// A patched image is a cubin like any other: its stub is then code.
TEST_P(PatchImageTest, APatchedImageCanOnlyBePatchedWithAReason) {
  absl::StatusOr<PatchedImage> once = PatchCubin(image_, {});
  ASSERT_TRUE(once.ok());
  absl::StatusOr<PatchedImage> twice = PatchCubin(once->image, {});
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ(twice->image, once->image);
  for (const KernelPatch& kernel : twice->kernels) {
    EXPECT_FALSE(kernel.patched) << kernel.name;
    EXPECT_FALSE(kernel.reason.empty()) << kernel.name;
  }
}

// Everything behind what is moved is found again, wherever something grows.
TEST_P(PatchImageTest, SectionsMayGrowByAnyAmount) {
  absl::StatusOr<ElfView> elf = ElfView::Create(image_);
  ASSERT_TRUE(elf.ok());
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    absl::StatusOr<ElfWriter> writer = ElfWriter::Create(image_, *elf);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::vector<uint64_t> sizes;
    for (uint32_t i = 0; i < elf->sections().size(); ++i) {
      const ElfSection& section = elf->sections()[i];
      sizes.push_back(section.data.size());
      // The tables that say where sections are keep what they say.
      if (section.data.empty() || random() % 8 != 0 || writer->IsShared(i)) {
        continue;
      }
      sizes.back() += random() % 300;
      if (random() % 2 == 0) {
        writer->Grow(i, sizes.back());
      } else {
        std::vector<uint8_t> content(section.data.begin(), section.data.end());
        content.resize(sizes.back());
        writer->Replace(i, content);
      }
    }
    absl::StatusOr<std::vector<uint8_t>> grown = writer->Write();
    ASSERT_TRUE(grown.ok()) << grown.status();
    absl::StatusOr<ElfView> after = ElfView::Create(*grown);
    ASSERT_TRUE(after.ok()) << after.status();
    ASSERT_EQ(after->sections().size(), sizes.size());
    for (uint32_t i = 0; i < sizes.size(); ++i) {
      const Bytes old_data = elf->sections()[i].data;
      const ElfSection& section = after->sections()[i];
      ASSERT_EQ(section.data.size(), sizes[i]) << section.name;
      ASSERT_EQ(section.data.first(old_data.size()), old_data);
      for (const uint8_t byte : section.data.subspan(old_data.size())) {
        ASSERT_EQ(byte, 0);
      }
      if (!section.data.empty()) {
        EXPECT_EQ(section.header.sh_offset, writer->Offset(i));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Images, PatchImageTest,
    testing::Values("patch.sm_90.cubin", "patch.sm_90a.cubin",
                    "patch.debug.cubin", "patch.lineinfo.cubin",
                    "patch.linked.cubin", "patch.sm_100.cubin",
                    "patch.sm_120.cubin"),
    [](const auto& info) {
      std::string name = info.param;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(PatchTest, ParametersTakeTheirSecondFormAbove4352Bytes) {
  const std::vector<uint8_t> image = TestImage("patch.sm_90.cubin");
  const auto second_form = [](Bytes image, absl::string_view kernel) {
    absl::StatusOr<ElfView> elf = ElfView::Create(image);
    const Bytes info = elf->Find(absl::StrCat(".nv.info.", kernel))->data;
    int first = 0;
    int second = 0;
    for (size_t at = 0; at + 4 <= info.size();) {
      first += info[at + 1] == 0x17;
      second += info[at + 1] == 0x45;
      at += 4 + (info[at] == 4 ? info[at + 2] + info[at + 3] * 256 : 0);
    }
    EXPECT_TRUE(first == 0 || second == 0);
    return second > 0;
  };
  // What the compiler does at the limit is what the patcher must do there.
  ASSERT_FALSE(second_form(image, "full_first_form"));
  ASSERT_TRUE(second_form(image, "large_params"));
  absl::StatusOr<PatchedImage> patched =
      PatchCubin(image, {Prologue::kNone, 8});
  ASSERT_TRUE(patched.ok());
  EXPECT_TRUE(second_form(patched->image, "full_first_form"));
  EXPECT_TRUE(second_form(patched->image, "large_params"));
  EXPECT_FALSE(second_form(patched->image, "plain"));
}

TEST(PatchTest, BranchesAreEncodedAsTheCompilerDoes) {
  int branches = 0;
  for (const char* name : {"patch.sm_90.cubin", "patch.debug.cubin",
                           "patch.sm_100.cubin", "patch.sm_120.cubin"}) {
    const std::vector<uint8_t> image = TestImage(name);
    if (image.empty()) continue;
    absl::StatusOr<ElfView> elf = ElfView::Create(image);
    ASSERT_TRUE(elf.ok());
    for (const ElfSection& section : elf->sections()) {
      if (section.name.substr(0, 6) != ".text.") continue;
      Instruction branch;
      for (uint64_t at = 0; ReadAt(section.data, at, &branch); at += 16) {
        if (Opcode(branch) != kOpcodeBra) continue;
        const uint64_t target = BranchTarget(branch, at);
        EXPECT_LT(target, section.data.size());
        EXPECT_EQ(target % 16, 0u);
        const Instruction encoded = EncodeBranch(at, target);
        // All but predicates and scheduling, which are the branch's own.
        EXPECT_EQ(encoded.low | 0xf000, branch.low | 0xf000);
        EXPECT_EQ(encoded.high & 0x3ffff, branch.high & 0x3ffff);
        ++branches;
      }
    }
  }
  EXPECT_GT(branches, 30);
}

TEST(PatchTest, ABranchLeadsWhereItWasMadeToLead) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 100000; ++round) {
    const uint64_t from = random() % (uint64_t{1} << (4 + random() % 40)) * 16;
    const uint64_t to = random() % (uint64_t{1} << (4 + random() % 40)) * 16;
    ASSERT_EQ(BranchTarget(EncodeBranch(from, to), from), to);
  }
}

// The checker must be worth something: whatever byte of a patched image is
// changed, it complains, unless the byte belongs to nothing.
TEST(PatchTest, TheCheckerNoticesEveryChangedByte) {
  const std::vector<uint8_t> image = TestImage("patch.sm_90.cubin");
  const PatchOptions options{Prologue::kTriggerWait, 16};
  absl::StatusOr<PatchedImage> patched = PatchCubin(image, options);
  ASSERT_TRUE(patched.ok());
  absl::StatusOr<ElfView> elf = ElfView::Create(patched->image);
  std::vector<bool> used(patched->image.size());
  const auto use = [&](uint64_t offset, uint64_t size) {
    for (uint64_t i = 0; i < size; ++i) used[offset + i] = true;
  };
  const Elf64_Ehdr& header = elf->header();
  use(0, sizeof(header));
  use(header.e_shoff + sizeof(Elf64_Shdr),
      (header.e_shnum - 1) * sizeof(Elf64_Shdr));
  use(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr));
  for (const ElfSection& section : elf->sections()) {
    if (section.data.empty()) continue;
    use(section.data.data() - patched->image.data(), section.data.size());
  }
  std::mt19937 random(3);
  for (size_t at = 0; at < used.size(); ++at) {
    // Headers, attributes and symbols in full; a sample of the long rest.
    if (!used[at] ||
        (at > 0x2300 && at < header.e_shoff && random() % 8 != 0)) {
      continue;
    }
    PatchedImage damaged = *patched;
    damaged.image[at] ^= uint8_t{1} << (random() % 8);
    const uint8_t was = patched->image[at];
    if (!CheckPatch(image, damaged, options).empty()) continue;
    // What is left: the stall count or yield hint of a prologue instruction,
    // and padding, whose scheduling means nothing.
    Instruction instruction;
    const size_t start = at / 16 * 16;
    ReadAt(patched->image, start, &instruction);
    const uint32_t opcode = Opcode(instruction);
    EXPECT_TRUE(opcode == kOpcodeNop ||
                (at - start >= 13 &&
                 (opcode == kOpcodePreexit || opcode == kOpcodeAcqbulk)))
        << "byte " << at << " of " << used.size() << ": " << int{was};
  }
}

TEST(StubsTest, EveryChipThatTheToolkitKnowsHasItsOwn) {
  for (const uint32_t arch : {90, 100, 120}) {
    if (TestImage("patch.sm_" + std::to_string(arch) + ".cubin").empty()) {
      EXPECT_NE(arch, 90u);
      continue;
    }
    absl::StatusOr<const Stubs*> stubs = FindStubs(arch);
    ASSERT_TRUE(stubs.ok()) << stubs.status();
    EXPECT_EQ((*stubs)->arch, arch);
    EXPECT_EQ((*stubs)->For(Prologue::kNone).size(), 0u);
    EXPECT_EQ((*stubs)->For(Prologue::kWait).size(), 1u);
    EXPECT_EQ((*stubs)->For(Prologue::kTriggerWait).size(), 2u);
    EXPECT_EQ((*stubs)->For(Prologue::kWaitTrigger).size(), 2u);
  }
}

TEST(StubsTest, OlderAndUnknownChipsHaveNone) {
  for (const uint32_t arch : {70, 80, 89, 130, 255}) {
    EXPECT_TRUE(absl::IsUnimplemented(FindStubs(arch).status())) << arch;
  }
}

TEST(StubsTest, AnImageWithoutTheTemplatesIsRefused) {
  EXPECT_FALSE(HarvestStubs(TestImage("patch.sm_90.cubin")).ok());
  EXPECT_FALSE(HarvestStubs({}).ok());
}

TEST(PatchTest, TheVersionNamesTheStubs) {
  EXPECT_NE(PatcherVersion().find(StubsVersion()), std::string::npos);
  EXPECT_EQ(StubsVersion().size(), 16u);
}

// nvdisasm of the toolkit, or of the PyPI package nvidia-cuda-nvdisasm by way
// of HEDDLE_NVDISASM. Returns what it prints, empty if it fails.
std::string Disassemble(const std::vector<uint8_t>& image) {
  const char* tool = getenv("HEDDLE_NVDISASM");
  // A name of its own: CTest runs the tests of this file side by side.
  std::string file = testing::TempDir() + "/heddle_patch_test_XXXXXX";
  const int descriptor = mkstemp(file.data());
  if (descriptor < 0) return "";
  close(descriptor);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(image.data()),
             static_cast<std::streamsize>(image.size()));
  FILE* pipe = popen(  // NOLINT(cert-env33-c): a test's tool
      ((tool != nullptr ? tool : "nvdisasm") + (" -c " + file) + " 2>&1")
          .c_str(),
      "r");
  std::string text;
  char buffer[4096];
  while (const size_t size = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    text.append(buffer, size);
  }
  const bool read = pclose(pipe) == 0;
  unlink(file.c_str());
  return read ? text : std::string();
}

int Count(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

TEST_P(PatchImageTest, TheDisassemblerReadsThePatchedImage) {
  const std::string before = Disassemble(image_);
  if (before.empty()) GTEST_SKIP() << "no nvdisasm, or one too old for it";
  absl::StatusOr<PatchedImage> patched =
      PatchCubin(image_, {Prologue::kWaitTrigger, 16});
  ASSERT_TRUE(patched.ok());
  const std::string after = Disassemble(patched->image);
  ASSERT_FALSE(after.empty());
  const int kernels = static_cast<int>(patched->kernels.size());
  EXPECT_EQ(Count(after, "ACQBULK"), Count(before, "ACQBULK") + kernels);
  EXPECT_EQ(Count(after, "PREEXIT"), Count(before, "PREEXIT") + kernels);
  EXPECT_EQ(Count(after, "BRA "), Count(before, "BRA ") + 2 * kernels);
}

}  // namespace
}  // namespace heddle::cubin
