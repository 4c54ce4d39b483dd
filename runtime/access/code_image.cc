// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/code_image.h"

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/nv_info.h"
#include "runtime/cubin/sass_semantics.h"
#include "runtime/cubin/straight_line.h"

namespace heddle::access {
namespace {

using cubin::ElfSection;
using cubin::ElfView;
using cubin::SassInstruction;
using cubin::SassOperation;

constexpr int kAddressBank = 4;
constexpr uint8_t kIndirectBranchTargets = 0x34;
constexpr uint64_t kBytes = cubin::kSassInstructionBytes;

// Functions of the driver's runtime that do not come back (CUDA C++
// Programming Guide, Assertion).
bool NeverReturns(absl::string_view name) { return name == "__assertfail"; }

// Offsets in bank 4 that hold the address of such a function.
std::map<uint64_t, bool> FatalAddresses(const ElfView& elf) {
  std::map<uint64_t, bool> fatal;
  for (const ElfSection& section : elf.sections()) {
    const bool with_addend = section.header.sh_type == SHT_RELA;
    if (!with_addend && section.header.sh_type != SHT_REL) continue;
    const uint64_t target = section.header.sh_info;
    if (target >= elf.sections().size() ||
        !absl::StartsWith(elf.sections()[target].name, ".nv.constant4")) {
      continue;
    }
    const uint64_t entry = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (uint64_t at = 0; at + entry <= section.data.size(); at += entry) {
      Elf64_Rel relocation;
      std::memcpy(&relocation, section.data.data() + at, sizeof(relocation));
      const uint64_t symbol = ELF64_R_SYM(relocation.r_info);
      if (symbol < elf.symbols().size()) {
        // Of several (a bank for each kernel) all must be of that kind.
        const bool never = NeverReturns(elf.symbols()[symbol].name);
        const auto [it, first] = fatal.try_emplace(relocation.r_offset, never);
        it->second &= never;
      }
    }
  }
  return fatal;
}

// {offset of the branch, unused, count, as many targets}, once or more.
void ReadTargets(absl::Span<const uint8_t> value,
                 std::vector<BranchTargets>* targets) {
  std::vector<uint32_t> words(value.size() / 4);
  if (!words.empty()) {
    std::memcpy(words.data(), value.data(), words.size() * 4);
  }
  for (size_t at = 0; at + 3 <= words.size();) {
    BranchTargets branch;
    branch.branch = words[at];
    const size_t count = words[at + 2];
    at += 3;
    if (count > words.size() - at) return;
    branch.targets.assign(words.begin() + static_cast<int64_t>(at),
                          words.begin() + static_cast<int64_t>(at + count));
    at += count;
    targets->push_back(std::move(branch));
  }
}

class CallFinder {
 public:
  CallFinder(absl::Span<const uint8_t> text, uint32_t arch,
             const std::map<uint64_t, bool>& fatal)
      : text_(text), arch_(arch), fatal_(fatal), line_(text, arch) {}

  bool IsFatal(uint64_t call) const {
    const SassInstruction code = cubin::DecodeSass(text_, call, arch_);
    for (const cubin::SassOperand& operand : code.operands()) {
      if (operand.kind != cubin::SassOperandKind::kRegister) continue;
      const std::optional<uint64_t> place = LoadedFrom(operand.index, call);
      if (!place.has_value()) return false;
      const auto it = fatal_.find(*place);
      return it != fatal_.end() && it->second;
    }
    return false;
  }

 private:
  // What wrote register `index` before `offset`, which becomes the place of
  // that; nothing if that depends on more than straight-line code.
  std::optional<SassOperation> WriterOf(int index, uint64_t* offset) const {
    const std::optional<uint64_t> writer =
        line_.WriterBefore(cubin::SassOperandKind::kRegister, index, *offset);
    if (!writer.has_value()) return std::nullopt;
    *offset = *writer;
    const SassInstruction code = cubin::DecodeSass(text_, *writer, arch_);
    if (code.guard != cubin::kSassPredicateTrue || code.guard_negated) {
      return std::nullopt;
    }
    uint64_t words[2];
    std::memcpy(words, text_.data() + *writer, sizeof(words));
    return cubin::InterpretSass(words[0], words[1], code);
  }

  // The offset in bank 4 that register `index` was loaded from.
  std::optional<uint64_t> LoadedFrom(int index, uint64_t offset) const {
    const std::optional<SassOperation> load = WriterOf(index, &offset);
    if (!load.has_value()) return std::nullopt;
    const cubin::SassSource& source = load->source[0];
    if (load->op == cubin::SassOp::kMove && !load->uniform) {
      if (source.kind == cubin::SassSource::Kind::kConstant &&
          source.bank == kAddressBank) {
        return static_cast<uint64_t>(source.value);
      }
      return std::nullopt;
    }
    if (load->op != cubin::SassOp::kReadConstant ||
        load->constant_bank != kAddressBank) {
      return std::nullopt;
    }
    uint64_t place = static_cast<uint64_t>(int64_t{load->constant_offset});
    if (source.kind == cubin::SassSource::Kind::kZero) return place;
    if (source.kind != cubin::SassSource::Kind::kRegister) return std::nullopt;
    const std::optional<SassOperation> moved = WriterOf(source.index, &offset);
    if (!moved.has_value() || moved->op != cubin::SassOp::kMove ||
        moved->source[0].kind != cubin::SassSource::Kind::kImmediate) {
      return std::nullopt;
    }
    place += static_cast<uint32_t>(moved->source[0].value);
    return place;
  }

  absl::Span<const uint8_t> text_;
  uint32_t arch_;
  const std::map<uint64_t, bool>& fatal_;
  cubin::StraightLine line_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CodeImage>> CodeImage::Create(
    std::vector<uint8_t> cubin) {
  auto image = std::make_unique<CodeImage>();
  image->bytes_ = std::move(cubin);
  absl::StatusOr<cubin::Cubin> parsed = cubin::ParseCubin(image->bytes_);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<ElfView> elf = ElfView::Create(image->bytes_);
  if (!elf.ok()) return elf.status();
  const std::map<uint64_t, bool> fatal = FatalAddresses(*elf);
  for (const cubin::Kernel& kernel : parsed->kernels) {
    if (kernel.text_section >= elf->sections().size()) continue;
    const absl::Span<const uint8_t> section =
        elf->sections()[kernel.text_section].data;
    if (kernel.text_offset > section.size()) continue;
    Kernel entry;
    entry.param_base = kernel.param_base;
    entry.param_size = kernel.param_size;
    entry.code.arch = parsed->arch;
    entry.code.text = section.subspan(kernel.text_offset);
    const ElfSection* info = elf->Find(absl::StrCat(".nv.info.", kernel.name));
    if (info != nullptr) {
      // A damaged list has no targets, and what branches by it is unknown.
      std::vector<BranchTargets> targets;
      const absl::Status read = cubin::ForEachNvInfo(
          info->data, [&targets](const cubin::NvInfoAttribute& attribute) {
            if (static_cast<uint8_t>(attribute.code) ==
                kIndirectBranchTargets) {
              ReadTargets(attribute.value, &targets);
            }
          });
      if (read.ok()) entry.code.branch_targets = std::move(targets);
    }
    const CallFinder calls(entry.code.text, parsed->arch, fatal);
    for (uint64_t at = 0; at + kBytes <= entry.code.text.size(); at += kBytes) {
      uint64_t low;
      std::memcpy(&low, entry.code.text.data() + at, sizeof(low));
      // CALL.ABS by register: everything else is not worth decoding twice.
      if ((low & 0xfff) == 0x343 && calls.IsFatal(at)) {
        entry.code.fatal_calls.push_back(static_cast<uint32_t>(at));
      }
    }
    image->kernels_.emplace(kernel.name, std::move(entry));
  }
  return image;
}

const CodeImage::Kernel* CodeImage::Find(absl::string_view name) const {
  const auto it = kernels_.find(std::string(name));
  return it == kernels_.end() ? nullptr : &it->second;
}

}  // namespace heddle::access
