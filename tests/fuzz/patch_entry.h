// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_FUZZ_PATCH_ENTRY_H_
#define HEDDLE_TESTS_FUZZ_PATCH_ENTRY_H_

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::cubin {

// Takes `bytes` for an image and patches it with several options. Aborts when
// the patcher breaks a promise.
void FuzzPatchCubin(absl::Span<const uint8_t> bytes);

}  // namespace heddle::cubin

#endif  // HEDDLE_TESTS_FUZZ_PATCH_ENTRY_H_
