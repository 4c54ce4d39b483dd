// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/prologue.h"

#include <cstddef>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/elf_view.h"

namespace heddle::hostdevice {
namespace {

// sm_90: 16 bytes each. The low 12 bits are the operation, the next 4 the
// predicate, of which 7 means always.
constexpr uint64_t kInstructionBytes = 16;
constexpr uint64_t kOperationMask = 0xffff;
constexpr uint64_t kBranch = 0x7947;
constexpr uint64_t kTrigger = 0x782d;
constexpr uint64_t kWait = 0x782e;
// Stubs are tiny, since they are on every block's way: what is longer is none.
constexpr uint64_t kMaxStubInstructions = 64;

struct Instruction {
  uint64_t low = 0;
  uint64_t high = 0;
  uint64_t operation() const { return low & kOperationMask; }
};

bool Read(cubin::Bytes code, uint64_t offset, Instruction* out) {
  return cubin::ReadAt(code, offset, &out->low) &&
         cubin::ReadAt(code, offset + sizeof(uint64_t), &out->high);
}

// Where a branch at `offset` leads. The displacement counts from the next
// instruction, in units of 4 bytes: bits 16-23 are its low 8 bits, bits 34-81
// the rest.
uint64_t BranchTarget(const Instruction& branch, uint64_t offset) {
  const uint64_t rest =
      branch.low >> 34 | (branch.high & ((uint64_t{1} << 18) - 1)) << 30;
  uint64_t displacement = rest << 8 | (branch.low >> 16 & 0xff);
  // A 56-bit number in two's complement.
  if ((displacement >> 55) != 0) displacement |= uint64_t{0xff} << 56;
  return offset + kInstructionBytes + displacement * 4;
}

}  // namespace

std::vector<PrologueStep> ReadPrologue(absl::Span<const uint8_t> code) {
  Instruction at;
  if (!Read(code, 0, &at) || at.operation() != kBranch) return {};
  const uint64_t stub = BranchTarget(at, 0);
  if (stub % kInstructionBytes != 0 || stub <= kInstructionBytes) return {};
  // One step behind: the last instruction before the branch back is the
  // kernel's own.
  std::vector<PrologueStep> steps;
  uint64_t previous = 0;
  for (uint64_t i = 0; i < kMaxStubInstructions; ++i) {
    const uint64_t offset = stub + i * kInstructionBytes;
    if (!Read(code, offset, &at)) return {};
    if (at.operation() == kBranch) {
      const bool back = BranchTarget(at, offset) == kInstructionBytes;
      return back ? steps : std::vector<PrologueStep>();
    }
    if (previous == kTrigger) steps.push_back(PrologueStep::kTrigger);
    if (previous == kWait) steps.push_back(PrologueStep::kWait);
    previous = at.operation();
  }
  return {};
}

std::vector<std::vector<PrologueStep>> ReadPrologues(
    absl::Span<const uint8_t> image, const cubin::Cubin& cubin) {
  std::vector<std::vector<PrologueStep>> prologues(cubin.kernels.size());
  absl::StatusOr<cubin::ElfView> elf = cubin::ElfView::Create(image);
  if (!elf.ok()) return prologues;
  std::map<std::pair<uint32_t, absl::string_view>, uint64_t> entries;
  for (const cubin::ElfSymbol& symbol : elf->symbols()) {
    if (ELF64_ST_TYPE(symbol.symbol.st_info) != STT_FUNC) continue;
    entries[{symbol.symbol.st_shndx, symbol.name}] = symbol.symbol.st_value;
  }
  for (size_t i = 0; i < cubin.kernels.size(); ++i) {
    const cubin::Kernel& kernel = cubin.kernels[i];
    const auto entry = entries.find({kernel.text_section, kernel.name});
    if (kernel.text_section >= elf->sections().size() ||
        entry == entries.end()) {
      continue;
    }
    const cubin::Bytes code = elf->sections()[kernel.text_section].data;
    if (entry->second <= code.size()) {
      prologues[i] = ReadPrologue(code.subspan(entry->second));
    }
  }
  return prologues;
}

}  // namespace heddle::hostdevice
