// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_SESSION_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_SESSION_H_

// Generating, checking and timing with a decoder.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/common/program.h"
#include "benchmarks/apps/decode/decoder.h"
#include "benchmarks/apps/decode/options.h"
#include "benchmarks/apps/decode/reference.h"

namespace decode {

// How far the device's logits were from the reference's.
struct CheckResult {
  int steps = 0;
  double max_error = 0;  // |device - reference| / largest |reference| logit
  double tolerance = 0;
  int wrong_tokens = 0;  // chosen though the reference has a clearly better one

  bool ok() const { return max_error <= tolerance && wrong_tokens == 0; }
};

class Session {
 public:
  // Both must outlive the session.
  Session(const Options& options, apps::Gpu* gpu, Decoder* decoder)
      : options_(options), gpu_(gpu), decoder_(decoder) {}

  // Captures the step if --graph asks for it.
  absl::Status Prepare();

  // Generates options.tokens after the prompt; the result includes both. If
  // `reference` is not null, compares every step's logits with it.
  absl::StatusOr<std::vector<int32_t>> Generate(Reference* reference,
                                                CheckResult* check);

  // Times options.bench steps, starting new sequences when one is full.
  absl::StatusOr<apps::BenchResult> Bench();

 private:
  absl::Status Step();
  absl::Status CompareStep(Reference* reference, int position,
                           CheckResult* check);

  const Options& options_;
  apps::Gpu* const gpu_;
  Decoder* const decoder_;
};

// Adds one step's logits to `check`; `chosen` is the token that the device
// picked from them. The two are equally long.
void CompareLogits(const std::vector<float>& device,
                   const std::vector<float>& reference, int32_t chosen,
                   CheckResult* check);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_SESSION_H_
