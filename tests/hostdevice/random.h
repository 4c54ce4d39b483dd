// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_RANDOM_H_
#define HEDDLE_TESTS_HOSTDEVICE_RANDOM_H_

#include <cstddef>
#include <cstdint>

namespace heddle::hostdevice {

// SplitMix64: the same sequence for the same seed on every machine and library,
// which std:: distributions do not promise.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, bound); 0 for bound 0. The bias of the remainder does not matter
  // here.
  uint64_t Below(uint64_t bound) { return bound == 0 ? 0 : Next() % bound; }
  // True once in `n`.
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

// Fills memory that nobody has written with bytes that no correct program can
// depend on: never zero, different for each `salt`.
void FillUndefined(void* data, size_t size, uint64_t salt);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_RANDOM_H_
