// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/sass_semantics.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cubin/elf_view.h"
#include "tests/unit/cubin/sass_text.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

using Word = std::pair<uint64_t, uint64_t>;

struct Image {
  const char* name;
  uint32_t arch;
};
constexpr Image kImages[] = {
    {"kernels.sm_80.cubin", 80},   {"kernels.sm_90.cubin", 90},
    {"sass.sm_80.cubin", 80},      {"sass.sm_86.cubin", 86},
    {"sass.sm_89.cubin", 89},      {"sass.sm_90a.cubin", 90},
    {"semantics.sm_80.cubin", 80}, {"semantics.sm_89.cubin", 89},
    {"semantics.sm_90a.cubin", 90}};

// Seen in libraries only: R2P PR, R183, 0x7f and R2P PR, R4.B1, 0xf; LEA.HI R8,
// R4, R6, 0x1234, 0x4 and LEA.HI.X R8, R4, R6, 0x80000001, 0x4, P2; UIADD3.64
// UR6, UR4, UR8, URZ and the same with 0x10 and -0x10.
constexpr Word kLibraryWords[] = {{0x0000007fb7007804, 0x000fe20000000000},
                                  {0x0000000f04007804, 0x000fe20000001000},
                                  {0x0000123404087411, 0x000fe200038f2006},
                                  {0x8000000104087411, 0x000fe200010f2406},
                                  {0x0000000804067297, 0x000fe2000fffe03f},
                                  {0x0000001004067897, 0x000fe2000fffe03f},
                                  {0xfffffff004067897, 0x000fe2000fffe03f}};

// Distinct instructions of the test images by compute capability, without
// scheduling controls.
std::map<uint32_t, std::set<Word>> TestWords() {
  std::map<uint32_t, std::set<Word>> result;
  result[90].insert(std::begin(kLibraryWords), std::end(kLibraryWords));
  for (const Image& image : kImages) {
    const std::vector<uint8_t> bytes = TestImage(image.name);
    EXPECT_FALSE(bytes.empty()) << image.name;
    const absl::StatusOr<ElfView> elf = ElfView::Create(bytes);
    if (!elf.ok()) continue;
    for (const ElfSection& section : elf->sections()) {
      if (section.name.substr(0, 6) != ".text.") continue;
      for (uint64_t at = 0; at + 16 <= section.data.size(); at += 16) {
        uint64_t words[2];
        std::memcpy(words, section.data.data() + at, sizeof(words));
        constexpr uint64_t kControls = ~uint64_t{0} << 41;
        constexpr uint64_t kPlain = uint64_t{0x000fe2} << 40;
        result[image.arch].insert({words[0], (words[1] & ~kControls) | kPlain});
      }
    }
  }
  return result;
}

SassOperation Interpret(Word word, uint32_t arch) {
  return InterpretSass(word.first, word.second,
                       DecodeSass(word.first, word.second, 0, arch));
}

// Compares what InterpretSass says with nvdisasm; returns how many
// instructions were compared.
int CompareWithDisassembler(const std::vector<Word>& words, uint32_t arch) {
  std::vector<uint8_t> bytes(words.size() * 16);
  for (size_t i = 0; i < words.size(); ++i) {
    std::memcpy(&bytes[i * 16], &words[i].first, 8);
    std::memcpy(&bytes[i * 16 + 8], &words[i].second, 8);
  }
  const std::vector<std::string> lines = Disassemble(bytes, arch);
  EXPECT_EQ(lines.size(), words.size());
  int compared = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    // Names of modifiers that nobody uses print as question marks.
    if (lines[i].empty() || lines[i].find('?') != std::string::npos ||
        lines[i].find("INVALID") != std::string::npos) {
      continue;
    }
    const SassInstruction decoded =
        DecodeSass(words[i].first, words[i].second, 0, arch);
    const SassOperation operation =
        InterpretSass(words[i].first, words[i].second, decoded);
    if (operation.op == SassOp::kOpaque) continue;
    ++compared;
    EXPECT_EQ(SassText(decoded, operation), NormalSassText(lines[i]))
        << "sm_" << arch << " " << lines[i] << std::hex << " "
        << words[i].second << "_" << words[i].first;
  }
  return compared;
}

TEST(SassSemanticsTest, SaysOfCompiledCodeWhatTheDisassemblerPrints) {
  if (!CanDisassemble()) GTEST_SKIP() << "there is no nvdisasm in PATH";
  int compared = 0;
  for (const auto& [arch, words] : TestWords()) {
    compared += CompareWithDisassembler({words.begin(), words.end()}, arch);
  }
  EXPECT_GT(compared, 1000);
}

// Modifiers that the compiler had no use for must be told apart too: whatever
// single bit of an instruction changes, either it becomes opaque or the
// disassembler prints what InterpretSass says.
TEST(SassSemanticsTest, SaysWhatTheDisassemblerPrintsWhenAnyBitIsFlipped) {
  if (!CanDisassemble()) GTEST_SKIP() << "there is no nvdisasm in PATH";
  std::mt19937_64 random(20240717);
  int compared = 0;
  for (const auto& [arch, words] : TestWords()) {
    // A few of every opcode.
    std::map<uint64_t, std::vector<Word>> by_opcode;
    for (const Word& word : words) {
      if (Interpret(word, arch).op == SassOp::kOpaque) continue;
      by_opcode[word.first & 0xfff].push_back(word);
    }
    std::set<Word> flipped;
    for (const auto& [opcode, examples] : by_opcode) {
      for (int i = 0; i < 2; ++i) {
        const Word word = examples[random() % examples.size()];
        for (int bit = 12; bit < 105; ++bit) {
          Word changed = word;
          (bit < 64 ? changed.first : changed.second) ^= uint64_t{1}
                                                         << (bit & 63);
          flipped.insert(changed);
        }
      }
    }
    compared += CompareWithDisassembler({flipped.begin(), flipped.end()}, arch);
  }
  EXPECT_GT(compared, 10000);
}

// Every operation is there, so that none of them goes unchecked.
TEST(SassSemanticsTest, FindsEveryOperationInCompiledCode) {
  std::set<SassOp> seen;
  for (const auto& [arch, words] : TestWords()) {
    for (const Word& word : words) seen.insert(Interpret(word, arch).op);
  }
  for (int op = 0; op <= static_cast<int>(SassOp::kAddMinMax); ++op) {
    EXPECT_EQ(seen.count(static_cast<SassOp>(op)), 1) << op;
  }
}

// Instructions as nvcc 13.0 wrote them.
TEST(SassSemanticsTest, ReadsTheOperandsOfExamples) {
  // IADD3.X R0, R3, ~R5, R7, P4, !P2
  SassOperation o = Interpret(
      {0x8000000503007210, 0x000fe2000274e407 | uint64_t{1} << 16}, 90);
  EXPECT_EQ(o.op, SassOp::kAdd);
  EXPECT_TRUE(o.extended);
  EXPECT_EQ(o.destination, 0);
  EXPECT_EQ(o.source[0].index, 3);
  EXPECT_TRUE(o.source[1].negate);
  EXPECT_EQ(o.source[2].index, 7);
  EXPECT_TRUE(o.source_predicate[1].negated);
  // LEA.HI.X R11, R6, R2, R7, 0x2, P3
  o = Interpret({0x00000002060b7211, 0x000fe200018f1407}, 90);
  EXPECT_EQ(o.op, SassOp::kShiftAddHigh);
  EXPECT_EQ(o.source[0].index, 6);
  EXPECT_EQ(o.source[1].index, 2);
  EXPECT_EQ(o.source[2].index, 7);
  EXPECT_EQ(o.shift, 2);
  EXPECT_EQ(o.source_predicate[0].index, 3);
  // HFMA2.MMA R3, -RZ, RZ, 0, 2.384185791015625e-07: four.
  o = Interpret({0x00000004ff037435, 0x000fe200000001ff}, 90);
  EXPECT_EQ(o.op, SassOp::kMove);
  EXPECT_EQ(o.destination, 3);
  EXPECT_EQ(o.source[0].kind, SassSource::Kind::kImmediate);
  EXPECT_EQ(o.source[0].value, 4);
  // HFMA2.MMA with the first half not a number, or another multiplicand.
  o = Interpret({0x7e000004ff037435, 0x000fe200000001ff}, 90);
  EXPECT_EQ(o.op, SassOp::kOpaque);
  o = Interpret({0x0000000405037435, 0x000fe200000001ff}, 90);
  EXPECT_EQ(o.op, SassOp::kOpaque);
  // IMAD.WIDE R14, R3, R0, R14
  o = Interpret({0x00000000030e7225, 0x000fe200078e020e}, 90);
  EXPECT_EQ(o.op, SassOp::kMultiplyWide);
  EXPECT_TRUE(o.is_signed);
  EXPECT_EQ(o.destination_words, 2);
  EXPECT_EQ(o.source[0].words, 1);
  EXPECT_EQ(o.source[2].words, 2);
  // SHF.R.S32.HI R2, RZ, 0x1, R2
  o = Interpret({0x00000001ff027819, 0x000fe20000011402}, 90);
  EXPECT_EQ(o.op, SassOp::kFunnelShift);
  EXPECT_TRUE(o.shift_right && o.shift_high && o.is_signed);
  EXPECT_FALSE(o.shift_wide || o.shift_wrap);
  EXPECT_EQ(o.source[0].kind, SassSource::Kind::kZero);
  EXPECT_EQ(o.source[1].value, 1);
  EXPECT_EQ(o.source[2].index, 2);
}

TEST(SassSemanticsTest, ReadsTheOperandsOfWhatOnlyLibrariesUse) {
  // LEA.HI.X R8, R4, R6, 0x80000001, 0x4, P2: the number is the high word.
  SassOperation o = Interpret({0x8000000104087411, 0x000fe200010f2406}, 90);
  EXPECT_EQ(o.op, SassOp::kShiftAddHigh);
  EXPECT_TRUE(o.extended);
  EXPECT_FALSE(o.sign_fill);
  EXPECT_EQ(o.source[0].index, 4);
  EXPECT_EQ(o.source[1].kind, SassSource::Kind::kRegister);
  EXPECT_EQ(o.source[1].index, 6);
  EXPECT_FALSE(o.source[1].negate);
  EXPECT_EQ(o.source[2].kind, SassSource::Kind::kImmediate);
  EXPECT_EQ(o.source[2].value, 0x80000001);
  EXPECT_EQ(o.shift, 4);
  EXPECT_EQ(o.source_predicate[0].index, 2);
  // UIADD3.64 UR6, UR4, -0x10, URZ: the number has 64 bits.
  o = Interpret({0xfffffff004067897, 0x000fe2000fffe03f}, 90);
  EXPECT_EQ(o.op, SassOp::kAdd);
  EXPECT_TRUE(o.uniform);
  EXPECT_EQ(o.destination, 6);
  EXPECT_EQ(o.destination_words, 2);
  EXPECT_EQ(o.source[0].index, 4);
  EXPECT_EQ(o.source[0].words, 2);
  EXPECT_EQ(o.source[1].value, -16);
  EXPECT_EQ(o.source[2].kind, SassSource::Kind::kZero);
}

// What the compiler makes addresses of must not be opaque, else every footprint
// would be unknown.
TEST(SassSemanticsTest, KnowsTheIntegerInstructionsThatTheCompilerWrites) {
  const std::set<std::string> expected_opaque = {"IDP", "I2I", "I2IP",
                                                 "VABSDIFF", "VABSDIFF4"};
  int known = 0;
  for (const auto& [arch, words] : TestWords()) {
    for (const Word& word : words) {
      const SassInstruction decoded =
          DecodeSass(word.first, word.second, 0, arch);
      const bool integer =
          decoded.instruction_class == SassClass::kInteger ||
          decoded.instruction_class == SassClass::kUniform ||
          decoded.instruction_class == SassClass::kPredicate ||
          decoded.instruction_class == SassClass::kSpecialRegister ||
          (decoded.memory_count == 1 &&
           decoded.memory[0].space == SassSpace::kConstant);
      const std::string mnemonic(decoded.mnemonic.data(),
                                 decoded.mnemonic.size());
      if (!integer || expected_opaque.count(mnemonic) != 0) continue;
      ++known;
      EXPECT_NE(Interpret(word, arch).op, SassOp::kOpaque)
          << "sm_" << arch << " " << mnemonic << std::hex << " " << word.second
          << "_" << word.first;
    }
  }
  EXPECT_GT(known, 1000);
}

// Whatever the bits are, the result keeps to what the header promises.
TEST(SassSemanticsTest, KeepsItsPromisesForAnyBits) {
  std::mt19937_64 random(7);
  std::vector<std::pair<Word, uint32_t>> seeds;
  for (const auto& [arch, words] : TestWords()) {
    for (const Word& word : words) seeds.push_back({word, arch});
  }
  ASSERT_FALSE(seeds.empty());
  int interpreted = 0;
  for (int i = 0; i < 400000; ++i) {
    auto [word, arch] = seeds[random() % seeds.size()];
    for (int flips = static_cast<int>(random() % 4); flips > 0; --flips) {
      const int bit = static_cast<int>(random() % 105);
      (bit < 64 ? word.first : word.second) ^= uint64_t{1} << (bit & 63);
    }
    const SassInstruction decoded =
        DecodeSass(word.first, word.second, 0, arch);
    const SassOperation operation =
        InterpretSass(word.first, word.second, decoded);
    if (operation.op == SassOp::kOpaque) continue;
    ++interpreted;
    ASSERT_TRUE(decoded.known());
    for (const SassPredicateUse& use : operation.destination_predicate) {
      ASSERT_FALSE(use.negated);
      ASSERT_LE(use.index, kSassPredicateTrue);
    }
    for (const SassSource& source : operation.source) {
      ASSERT_TRUE(source.words == 1 || source.words == 2);
      if (source.kind == SassSource::Kind::kImmediate) {
        // Extended without a sign, and with it where the sum has 64 bits.
        if (operation.op == SassOp::kAdd && operation.destination_words == 2) {
          ASSERT_EQ(source.value, static_cast<int32_t>(source.value));
        } else {
          ASSERT_EQ(source.value & ~int64_t{0xffffffff}, 0);
        }
      }
    }
    // Everything that is written is among the decoder's operands.
    const auto written = [&](SassOperandKind kind, int index) {
      for (const SassOperand& operand : decoded.operands()) {
        if (operand.access == SassAccess::kWrite && operand.kind == kind &&
            operand.index <= index && index < operand.index + operand.count) {
          return true;
        }
      }
      return false;
    };
    const uint8_t zero =
        operation.uniform ? kSassUniformRegisterZero : kSassRegisterZero;
    if (operation.op == SassOp::kRegisterToPredicates) continue;
    for (int word_at = 0; word_at < operation.destination_words; ++word_at) {
      if (operation.destination == zero) continue;
      ASSERT_TRUE(written(operation.uniform ? SassOperandKind::kUniformRegister
                                            : SassOperandKind::kRegister,
                          operation.destination + word_at));
    }
  }
  EXPECT_GT(interpreted, 100000);
}

}  // namespace
}  // namespace heddle::cubin
