// SPDX-License-Identifier: Apache-2.0

// libFuzzer target:
//
//   cmake --preset fuzz
//   cmake --build --preset fuzz --target fuzz_trace_reader
//   mkdir -p corpus
//   cp traces/*.htrace corpus
//   build-fuzz/bin/fuzz_trace_reader corpus -max_len=65536

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "tests/fuzz/trace_reader_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::trace::FuzzTraceReader(absl::MakeConstSpan(data, size));
  return 0;
}
