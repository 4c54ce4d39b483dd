// SPDX-License-Identifier: Apache-2.0

// libFuzzer target:
//
//   cmake --preset fuzz
//   cmake --build --preset fuzz --target fuzz_patch_cubin
//   mkdir -p corpus
//   cp build-fuzz/tests/unit/cubin/patch.sm_90.cubin corpus
//   build-fuzz/bin/fuzz_patch_cubin corpus -max_len=65536

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "tests/fuzz/patch_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::cubin::FuzzPatchCubin(absl::MakeConstSpan(data, size));
  return 0;
}
