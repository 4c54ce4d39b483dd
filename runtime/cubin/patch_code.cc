// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/patch_code.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heddle::cubin {
namespace {

// ptxas pads code with at least 8 NOPs and up to a multiple of 128 bytes, the
// line that instructions are fetched in. Kernels with 2 NOPs left were run; so
// that at least the fetch of the next instructions finds code.
constexpr uint64_t kNopsLeft = 2;
constexpr uint64_t kTextGranularity = 128;

// Whether all direct branches and calls before `end` stay before it. One that
// does not would run into the stub, or into another section by a distance that
// changes when sections grow.
bool BranchesStayInside(Bytes text, uint64_t end) {
  Instruction instruction;
  for (uint64_t at = 0; at < end; at += kInstructionBytes) {
    ReadAt(text, at, &instruction);
    const uint32_t opcode = Opcode(instruction);
    if (opcode != kOpcodeBra && opcode != kOpcodeCallRel) continue;
    if (BranchTarget(instruction, at) >= end) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<Detour> PlanDetour(Bytes text,
                                  absl::Span<const Instruction> prologue) {
  const auto cannot = [](absl::string_view why) {
    return absl::FailedPreconditionError(why);
  };
  if (text.size() % kInstructionBytes != 0 ||
      text.size() < 2 * kInstructionBytes) {
    return cannot("its section does not hold whole instructions");
  }
  Instruction first;
  ReadAt(text, 0, &first);
  if (IsControlFlow(first)) {
    return cannot(
        "its first instruction is a branch or depends on its address");
  }

  uint64_t end = text.size();  // of what is no padding
  Instruction last;
  while (end > 0) {
    ReadAt(text, end - kInstructionBytes, &last);
    if (Opcode(last) != kOpcodeNop) break;
    end -= kInstructionBytes;
  }
  // Else control could run into the padding, and so into the stub.
  if (end <= kInstructionBytes || !EndsControlFlow(last)) {
    return cannot("its code does not end with a branch or exit");
  }
  if (!BranchesStayInside(text, end)) {
    return cannot("a branch leads out of its code");
  }

  Detour detour;
  detour.stub.assign(prologue.begin(), prologue.end());
  detour.stub.push_back(WithoutReuse(first));
  detour.stub_offset = end;
  const uint64_t back = end + detour.stub.size() * kInstructionBytes;
  detour.stub.push_back(EncodeBranch(back, kInstructionBytes));
  detour.entry = EncodeBranch(0, end);
  detour.text_size = text.size();
  const uint64_t need = back + (1 + kNopsLeft) * kInstructionBytes;
  if (need > text.size()) {
    detour.text_size =
        (need + kTextGranularity - 1) / kTextGranularity * kTextGranularity;
  }
  return detour;
}

void WriteDetour(const Detour& detour, uint64_t old_size,
                 const Instruction& nop, absl::Span<uint8_t> text) {
  const auto write = [&](uint64_t at, const Instruction& instruction) {
    std::memcpy(text.data() + at, &instruction, sizeof(instruction));
  };
  for (uint64_t at = old_size; at < detour.text_size; at += sizeof(nop)) {
    write(at, nop);
  }
  uint64_t at = detour.stub_offset;
  for (const Instruction& instruction : detour.stub) {
    write(at, instruction);
    at += sizeof(instruction);
  }
  write(0, detour.entry);
}

}  // namespace heddle::cubin
