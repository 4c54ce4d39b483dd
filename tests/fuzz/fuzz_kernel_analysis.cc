// SPDX-License-Identifier: Apache-2.0

// libFuzzer target, see fuzz_trace_reader.cc. A good corpus: cubins, and code
// sections behind kAnalysisHeader bytes.

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "tests/fuzz/kernel_analysis_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::access::FuzzKernelAnalysis(absl::MakeConstSpan(data, size));
  return 0;
}
