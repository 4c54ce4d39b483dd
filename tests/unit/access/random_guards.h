// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_RANDOM_GUARDS_H_
#define HEDDLE_TESTS_UNIT_ACCESS_RANDOM_GUARDS_H_

// Random code that is about predicates: registers written under one of a few
// conditions and used under another, predicates kept in registers and changed
// there, masks, all of it in loops and behind branches. What random_code.h
// makes hardly ever does two of these in a row.

#include <random>
#include <vector>

#include "tests/unit/access/sass_words.h"

namespace heddle::access {

// A kernel with two pointers at the beginning of its parameters and six 64-bit
// numbers behind. `param_base`: where they are in bank 0.
std::vector<Word128> MakeGuardedCode(uint32_t param_base, uint32_t arch,
                                     std::mt19937_64& random);

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_RANDOM_GUARDS_H_
