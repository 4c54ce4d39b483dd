// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_PATCH_PARAMS_H_
#define HEDDLE_RUNTIME_CUBIN_PATCH_PARAMS_H_

// The hidden parameter in a kernel's attributes.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cubin/byte_reader.h"

namespace heddle::cubin {

struct HiddenParameter {
  uint32_t offset = 0;   // in the parameter block, bytes
  uint32_t ordinal = 0;  // index among the parameters
  // The new content of the .nv.info.<kernel> section, and the new size of the
  // .nv.constant0.<kernel> section.
  std::vector<uint8_t> info;
  uint64_t constant_size = 0;
};

struct ParameterSections {
  Bytes info;                    // .nv.info.<kernel>
  uint64_t constant_size = 0;    // of .nv.constant0.<kernel>
  uint32_t constant_symbol = 0;  // index of that section's symbol
  uint32_t arch = 0;             // compute capability x 10
};

// Plans a parameter of `bytes` (a multiple of 8, above 0) behind those that the
// kernel has. FailedPrecondition: not possible, with the reason.
absl::StatusOr<HiddenParameter> PlanHiddenParameter(
    const ParameterSections& sections, uint32_t bytes);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_PATCH_PARAMS_H_
