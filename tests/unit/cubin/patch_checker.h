// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_CUBIN_PATCH_CHECKER_H_
#define HEDDLE_TESTS_UNIT_CUBIN_PATCH_CHECKER_H_

// Compares a patched cubin with its original, byte by byte where they must be
// equal. Reads ELF from elf.h's structures alone and shares no code with the
// patcher, so that a misunderstanding there is not repeated here.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/cubin/patch.h"

namespace heddle::cubin {

// What is wrong with `patched`; empty if nothing.
std::vector<std::string> CheckPatch(absl::Span<const uint8_t> original,
                                    const PatchedImage& patched,
                                    const PatchOptions& options);

}  // namespace heddle::cubin

#endif  // HEDDLE_TESTS_UNIT_CUBIN_PATCH_CHECKER_H_
