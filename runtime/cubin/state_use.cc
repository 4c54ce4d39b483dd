// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/state_use.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/sass.h"
#include "runtime/cubin/straight_line.h"

namespace heddle::cubin {
namespace {

constexpr uint32_t kAddressBank = 4;
constexpr absl::string_view kBankName = ".nv.constant4";

struct Relocation {
  uint64_t offset = 0;
  uint64_t symbol = 0;
};

std::vector<Relocation> Relocations(const ElfSection& section) {
  std::vector<Relocation> relocations;
  const uint64_t entry = section.header.sh_type == SHT_RELA ? sizeof(Elf64_Rela)
                                                            : sizeof(Elf64_Rel);
  for (uint64_t at = 0; at + entry <= section.data.size(); at += entry) {
    Elf64_Rel rel;
    std::memcpy(&rel, section.data.data() + at, sizeof(rel));
    relocations.push_back({rel.r_offset, ELF64_R_SYM(rel.r_info)});
  }
  return relocations;
}

// Literals have no name in the source, so the compiler gave them one; what is
// in them is never written. nvcc's, and those of Triton's device_assert and
// device_print.
bool IsLiteral(absl::string_view name) {
  for (const absl::string_view prefix :
       {"__unnamed_", "$str", "assertMessage_", "assertFile_", "assertFunc_",
        "printfFormat_"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

class StateFinder {
 public:
  StateFinder(const ElfView& elf, uint32_t arch) : elf_(elf), arch_(arch) {}

  // Sections that hold variables, and where bank 4 has their addresses.
  void FindVariables() {
    for (const ElfSection& section : elf_.sections()) {
      const uint32_t type = section.header.sh_type;
      if (type != SHT_REL && type != SHT_RELA) continue;
      const uint64_t target = section.header.sh_info;
      if (target >= elf_.sections().size()) continue;
      const ElfSection& relocated = elf_.sections()[target];
      for (const Relocation& relocation : Relocations(section)) {
        if (!IsVariable(relocation.symbol)) continue;
        if (absl::StartsWith(relocated.name, kBankName)) {
          bank_.push_back(relocation.offset);
        } else if (absl::StartsWith(relocated.name, ".text.")) {
          direct_.insert(target);
        }
      }
    }
    std::sort(bank_.begin(), bank_.end());
  }

  bool Uses(uint64_t index) const {
    if (direct_.contains(index)) return true;
    if (bank_.empty()) return false;
    const Bytes code = elf_.sections()[index].data;
    for (uint64_t at = 0; at + kSassInstructionBytes <= code.size();
         at += kSassInstructionBytes) {
      uint64_t low;
      std::memcpy(&low, code.data() + at, sizeof(low));
      // Where a constant operand stands, if the instruction has one: few do.
      if (((low >> 54) & 0x1f) == kAddressBank && TakesAddress(code, at)) {
        return true;
      }
    }
    return false;
  }

 private:
  bool IsVariable(uint64_t symbol_index) const {
    if (symbol_index >= elf_.symbols().size()) return true;
    const ElfSymbol& symbol = elf_.symbols()[symbol_index];
    if (symbol.symbol.st_shndx >= elf_.sections().size()) return false;
    const absl::string_view section =
        elf_.sections()[symbol.symbol.st_shndx].name;
    if (!absl::StartsWith(section, ".nv.global")) return false;
    return !IsLiteral(symbol.name);
  }

  bool TakesAddress(Bytes code, uint64_t at) const {
    const SassInstruction instruction = DecodeSass(code, at, arch_);
    if (!instruction.known()) return true;
    const SassOperand* index = nullptr;
    for (const SassOperand& operand : instruction.operands()) {
      if (operand.kind == SassOperandKind::kRegister ||
          operand.kind == SassOperandKind::kUniformRegister) {
        if (operand.access == SassAccess::kRead) index = &operand;
      }
      if (operand.kind != SassOperandKind::kConstant || operand.bindless ||
          operand.bank != kAddressBank) {
        continue;
      }
      uint64_t offset = static_cast<uint64_t>(operand.value);
      if (index != nullptr && index->address && !IsZero(*index)) {
        const std::optional<uint64_t> value = ValueOf(*index, code, at);
        if (!value.has_value()) return true;
        offset += *value;
      }
      if (HasAddressAt(offset)) return true;
    }
    return false;
  }

  static bool IsZero(const SassOperand& operand) {
    return operand.index == (operand.kind == SassOperandKind::kRegister
                                 ? kSassRegisterZero
                                 : kSassUniformRegisterZero);
  }

  // The constant that the register of `wanted` holds at `at`, if straight-line
  // code before it says so. ptxas loads addresses of functions that way.
  std::optional<uint64_t> ValueOf(const SassOperand& wanted, Bytes code,
                                  uint64_t at) const {
    if (!line_.has_value() || !line_->IsCode(code)) line_.emplace(code, arch_);
    const std::optional<uint64_t> writer =
        line_->WriterBefore(wanted.kind, wanted.index, at);
    if (!writer.has_value()) return std::nullopt;
    return MovedConstant(DecodeSass(code, *writer, arch_));
  }

  // x of MOV R, x and of IMAD R, RZ, RZ, x, unconditional.
  static std::optional<uint64_t> MovedConstant(
      const SassInstruction& instruction) {
    const bool always =
        instruction.guard == kSassPredicateTrue && !instruction.guard_negated;
    const bool moves = instruction.mnemonic == "MOV" ||
                       instruction.mnemonic == "UMOV" ||
                       instruction.mnemonic == "IMAD";
    if (!always || !moves) return std::nullopt;
    std::optional<uint64_t> value;
    for (const SassOperand& operand : instruction.operands()) {
      if (operand.access == SassAccess::kWrite) continue;
      if (operand.kind == SassOperandKind::kImmediate) {
        if (value.has_value()) return std::nullopt;
        value = static_cast<uint32_t>(operand.value);
      } else if ((operand.kind == SassOperandKind::kRegister ||
                  operand.kind == SassOperandKind::kUniformRegister) &&
                 IsZero(operand)) {
        continue;
      } else {
        return std::nullopt;
      }
    }
    return value;
  }

  // A load of up to 16 bytes from there touches an address.
  bool HasAddressAt(uint64_t offset) const {
    // The first address that ends behind `offset`.
    const auto first = std::upper_bound(
        bank_.begin(), bank_.end(), offset,
        [](uint64_t value, uint64_t address) { return value < address + 8; });
    return first != bank_.end() && *first < offset + 16;
  }

  const ElfView& elf_;
  const uint32_t arch_;
  std::vector<uint64_t> bank_;            // offsets of addresses, ascending
  absl::flat_hash_set<uint64_t> direct_;  // code sections
  // The section looked at last.
  mutable std::optional<StraightLine> line_;
};

}  // namespace

absl::StatusOr<absl::flat_hash_set<std::string>> KernelsWithState(
    absl::Span<const uint8_t> image) {
  absl::StatusOr<Cubin> cubin = ParseCubin(image);
  if (!cubin.ok()) return cubin.status();
  absl::StatusOr<ElfView> elf = ElfView::Create(image);
  if (!elf.ok()) return elf.status();
  absl::flat_hash_set<std::string> with_state;
  const bool global =
      std::any_of(cubin->variables.begin(), cubin->variables.end(),
                  [](const Variable& variable) {
                    return variable.space == VariableSpace::kGlobal &&
                           !IsLiteral(variable.name);
                  });
  if (!global) return with_state;
  StateFinder finder(*elf, cubin->arch);
  finder.FindVariables();
  absl::flat_hash_set<uint64_t> kernel_sections;
  for (const Kernel& kernel : cubin->kernels) {
    kernel_sections.insert(kernel.text_section);
    if (finder.Uses(kernel.text_section)) with_state.insert(kernel.name);
  }
  // Functions that any kernel may call.
  for (uint64_t i = 0; i < elf->sections().size(); ++i) {
    if (!absl::StartsWith(elf->sections()[i].name, ".text.") ||
        kernel_sections.contains(i) || !finder.Uses(i)) {
      continue;
    }
    for (const Kernel& kernel : cubin->kernels) {
      with_state.insert(kernel.name);
    }
    break;
  }
  return with_state;
}

}  // namespace heddle::cubin
