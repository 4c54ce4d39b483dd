// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_CUBIN_SASS_TEXT_H_
#define HEDDLE_TESTS_UNIT_CUBIN_SASS_TEXT_H_

// Instructions as text, from what InterpretSass says alone and from what
// nvdisasm prints, both brought into one notation so that they can be compared.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/cubin/sass_semantics.h"

namespace heddle::cubin {

// "ISETP.GE.U32.AND P0, PT, R2, 0x10, !P1", without the guard. Not for kOpaque.
std::string SassText(const SassInstruction& decoded,
                     const SassOperation& operation);

// One line of nvdisasm without guard, cache hints and line end; numbers as 32
// bits; multiplications that move or add in the notation of SassText.
std::string NormalSassText(const std::string& line);

// What nvdisasm prints for `words` (16 bytes each) of compute capability
// `arch`, a line each, "" where it knows none; empty if it cannot be run.
std::vector<std::string> Disassemble(absl::Span<const uint8_t> words,
                                     uint32_t arch);

// Whether there is an nvdisasm.
bool CanDisassemble();

}  // namespace heddle::cubin

#endif  // HEDDLE_TESTS_UNIT_CUBIN_SASS_TEXT_H_
