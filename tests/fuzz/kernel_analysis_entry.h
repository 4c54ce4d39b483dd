// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_FUZZ_KERNEL_ANALYSIS_ENTRY_H_
#define HEDDLE_TESTS_FUZZ_KERNEL_ANALYSIS_ENTRY_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace heddle::access {

// What comes before a kernel's code in FuzzKernelAnalysis: the chip (1 byte),
// which of the parameters are pointers (1), grid and block (2 each), 64 bytes
// of parameters.
inline constexpr size_t kAnalysisHeader = 2 + 6 * 2 + 64;

// Analyzes `bytes` as a launch of a kernel, and, if they are a cubin, reads its
// kernels. Aborts when the analysis breaks a promise.
void FuzzKernelAnalysis(absl::Span<const uint8_t> bytes);

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_FUZZ_KERNEL_ANALYSIS_ENTRY_H_
