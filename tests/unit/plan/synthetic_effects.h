// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_PLAN_SYNTHETIC_EFFECTS_H_
#define HEDDLE_TESTS_UNIT_PLAN_SYNTHETIC_EFFECTS_H_

// Effects of programs that never ran, of any length, for tests and benchmarks.

#include <cstdint>
#include <vector>

#include "runtime/plan/dependencies.h"

namespace heddle::plan {

// A language model that writes one token after another: layers of 13 launches
// with their weights, activations in a few buffers that are used again and
// again, a cache that grows by a slice a token and is read as far as it goes.
struct DecodeShape {
  uint32_t layers = 24;
  // One operation in so many, 0 for none, ...
  uint32_t unknown_one_in = 0;      // is a launch of which nothing is known
  uint32_t read_all_one_in = 0;     // reads 2 GiB: all weights, all activations
  uint32_t scattered_one_in = 0;    // writes every other KiB of a 20 MiB buffer
  uint32_t ordering_one_in = 0;     // is an ordering point
  uint32_t independent_one_in = 0;  // reads one weight, and nothing else
};

// The first `operations` operations of it.
std::vector<Effects> SyntheticDecode(const DecodeShape& shape,
                                     uint32_t operations);

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_UNIT_PLAN_SYNTHETIC_EFFECTS_H_
