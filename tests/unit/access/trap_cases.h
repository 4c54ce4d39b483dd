// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_TRAP_CASES_H_
#define HEDDLE_TESTS_UNIT_ACCESS_TRAP_CASES_H_

// Random legal launches of the kernels in traps.cu, and what memory must hold
// after them. For tests of what predicts or executes their accesses.

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace heddle::access {

// Where a test puts the variables of the module (module_variables): no buffer
// of a case is near.
inline constexpr uint64_t kTrapVariablesAt = 0x7e0000000000;

struct TrapBuffer {
  uint64_t address = 0;  // a multiple of 256
  std::vector<uint8_t> content;
};

struct TrapExpectation {
  uint64_t address = 0;  // of a buffer
  std::vector<uint8_t> content;
  // Floats that need not agree in the last bits; else every byte must.
  bool close = false;
};

// One launch.
struct TrapCase {
  std::string kernel;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  std::vector<uint8_t> params;  // the parameter block
  std::vector<TrapBuffer> buffers;
  // Buffers that are not here must stay as they were.
  std::vector<TrapExpectation> expected;
};

struct Trap {
  const char* kernel;
  TrapCase (*make)(std::mt19937_64& random);
};

// Every kernel of traps.cu.
absl::Span<const Trap> Traps();

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_TRAP_CASES_H_
