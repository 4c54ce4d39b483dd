// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_E2E_GOLDEN_SYNTHETIC_TRACE_H_
#define HEDDLE_TESTS_E2E_GOLDEN_SYNTHETIC_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace heddle::tools {

// A trace of a program that never ran: a small decoder with everything that
// the tools show. The same bytes every time.
//
//   set-up    two images (the second not stored), two modules, kernels, one of
//             which is never launched; device, stream-ordered and pinned
//             memory, one allocation that is freed again; two streams, events;
//             a captured graph of a kernel, a fill and a kernel, launched once
//   prefill   an NVTX range with launches of other shapes
//   steps     `steps` times: input copy, embed, 3 layers of {gemv, attention on
//             the second stream, tma_gemm}, head, copy to the host, wait; step
//             2 is marked and has snapshots of memory at its begin and end
//
// Options change what a test needs to differ.
struct SyntheticOptions {
  uint32_t steps = 6;
  bool close = true;          // false: no footer, as after SIGKILL
  uint64_t address_base = 0;  // added to every address
  uint32_t extra_launch_in_step = ~uint32_t{0};
  int32_t layer_constant = 7;  // a parameter of gemv
};

inline constexpr uint32_t kSyntheticLaunchesPerStep = 11;

absl::Status WriteSyntheticTrace(const std::string& path,
                                 const SyntheticOptions& options);

}  // namespace heddle::tools

#endif  // HEDDLE_TESTS_E2E_GOLDEN_SYNTHETIC_TRACE_H_
