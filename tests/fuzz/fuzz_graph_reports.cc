// SPDX-License-Identifier: Apache-2.0

// libFuzzer target, see fuzz_patch_cubin.cc. A file of `heddle run --report` is
// a good corpus.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/fuzz/report_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::tools::FuzzGraphReports(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
