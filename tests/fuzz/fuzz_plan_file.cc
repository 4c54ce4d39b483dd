// SPDX-License-Identifier: Apache-2.0

// libFuzzer target, see fuzz_patch_cubin.cc. Plans (.hplan) with and without
// their first 64 bytes are a good corpus.

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "tests/fuzz/plan_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::plan::FuzzPlanFile(absl::MakeConstSpan(data, size));
  return 0;
}
