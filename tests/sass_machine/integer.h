// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_INTEGER_H_
#define HEDDLE_TESTS_SASS_MACHINE_INTEGER_H_

// What sass_semantics.h says, carried out on numbers.

#include <array>
#include <cstdint>

#include "runtime/cubin/sass_semantics.h"

namespace heddle::sass_machine {

struct IntegerResult {
  bool known = false;
  uint64_t value = 0;
  bool first = false;  // the destination predicates
  bool second = false;
};

// `source` are the values before the modifiers of `operation.source`,
// `predicate` those of source_predicate after their own. Not for operations
// that read something else (special registers, constants, predicate sets).
IntegerResult Evaluate(const cubin::SassOperation& operation,
                       const std::array<uint64_t, 3>& source,
                       const std::array<bool, 3>& predicate);

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_INTEGER_H_
