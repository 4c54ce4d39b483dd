// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/straight_line.h"

#include <algorithm>
#include <cstring>

#include "runtime/cubin/instruction.h"

namespace heddle::cubin {

std::optional<uint64_t> StraightLine::WriterBefore(SassOperandKind kind,
                                                   int index,
                                                   uint64_t at) const {
  for (uint64_t back = at; back >= kSassInstructionBytes;) {
    if (IsTarget(back)) return std::nullopt;
    back -= kSassInstructionBytes;
    const SassInstruction instruction = DecodeSass(code_, back, arch_);
    if (!instruction.known() || (instruction.flow != SassFlow::kNext &&
                                 instruction.flow != SassFlow::kMeetingPoint)) {
      return std::nullopt;
    }
    const bool writes = std::any_of(
        instruction.operands().begin(), instruction.operands().end(),
        [kind, index](const SassOperand& operand) {
          return operand.kind == kind && operand.access == SassAccess::kWrite &&
                 operand.index <= index &&
                 index < operand.index + operand.count;
        });
    if (writes) return back;
  }
  return std::nullopt;
}

void StraightLine::FindTargets() const {
  looked_ = true;
  for (uint64_t at = 0; at + kSassInstructionBytes <= code_.size();
       at += kSassInstructionBytes) {
    uint64_t low;
    std::memcpy(&low, code_.data() + at, sizeof(low));
    // Decoding all would take seconds for a framework's images.
    if (!IsControlFlow({low, 0})) continue;
    const SassInstruction instruction = DecodeSass(code_, at, arch_);
    if (instruction.has_target) targets_.insert(instruction.target);
    anywhere_ |=
        !instruction.known() || instruction.flow == SassFlow::kIndirectBranch;
  }
}

bool StraightLine::IsTarget(uint64_t offset) const {
  if (!looked_) FindTargets();
  return anywhere_ || targets_.contains(static_cast<int64_t>(offset));
}

}  // namespace heddle::cubin
