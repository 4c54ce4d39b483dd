// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_TRAP_MAKERS_H_
#define HEDDLE_TESTS_UNIT_ACCESS_TRAP_MAKERS_H_

// What makes the launches of trap_cases_index.cc and trap_cases_math.cc.
// Internal to trap_cases.

#include "tests/unit/access/trap_cases.h"

namespace heddle::access {

TrapCase MaskedRows(std::mt19937_64& random);
TrapCase Copy2d(std::mt19937_64& random);
TrapCase Gather(std::mt19937_64& random);
TrapCase Scatter(std::mt19937_64& random);
TrapCase PointerArray(std::mt19937_64& random);
TrapCase StridedCopy(std::mt19937_64& random);
TrapCase AppendCache(std::mt19937_64& random);
TrapCase Transpose(std::mt19937_64& random);
TrapCase Divided(std::mt19937_64& random);
TrapCase LongIndex(std::mt19937_64& random);
TrapCase OnePast(std::mt19937_64& random);

TrapCase SplitK(std::mt19937_64& random);
TrapCase WalkingPointer(std::mt19937_64& random);
TrapCase Elementwise4(std::mt19937_64& random);
TrapCase Elementwise2(std::mt19937_64& random);
TrapCase Softmax(std::mt19937_64& random);
TrapCase RmsNorm(std::mt19937_64& random);
TrapCase Matmul(std::mt19937_64& random);
TrapCase Switched(std::mt19937_64& random);
TrapCase Calls(std::mt19937_64& random);

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_TRAP_MAKERS_H_
