// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_FUZZ_PLAN_ENTRY_H_
#define HEDDLE_TESTS_FUZZ_PLAN_ENTRY_H_

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::plan {

// Takes `bytes` for a plan file, and for the payload of one behind a header
// that fits. Aborts when the reader breaks a promise.
void FuzzPlanFile(absl::Span<const uint8_t> bytes);

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_FUZZ_PLAN_ENTRY_H_
