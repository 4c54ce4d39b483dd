// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_FUZZ_SASS_ENTRY_H_
#define HEDDLE_TESTS_FUZZ_SASS_ENTRY_H_

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::cubin {

// Decodes `bytes` as code of every supported chip. Aborts when the decoder
// breaks a promise.
void FuzzSass(absl::Span<const uint8_t> bytes);

}  // namespace heddle::cubin

#endif  // HEDDLE_TESTS_FUZZ_SASS_ENTRY_H_
