// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_FUZZ_TRACE_READER_ENTRY_H_
#define HEDDLE_TESTS_FUZZ_TRACE_READER_ENTRY_H_

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::trace {

// Reads `bytes` as a trace and touches everything in it; then the same with
// all checksums made right, so that what lies behind them is reached too.
// Aborts when the reader breaks a promise.
void FuzzTraceReader(absl::Span<const uint8_t> bytes);

}  // namespace heddle::trace

#endif  // HEDDLE_TESTS_FUZZ_TRACE_READER_ENTRY_H_
