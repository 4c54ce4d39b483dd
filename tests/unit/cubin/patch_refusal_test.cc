// SPDX-License-Identifier: Apache-2.0
// Kernels that cannot be patched, and images that are none.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/patch.h"
#include "tests/fuzz/patch_entry.h"
#include "tests/unit/cubin/patch_checker.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

// An image made of patch_kernels.cu, to be spoilt.
class RefusalTest : public testing::Test {
 protected:
  void SetUp() override {
    image_ = TestImage("patch.sm_90.cubin");
    ASSERT_FALSE(image_.empty());
  }

  // Offset in the file of section `name`.
  uint64_t Section(const std::string& name) const {
    absl::StatusOr<ElfView> elf = ElfView::Create(image_);
    const ElfSection* section = elf->Find(name);
    if (section == nullptr) {
      ADD_FAILURE() << "no section " << name;
      return 0;
    }
    return section->header.sh_offset;
  }
  template <typename T>
  void Put(uint64_t offset, const T& value) {
    std::memcpy(image_.data() + offset, &value, sizeof(value));
  }
  // Offset in the file of the payload of the first attribute `code`.
  uint64_t Attribute(const std::string& kernel, uint8_t code) const {
    uint64_t at = Section(".nv.info." + kernel);
    while (image_[at + 1] != code) {
      at += 4 + (image_[at] == 4 ? image_[at + 2] + image_[at + 3] * 256 : 0);
    }
    return image_[at] == 4 ? at + 4 : at + 2;
  }

  // Of all kernels only `kernel` is refused, with `reason` in what is said, and
  // it is left as it is.
  void ExpectRefused(const std::string& kernel, const std::string& reason,
                     const PatchOptions& options = {}) {
    absl::StatusOr<PatchedImage> patched = PatchCubin(image_, options);
    ASSERT_TRUE(patched.ok()) << patched.status();
    for (const KernelPatch& patch : patched->kernels) {
      EXPECT_EQ(patch.patched, patch.name != kernel)
          << patch.name << ": " << patch.reason;
      if (patch.name != kernel) continue;
      EXPECT_NE(patch.reason.find(reason), std::string::npos) << patch.reason;
      EXPECT_EQ(patch.hidden_offset, 0u);
    }
    EXPECT_EQ(CheckPatch(image_, *patched, options),
              std::vector<std::string>());
  }

  std::vector<uint8_t> image_;
};

TEST_F(RefusalTest, FirstInstructionThatDependsOnItsAddress) {
  // EXIT, BRA, BSSY, CALL.REL, RET, LEPC, BRX, YIELD.
  for (const uint16_t opcode :
       {0x794d, 0x7947, 0x7945, 0x7944, 0x7950, 0x734e, 0x7949, 0x7946}) {
    Put(Section(".text.plain"), opcode);
    ExpectRefused("plain", "first instruction");
  }
}

TEST_F(RefusalTest, CodeThatRunsIntoThePadding) {
  // The last instruction before the padding is BRA to itself; make it a NOP and
  // what is before it (EXIT) conditional.
  const uint64_t text = Section(".text.plain");
  uint64_t at = text;
  while (image_[at] != 0x4d || image_[at + 1] != 0x79) at += 16;
  Put(at, uint16_t{0x094d});
  Put(at + 16, uint16_t{0x7918});
  ExpectRefused("plain", "does not end");
}

TEST_F(RefusalTest, BranchOutOfTheCode) {
  uint64_t at = Section(".text.plain");
  while (image_[at] != 0x4d || image_[at + 1] != 0x79) at += 16;
  Put(at + 16 + 2, uint8_t{0x00});  // of BRA to itself: far before it
  ExpectRefused("plain", "leads out");
}

TEST_F(RefusalTest, AttributeThatNamesTheFirstInstruction) {
  Put(Attribute("plain", 0x1c), uint32_t{0});
  ExpectRefused("plain", "attribute 0x1c");
}

TEST_F(RefusalTest, RelocatedFirstInstruction) {
  // The table of global addresses has a relocation; say it is one of the code.
  absl::StatusOr<ElfView> elf = ElfView::Create(image_);
  const ElfSection* text = elf->Find(".text.plain");
  const ElfSection* relocations = elf->Find(".rela.nv.constant4");
  ASSERT_TRUE(text != nullptr && relocations != nullptr);
  ASSERT_FALSE(relocations->data.empty());
  const auto index = static_cast<uint32_t>(text - elf->sections().data());
  const size_t own = relocations - elf->sections().data();
  Put(elf->header().e_shoff + own * sizeof(Elf64_Shdr) +
          offsetof(Elf64_Shdr, sh_info),
      index);
  for (const uint64_t offset : {0, 8}) {
    Put(relocations->header.sh_offset, offset);
    ExpectRefused("plain", "relocated");
  }
}

TEST_F(RefusalTest, KernelThatBeginsInsideItsSection) {
  absl::StatusOr<ElfView> elf = ElfView::Create(image_);
  const uint64_t table = elf->Find(".symtab")->header.sh_offset;
  for (size_t i = 0; i < elf->symbols().size(); ++i) {
    const ElfSymbol& symbol = elf->symbols()[i];
    if (symbol.name != "plain") continue;
    Put(table + i * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_value),
        uint64_t{16});
    Put(table + i * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_size),
        uint64_t{16});
  }
  ExpectRefused("plain", "begin");
}

TEST_F(RefusalTest, ParametersThatAreNotUnderstood) {
  const PatchOptions options{Prologue::kWait, 8};
  const std::vector<uint8_t> original = image_;
  const auto spoil = [&](const std::function<void()>& change) {
    image_ = original;
    change();
    ExpectRefused("no_params", "parameter", options);
  };
  // A bank larger than a kernel without parameters has.
  const auto bank_size = [&](uint64_t size) {
    absl::StatusOr<ElfView> elf = ElfView::Create(image_);
    const size_t index =
        elf->Find(".nv.constant0.no_params") - elf->sections().data();
    Put(elf->header().e_shoff + index * sizeof(Elf64_Shdr) +
            offsetof(Elf64_Shdr, sh_size),
        size);
  };
  spoil([&] { bank_size(0x200); });
  // A size without parameters, in place of the first attribute of two bytes.
  spoil([&] { Put(Attribute("no_params", 0x1b) - 1, uint8_t{0x19}); });
  image_ = original;
  Put(Attribute("plain", 0x19), uint16_t{24});
  ExpectRefused("plain", "unknown way", options);
  image_ = original;
  Put(Attribute("plain", 0x0a) + 4, uint16_t{0x211});
  ExpectRefused("plain", "bank", options);
}

TEST_F(RefusalTest, ParametersThatWouldBecomeTooLarge) {
  // large_params has 5016 bytes: with a bank and sizes that say 32760, none
  // fit.
  EXPECT_TRUE(PatchCubin(image_, {Prologue::kWait, 4096}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      PatchCubin(image_, {Prologue::kWait, 4104}).status()));
}

TEST_F(RefusalTest, OptionsOutsideTheirRange) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      PatchCubin(image_, {Prologue::kWait, 4}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      PatchCubin(image_, {static_cast<Prologue>(4), 8}).status()));
}

TEST_F(RefusalTest, ImagesThatAreNoPatchableCubins) {
  EXPECT_TRUE(absl::IsInvalidArgument(PatchCubin({}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      PatchCubin(TestImage("kernels.ptx"), {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      PatchCubin(TestImage("kernels.plain.fatbin"), {}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(
      PatchCubin(TestImage("kernels.sm_80.cubin"), {}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(
      PatchCubin(TestImage("patch.relocatable.cubin"), {}).status()));
  Put(EI_OSABI, uint8_t{0});
  EXPECT_TRUE(absl::IsUnimplemented(PatchCubin(image_, {}).status()));
}

TEST_F(RefusalTest, SectionsThatOverlap) {
  absl::StatusOr<ElfView> elf = ElfView::Create(image_);
  const size_t plain = elf->Find(".text.plain") - elf->sections().data();
  const uint64_t offset = elf->header().e_shoff + plain * sizeof(Elf64_Shdr) +
                          offsetof(Elf64_Shdr, sh_offset);
  Put(offset, elf->Find(".text.plain")->header.sh_offset + 16);
  EXPECT_TRUE(absl::IsInvalidArgument(PatchCubin(image_, {}).status()));
  // All bytes in common are allowed, but then neither can be changed alone.
  image_ = TestImage("patch.sm_90.cubin");
  const ElfSection* bounded = elf->Find(".text.bounded");
  ASSERT_EQ(bounded->data.size(), elf->Find(".text.plain")->data.size());
  Put(offset, bounded->header.sh_offset);
  absl::StatusOr<PatchedImage> patched = PatchCubin(image_, {});
  ASSERT_TRUE(patched.ok()) << patched.status();
  for (const KernelPatch& kernel : patched->kernels) {
    EXPECT_EQ(kernel.patched,
              kernel.name != "plain" && kernel.name != "bounded")
        << kernel.reason;
  }
}

TEST_F(RefusalTest, SegmentThatCoversAPartOfASection) {
  absl::StatusOr<ElfView> elf = ElfView::Create(image_);
  // The last one covers the constant banks.
  const uint64_t last =
      elf->header().e_phoff + (elf->header().e_phnum - 1) * sizeof(Elf64_Phdr);
  Elf64_Phdr segment;
  ASSERT_TRUE(ReadAt(image_, last, &segment));
  Put(last + offsetof(Elf64_Phdr, p_filesz), segment.p_filesz - 4);
  EXPECT_TRUE(PatchCubin(image_, {Prologue::kNone, 0}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      PatchCubin(image_, {Prologue::kWait, 8}).status()));
}

TEST_F(RefusalTest, DamagedImagesAreSurvived) {
  ForEachDamaged(
      image_, [](absl::Span<const uint8_t> bytes) { FuzzPatchCubin(bytes); });
}

}  // namespace
}  // namespace heddle::cubin
