// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_PROLOGUE_H_
#define HEDDLE_TESTS_HOSTDEVICE_PROLOGUE_H_

// What heddle has put before a kernel's first instruction. The host device runs
// no device code, so it reads the code to know: names and symbols say nothing.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/cubin/elf.h"

namespace heddle::hostdevice {

enum class PrologueStep : uint8_t {
  kTrigger,  // PREEXIT, griddepcontrol.launch_dependents
  kWait,     // ACQBULK, griddepcontrol.wait
};

// The steps that `code`, the sm_90 instructions of a kernel from its entry on,
// takes before it comes to the kernel's own first instruction: those of a stub
// to which instruction 0 branches, that ends with the displaced instruction 0
// and a branch to instruction 1. Empty for any other code.
std::vector<PrologueStep> ReadPrologue(absl::Span<const uint8_t> code);

// The same for every kernel of `cubin`, which was read from `image`: by the
// position of the kernel in it.
std::vector<std::vector<PrologueStep>> ReadPrologues(
    absl::Span<const uint8_t> image, const cubin::Cubin& cubin);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_PROLOGUE_H_
