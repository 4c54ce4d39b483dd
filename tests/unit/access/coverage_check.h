// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_COVERAGE_CHECK_H_
#define HEDDLE_TESTS_UNIT_ACCESS_COVERAGE_CHECK_H_

// Whether accesses that the machine logged lie in what the static analysis said
// of the instructions that made them.

#include <cstdint>
#include <string>

#include "runtime/access/launch_access.h"
#include "tests/sass_machine/machine.h"

namespace heddle::access {

struct CoverageResult {
  // Empty: all of them do. Else one that does not.
  std::string complaint;
  // Different accesses that were compared with a prediction, and those of them
  // whose instruction was bounded without a look at allocations.
  uint64_t checked = 0;
  uint64_t proved = 0;
};

// Nothing is wrong, and nothing is checked, where a footprint is unknown.
CoverageResult CheckCoverage(const KernelFootprint& footprint,
                             const LaunchValues& launch,
                             const MemoryView& memory,
                             const sass_machine::AccessLog& log);

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_COVERAGE_CHECK_H_
