// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/sass_entry.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/cubin/sass.h"
#include "runtime/cubin/sass_semantics.h"

namespace heddle::cubin {
namespace {

void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "the decoder broke a promise: %s\n", what);
  std::abort();
}

void CheckOperand(const SassOperand& operand) {
  switch (operand.kind) {
    case SassOperandKind::kRegister:
      Require(operand.count >= 1 && (operand.index == kSassRegisterZero ||
                                     operand.index + operand.count <= 255),
              "registers are in the file");
      break;
    case SassOperandKind::kUniformRegister:
      Require(
          operand.count >= 1 && (operand.index == kSassUniformRegisterZero ||
                                 operand.index + operand.count <= 63),
          "uniform registers are in the file");
      break;
    case SassOperandKind::kPredicate:
    case SassOperandKind::kUniformPredicate:
      Require(operand.index <= kSassPredicateTrue, "predicates are 0 to 7");
      Require(!operand.negated || operand.access == SassAccess::kRead,
              "no destination is negated");
      break;
    default:
      break;
  }
}

void CheckMemory(const SassInstruction& instruction, const SassMemory& memory) {
  Require(memory.space != SassSpace::kNone, "an access has a space");
  for (const uint8_t at : {memory.base_operand, memory.uniform_operand,
                           memory.descriptor_operand}) {
    if (at == kSassNoOperand) continue;
    Require(at < instruction.operand_count, "address operands exist");
    const SassOperand& operand = instruction.operand[at];
    Require(operand.address && operand.access == SassAccess::kRead,
            "address operands are read");
    Require(operand.kind == SassOperandKind::kRegister ||
                operand.kind == SassOperandKind::kUniformRegister,
            "addresses are in registers");
  }
  if (memory.data_operand == kSassNoOperand) return;
  Require(memory.data_operand < instruction.operand_count, "data exists");
  Require((instruction.operand[memory.data_operand].access ==
           SassAccess::kWrite) == (memory.kind == SassMemoryKind::kLoad),
          "a load writes its data, a store reads it");
}

bool Same(const SassOperand& a, const SassOperand& b, int64_t moved) {
  return a.kind == b.kind && a.access == b.access && a.address == b.address &&
         a.negated == b.negated && a.index == b.index && a.count == b.count &&
         a.bank == b.bank && a.bindless == b.bindless &&
         a.value == b.value - (a.kind == SassOperandKind::kTarget ? moved : 0);
}

void CheckInstruction(uint64_t low, uint64_t high, uint64_t offset,
                      uint32_t arch) {
  const SassInstruction instruction = DecodeSass(low, high, offset, arch);
  Require(instruction.known() == !instruction.mnemonic.empty(),
          "what is known has a name");
  Require(instruction.operand_count <= kSassMaxOperands, "operands fit");
  if (!instruction.known()) {
    Require(instruction.operand_count == 0 && instruction.memory_count == 0 &&
                !instruction.has_target && instruction.flow == SassFlow::kNext,
            "nothing is said about what is unknown");
  }
  for (const SassOperand& operand : instruction.operands()) {
    CheckOperand(operand);
  }
  for (const SassMemory& memory : instruction.accesses()) {
    CheckMemory(instruction, memory);
  }
  const bool has_target_operand =
      std::any_of(instruction.operands().begin(), instruction.operands().end(),
                  [&](const SassOperand& operand) {
                    return operand.kind == SassOperandKind::kTarget &&
                           operand.value == instruction.target;
                  });
  Require(!has_target_operand || instruction.has_target, "targets are named");

  // What it computes is said of what is known alone, in registers that exist.
  const SassOperation operation = InterpretSass(low, high, instruction);
  Require(operation.op == SassOp::kOpaque || instruction.known(),
          "what is unknown is opaque");
  for (const SassSource& source : operation.source) {
    const int zero = source.kind == SassSource::Kind::kUniform
                         ? kSassUniformRegisterZero
                         : kSassRegisterZero;
    if (source.kind == SassSource::Kind::kRegister ||
        source.kind == SassSource::Kind::kUniform) {
      Require(source.index + source.words <= zero, "sources are in the file");
    }
  }

  // Scheduling controls change nothing else, and only targets move along.
  constexpr uint64_t kControls = ~uint64_t{0} << 41;
  constexpr int64_t kMoved = 0x1230;
  const SassInstruction other =
      DecodeSass(low, high ^ kControls, offset + kMoved, arch);
  Require(other.mnemonic == instruction.mnemonic &&
              other.operand_count == instruction.operand_count,
          "controls do not change an instruction");
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    Require(Same(instruction.operand[i], other.operand[i], kMoved),
            "controls do not change an operand");
  }
}

}  // namespace

void FuzzSass(absl::Span<const uint8_t> bytes) {
  for (uint64_t at = 0; at + kSassInstructionBytes <= bytes.size();
       at += kSassInstructionBytes) {
    uint64_t words[2];
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (const uint32_t arch : {80, 86, 89, 90}) {
      CheckInstruction(words[0], words[1], at, arch);
    }
  }
  for (const uint64_t offset : {uint64_t{bytes.size()}, ~uint64_t{0} - 7}) {
    Require(!DecodeSass(bytes, offset, 90).known(), "nothing is outside");
  }
}

}  // namespace heddle::cubin
