// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_LIVE_HOST_KERNELS_H_
#define HEDDLE_TESTS_UNIT_LIVE_HOST_KERNELS_H_

namespace heddle::live {

// What block `index` of the kernel `fold` makes of an element of its output.
inline unsigned Fold(unsigned old, const unsigned* const (&in)[3],
                     unsigned count, unsigned salt, unsigned index) {
  unsigned hash = salt + index;
  for (const unsigned* values : in) {
    for (unsigned i = 0; values != nullptr && i < count; ++i) {
      hash = hash * 16777619u ^ values[i];
    }
  }
  return old * 31 + hash;
}

// Where the variables of stateful.cu are: a host function cannot know.
struct Stateful {
  unsigned* calls = nullptr;
  unsigned* history = nullptr;  // 37 values
};
inline Stateful g_stateful;

// How many grids of these kernels have run: what they do depends on that.
inline unsigned g_wander_runs = 0;
inline unsigned g_flicker_runs = 0;

}  // namespace heddle::live

#endif  // HEDDLE_TESTS_UNIT_LIVE_HOST_KERNELS_H_
