// SPDX-License-Identifier: Apache-2.0

// libFuzzer target, see fuzz_trace_reader.cc. Any code section is a good
// corpus.

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "tests/fuzz/sass_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::cubin::FuzzSass(absl::MakeConstSpan(data, size));
  return 0;
}
