// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_PATCH_CODE_H_
#define HEDDLE_RUNTIME_CUBIN_PATCH_CODE_H_

// The detour at a kernel's first instruction.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/instruction.h"

namespace heddle::cubin {

struct Detour {
  uint64_t stub_offset = 0;  // in the section
  uint64_t text_size = 0;    // of the section, where it has to grow
  // At stub_offset: prologue, displaced instruction, branch back.
  std::vector<Instruction> stub;
  Instruction entry;  // the new instruction 0
};

// Plans the detour of a kernel whose code is all of `text`. FailedPrecondition:
// this code cannot have one, with the reason.
absl::StatusOr<Detour> PlanDetour(Bytes text,
                                  absl::Span<const Instruction> prologue);

// Writes `detour` to `text`, which has its text_size bytes; those behind
// `old_size` become `nop`.
void WriteDetour(const Detour& detour, uint64_t old_size,
                 const Instruction& nop, absl::Span<uint8_t> text);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_PATCH_CODE_H_
