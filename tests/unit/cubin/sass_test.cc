// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/sass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"
#include "tests/fuzz/sass_entry.h"
#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

using Code = std::vector<SassInstruction>;

std::string String(absl::string_view text) {
  return {text.data(), text.size()};
}

// The functions of a cubin by section name, without ".text.".
std::map<std::string, Code> Functions(const std::vector<uint8_t>& image,
                                      uint32_t arch) {
  std::map<std::string, Code> result;
  const absl::StatusOr<ElfView> elf = ElfView::Create(image);
  if (!elf.ok()) return result;
  for (const ElfSection& section : elf->sections()) {
    if (section.name.substr(0, 6) != ".text.") continue;
    Code& code = result[String(section.name.substr(6))];
    for (uint64_t at = 0; at < section.data.size();
         at += kSassInstructionBytes) {
      code.push_back(DecodeSass(section.data, at, arch));
    }
  }
  return result;
}

struct Image {
  const char* name;
  uint32_t arch;
};
constexpr Image kImages[] = {
    {"kernels.sm_80.cubin", 80}, {"kernels.sm_90.cubin", 90},
    {"sass.sm_80.cubin", 80},    {"sass.sm_86.cubin", 86},
    {"sass.sm_89.cubin", 89},    {"sass.sm_90a.cubin", 90}};

void ForEachFunction(
    const std::function<void(const std::string&, const Code&)>& visit) {
  for (const Image& image : kImages) {
    const std::vector<uint8_t> bytes = TestImage(image.name);
    ASSERT_FALSE(bytes.empty()) << image.name;
    const std::map<std::string, Code> functions = Functions(bytes, image.arch);
    ASSERT_FALSE(functions.empty());
    for (const auto& [name, code] : functions) {
      visit(std::string(image.name) + " " + name, code);
    }
  }
}

TEST(SassTest, KnowsEveryInstructionThatTheCompilerWrites) {
  ForEachFunction([](const std::string& name, const Code& code) {
    for (size_t i = 0; i < code.size(); ++i) {
      EXPECT_TRUE(code[i].known())
          << name << " at " << i * 16 << " opcode " << code[i].opcode;
    }
  });
}

TEST(SassTest, ControlFlowStaysInTheFunction) {
  int targets = 0;
  ForEachFunction([&](const std::string& name, const Code& code) {
    int exits = 0;
    for (const SassInstruction& instruction : code) {
      exits += instruction.flow == SassFlow::kExit ||
                       instruction.flow == SassFlow::kReturn
                   ? 1
                   : 0;
      if (!instruction.has_target) continue;
      EXPECT_TRUE(instruction.relative);
      ++targets;
      // Calls of other functions are relocated and lead nowhere yet.
      if (instruction.flow == SassFlow::kReturn ||
          instruction.flow == SassFlow::kCall) {
        continue;
      }
      EXPECT_EQ(instruction.target % 16, 0) << name;
      EXPECT_GE(instruction.target, 0) << name;
      EXPECT_LE(instruction.target, static_cast<int64_t>(code.size() * 16))
          << name;
    }
    EXPECT_GE(exits, 1) << name;
    // The endless loop that follows the code, and padding.
    const auto last = std::find_if(
        code.rbegin(), code.rend(), [](const SassInstruction& instruction) {
          return instruction.instruction_class != SassClass::kNop;
        });
    ASSERT_NE(last, code.rend());
    EXPECT_EQ(last->flow, SassFlow::kBranch) << name;
    EXPECT_EQ(last->target, (code.rend() - last - 1) * 16) << name;
  });
  EXPECT_GT(targets, 30);
}

// BRA.U !P2, !UP3, 0x110, as cuBLASLt's kernels have it and no compiler here.
constexpr uint64_t kBranchLow = 0x000000010b407547;
constexpr uint64_t kBranchHigh = 0x000fe2000d000000;

TEST(SassTest, ABranchMayHaveAUniformPredicateBesideItsOwn) {
  const SassInstruction branch = DecodeSass(kBranchLow, kBranchHigh, 0, 90);
  ASSERT_TRUE(branch.known());
  EXPECT_EQ(branch.mnemonic, "BRA");
  EXPECT_EQ(branch.flow, SassFlow::kBranch);
  EXPECT_TRUE(branch.has_target);
  EXPECT_EQ(branch.target, 0x110);
  EXPECT_EQ(branch.guard, kSassPredicateTrue);
  ASSERT_GE(branch.operands().size(), 2u);
  const SassOperand& own = branch.operands()[0];
  EXPECT_EQ(own.kind, SassOperandKind::kPredicate);
  EXPECT_EQ(own.index, 2);
  EXPECT_TRUE(own.negated);
  EXPECT_EQ(own.access, SassAccess::kRead);
  const SassOperand& uniform = branch.operands()[1];
  EXPECT_EQ(uniform.kind, SassOperandKind::kUniformPredicate);
  EXPECT_EQ(uniform.index, 3);
  EXPECT_TRUE(uniform.negated);
  EXPECT_EQ(uniform.access, SassAccess::kRead);
}

// Whichever bit changes: it is no such branch any more, or one whose predicates
// and target are in these bits.
TEST(SassTest, EveryBitOfSuchABranchCounts) {
  const SassInstruction before = DecodeSass(kBranchLow, kBranchHigh, 0, 90);
  const auto changed = [&](int bit) {
    return DecodeSass(kBranchLow ^ (bit < 64 ? uint64_t{1} << bit : 0),
                      kBranchHigh ^ (bit < 64 ? 0 : uint64_t{1} << (bit - 64)),
                      0, 90);
  };
  const auto is_branch = [](const SassInstruction& code) {
    return code.known() && code.flow == SassFlow::kBranch &&
           code.opcode == 0x547;
  };
  for (const int bit : {12, 13, 14, 15}) {
    const SassInstruction after = changed(bit);
    ASSERT_TRUE(is_branch(after)) << bit;
    EXPECT_TRUE(after.guard != before.guard ||
                after.guard_negated != before.guard_negated);
  }
  for (const auto& [first, at] : {std::pair{87, 0}, std::pair{24, 1}}) {
    for (int bit = first; bit < first + 4; ++bit) {
      const SassInstruction after = changed(bit);
      ASSERT_TRUE(is_branch(after)) << bit;
      const SassOperand& one = after.operands()[static_cast<size_t>(at)];
      const SassOperand& was = before.operands()[static_cast<size_t>(at)];
      EXPECT_EQ(one.index ^ was.index,
                bit < first + 3 ? 1 << (bit - first) : 0);
      EXPECT_EQ(one.negated, was.negated != (bit == first + 3));
      EXPECT_EQ(after.target, before.target);
    }
  }
  for (const int bit :
       {16, 17, 18, 19, 20, 21, 22, 23, 34, 35, 50, 63, 64, 81}) {
    const SassInstruction after = changed(bit);
    if (!is_branch(after)) continue;
    EXPECT_NE(after.target, before.target) << bit;
  }
  // .U, and where it goes by a mask.
  for (const int bit : {32, 33, 91})
    EXPECT_FALSE(is_branch(changed(bit))) << bit;
}

// A number for a register of any file.
int Key(SassOperandKind kind, int index) {
  return static_cast<int>(kind) * 1000 + index;
}

template <typename Add>
void ForEachRegister(const SassOperand& operand, Add add) {
  const bool predicate = operand.kind == SassOperandKind::kPredicate ||
                         operand.kind == SassOperandKind::kUniformPredicate;
  const bool general = operand.kind == SassOperandKind::kRegister;
  const bool uniform = operand.kind == SassOperandKind::kUniformRegister;
  if (operand.kind == SassOperandKind::kPredicateSet) {
    for (int i = 0; i < 7; ++i) {
      if (operand.value >> i & 1) add(Key(SassOperandKind::kPredicate, i));
    }
  }
  if (!predicate && !general && !uniform) return;
  const int zero = predicate ? kSassPredicateTrue
                   : general ? kSassRegisterZero
                             : kSassUniformRegisterZero;
  if (operand.index == zero) return;
  for (int i = 0; i < operand.count; ++i) {
    add(Key(operand.kind, operand.index + i));
  }
}

// A compiler reads nothing that was never written, and leaves no instruction
// whose results nobody reads. So a destination or a source that the decoder
// overlooks shows, without another disassembler.
TEST(SassTest, WhatIsReadIsWrittenSomewhereAndTheOtherWayRound) {
  ForEachFunction([](const std::string& name, const Code& code) {
    // Functions that are called have arguments in registers.
    if (name.find("called") != std::string::npos ||
        name.find("calls") != std::string::npos) {
      return;
    }
    std::set<int> read;
    std::set<int> written;
    for (const SassInstruction& instruction : code) {
      if (instruction.guard != kSassPredicateTrue) {
        read.insert(Key(instruction.guard_uniform
                            ? SassOperandKind::kUniformPredicate
                            : SassOperandKind::kPredicate,
                        instruction.guard));
      }
      for (const SassOperand& operand : instruction.operands()) {
        ForEachRegister(operand, [&](int key) {
          (operand.access == SassAccess::kWrite ? written : read).insert(key);
        });
      }
    }
    for (const int key : read) {
      EXPECT_TRUE(written.contains(key)) << name << " reads " << key;
    }
    for (size_t i = 0; i < code.size(); ++i) {
      bool any = false;
      bool used = false;
      for (const SassOperand& operand : code[i].operands()) {
        if (operand.access != SassAccess::kWrite) continue;
        ForEachRegister(operand, [&](int key) {
          // The stack pointer is set up whether there is a stack or not.
          if (key == Key(SassOperandKind::kRegister, 1)) used = true;
          any = true;
          used = used || read.contains(key);
        });
      }
      EXPECT_TRUE(used || !any)
          << name << ": nobody reads what " << String(code[i].mnemonic)
          << " at " << i * 16 << " writes";
    }
  });
}

// (mnemonic, space, kind, bytes) of the accesses of a kernel, constants aside.
using Access = std::tuple<std::string, SassSpace, SassMemoryKind, int>;
std::vector<Access> Accesses(const Code& code) {
  std::vector<Access> result;
  for (const SassInstruction& instruction : code) {
    for (const SassMemory& memory : instruction.accesses()) {
      if (memory.space == SassSpace::kConstant) continue;
      result.emplace_back(String(instruction.mnemonic), memory.space,
                          memory.kind, memory.bytes);
    }
  }
  return result;
}

TEST(SassTest, StoresHaveTheirWidths) {
  for (const Image& image : kImages) {
    std::map<std::string, Code> functions =
        Functions(TestImage(image.name), image.arch);
    if (!functions.contains("stores")) continue;
    std::multiset<int> sizes;
    for (const auto& [name, space, kind, bytes] :
         Accesses(functions["stores"])) {
      EXPECT_EQ(name, "STG");
      EXPECT_EQ(space, SassSpace::kGlobal);
      EXPECT_EQ(kind, SassMemoryKind::kStore);
      sizes.insert(bytes);
    }
    EXPECT_EQ(sizes, (std::multiset<int>{1, 2, 4, 8, 16})) << image.name;
    for (const SassInstruction& instruction : functions["stores"]) {
      if (instruction.instruction_class != SassClass::kStore) continue;
      const SassMemory& memory = instruction.memory[0];
      EXPECT_TRUE(memory.wide);
      EXPECT_EQ(instruction.operand[memory.base_operand].count, 2);
      EXPECT_EQ(instruction.operand[memory.data_operand].count,
                std::max(1, memory.bytes / 4));
    }
  }
}

TEST(SassTest, BulkCopiesSayWhereTheyReadAndWrite) {
  std::map<std::string, Code> functions =
      Functions(TestImage("sass.sm_90a.cubin"), 90);
  const SassSpace global = SassSpace::kGlobal;
  const SassSpace shared = SassSpace::kShared;
  const SassSpace cluster = SassSpace::kDistributedShared;
  using Kind = SassMemoryKind;
  EXPECT_EQ(Accesses(functions["bulk"]),
            (std::vector<Access>{{"UBLKCP", cluster, Kind::kStore, 0},
                                 {"UBLKCP", global, Kind::kLoad, 0},
                                 {"UBLKCP", global, Kind::kStore, 0},
                                 {"UBLKCP", shared, Kind::kLoad, 0},
                                 {"UBLKRED", global, Kind::kReduction, 0},
                                 {"UBLKRED", shared, Kind::kLoad, 0},
                                 {"UBLKPF", global, Kind::kPrefetch, 0}}));
  EXPECT_EQ(Accesses(functions["tensor"]),
            (std::vector<Access>{{"UTMALDG", cluster, Kind::kStore, 0},
                                 {"UTMALDG", global, Kind::kLoad, 0},
                                 {"UTMASTG", global, Kind::kStore, 0},
                                 {"UTMASTG", shared, Kind::kLoad, 0},
                                 {"UTMAREDG", global, Kind::kReduction, 0},
                                 {"UTMAREDG", shared, Kind::kLoad, 0},
                                 {"UTMAPF", global, Kind::kPrefetch, 0}}));
  int dependent = 0;
  for (const SassInstruction& instruction : functions["dependent"]) {
    dependent +=
        instruction.instruction_class == SassClass::kDependentLaunch ? 1 : 0;
  }
  EXPECT_EQ(dependent, 2);
}

TEST(SassTest, AtomicsReturnOrDoNot) {
  for (const Image& image : kImages) {
    std::map<std::string, Code> functions =
        Functions(TestImage(image.name), image.arch);
    if (!functions.contains("atomics")) continue;
    std::multiset<std::pair<SassSpace, int>> atomics;
    std::multiset<std::pair<SassSpace, int>> reductions;
    for (const auto& [name, space, kind, bytes] :
         Accesses(functions["atomics"])) {
      if (kind == SassMemoryKind::kAtomic) atomics.emplace(space, bytes);
      if (kind == SassMemoryKind::kReduction) reductions.emplace(space, bytes);
    }
    using Set = std::multiset<std::pair<SassSpace, int>>;
    EXPECT_EQ(atomics, (Set{{SassSpace::kGlobal, 4},
                            {SassSpace::kGlobal, 8},
                            {SassSpace::kShared, 4},
                            {SassSpace::kShared, 4}}))
        << image.name;
    EXPECT_EQ(reductions, (Set{{SassSpace::kGlobal, 8}})) << image.name;
  }
}

// Parameters are read from bank 0 inside the block that the image states.
TEST(SassTest, ConstantsLieWhereParametersAre) {
  const std::vector<uint8_t> image = TestImage("sass.sm_90a.cubin");
  const absl::StatusOr<Cubin> cubin = ParseCubin(image);
  ASSERT_TRUE(cubin.ok());
  std::map<std::string, Code> functions = Functions(image, 90);
  for (const Kernel& kernel : cubin->kernels) {
    if (kernel.params.empty()) continue;
    std::set<int64_t> words;
    for (const SassInstruction& instruction : functions[kernel.name]) {
      for (const SassOperand& operand : instruction.operands()) {
        if (operand.kind != SassOperandKind::kConstant) continue;
        EXPECT_EQ(operand.bank, 0);
        for (int i = 0; i < operand.count; ++i) {
          words.insert(operand.value + 4 * i);
        }
      }
    }
    const int64_t begin = kernel.param_base;
    const int64_t end = begin + kernel.param_size;
    for (const KernelParam& param : kernel.params) {
      // The tensor map is used by its address.
      if (param.size > 8) continue;
      EXPECT_TRUE(words.contains(begin + param.offset))
          << kernel.name << " does not read " << param.offset;
    }
    EXPECT_TRUE(words.lower_bound(end) == words.end()) << kernel.name;
  }
}

TEST(SassTest, KeepsItsPromisesForRandomWords) {
  std::mt19937_64 random(7);
  std::vector<uint8_t> bytes(16 * 4096);
  for (int round = 0; round < 20; ++round) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    FuzzSass(bytes);
  }
  // Real instructions with bits changed reach deeper.
  for (const Image& image : kImages) {
    const std::vector<uint8_t> real = TestImage(image.name);
    const absl::StatusOr<ElfView> elf = ElfView::Create(real);
    ASSERT_TRUE(elf.ok());
    for (const ElfSection& section : elf->sections()) {
      if (section.name.substr(0, 6) != ".text.") continue;
      std::vector<uint8_t> code(section.data.begin(), section.data.end());
      FuzzSass(code);
      for (int change = 0; change < 20; ++change) {
        for (size_t at = 0; at < code.size(); at += 16) {
          const uint64_t bit = 9 + random() % 96;
          code[at + bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
        }
        FuzzSass(code);
      }
    }
  }
}

TEST(SassTest, OtherChipsAreUnknown) {
  EXPECT_FALSE(SassSupports(75));
  EXPECT_FALSE(SassSupports(100));
  // EXIT, everywhere the same.
  EXPECT_FALSE(DecodeSass(0x794d, 0x000fea0003800000, 0, 100).known());
  EXPECT_EQ(DecodeSass(0x794d, 0x000fea0003800000, 0, 90).flow,
            SassFlow::kExit);
}

TEST(SassTest, ReadsSchedulingControls) {
  // Stalls 15 cycles, sets scoreboard 2 when read and 1 when written, waits for
  // 0 and 3, reuses the second operand.
  const uint64_t controls = uint64_t{15} | uint64_t{1} << 4 | uint64_t{1} << 5 |
                            uint64_t{2} << 8 | uint64_t{9} << 11 |
                            uint64_t{2} << 17;
  const SassControl control = DecodeSass(0x7918, controls << 41, 0, 90).control;
  EXPECT_EQ(control.stall, 15);
  EXPECT_FALSE(control.yield);
  EXPECT_EQ(control.write_barrier, 1);
  EXPECT_EQ(control.read_barrier, 2);
  EXPECT_EQ(control.wait_mask, 9);
  EXPECT_EQ(control.reuse, 2);
}

}  // namespace
}  // namespace heddle::cubin
