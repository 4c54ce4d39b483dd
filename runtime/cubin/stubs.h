// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_STUBS_H_
#define HEDDLE_RUNTIME_CUBIN_STUBS_H_

// Machine code that the patcher inserts, harvested from the templates that nvcc
// compiled in the build (stubs/).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cubin/instruction.h"
#include "runtime/cubin/patch.h"

namespace heddle::cubin {

struct Stubs {
  uint32_t arch = 0;  // compute capability x 10
  std::vector<Instruction> wait;
  std::vector<Instruction> trigger_wait;
  std::vector<Instruction> wait_trigger;
  Instruction nop;

  const std::vector<Instruction>& For(Prologue prologue) const;
};

// Those for cubins of `arch`: compiled for it, or for an earlier chip of its
// major capability, which has the same instructions. Never destroyed. Thread
// safe. Unimplemented: before sm_90, or not in this build.
absl::StatusOr<const Stubs*> FindStubs(uint32_t arch);

// The same out of a compiled template; what FindStubs is made of.
absl::StatusOr<Stubs> HarvestStubs(absl::Span<const uint8_t> cubin);

// Names the machine code of all stubs of this build.
std::string StubsVersion();

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_STUBS_H_
