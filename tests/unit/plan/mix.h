// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_PLAN_MIX_H_
#define HEDDLE_TESTS_UNIT_PLAN_MIX_H_

namespace heddle::plan {

// What block `index` of the kernel `mix` writes: a digest of all its inputs.
inline unsigned Mix(const unsigned* const (&in)[3], unsigned count,
                    unsigned salt, unsigned index) {
  unsigned hash = salt + index;
  for (const unsigned* values : in) {
    for (unsigned i = 0; values != nullptr && i < count; ++i) {
      hash = hash * 16777619u ^ values[i];
    }
  }
  return hash;
}

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_UNIT_PLAN_MIX_H_
