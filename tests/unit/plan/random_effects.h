// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_PLAN_RANDOM_EFFECTS_H_
#define HEDDLE_TESTS_UNIT_PLAN_RANDOM_EFFECTS_H_

// Random programs as the planner sees them, and what conflicts in them, byte by
// byte.

#include <bitset>
#include <cstdint>
#include <vector>

#include "runtime/plan/dependencies.h"
#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {

// Addresses below this, above `base`.
inline constexpr uint32_t kBytes = 64;

inline access::ExtentSet RandomBytes(Random& random, uint64_t base) {
  std::bitset<kBytes> bytes;
  for (uint32_t i = Below(random, 3); i > 0; --i) {
    const uint32_t at = Below(random, kBytes);
    const uint32_t size = 1 + Below(random, OneIn(random, 8) ? kBytes : 6);
    for (uint32_t b = at; b < at + size && b < kBytes; ++b) bytes.set(b);
  }
  access::ExtentSet set;
  for (uint32_t begin = 0; begin < kBytes; ++begin) {
    if (!bytes[begin]) continue;
    uint32_t end = begin;
    while (end < kBytes && bytes[end]) ++end;
    set.Append({base + begin, end - begin});
    begin = end;
  }
  return set;
}

// `odd`: one operation in so many may touch anything or keeps its place.
inline std::vector<Effects> RandomEffects(Random& random, uint32_t count,
                                          uint32_t odd) {
  // Sometimes the memory ends where the address space does.
  const uint64_t base = OneIn(random, 4) ? uint64_t{0} - kBytes : 4096;
  std::vector<Effects> effects(count);
  for (Effects& e : effects) {
    e.reads = RandomBytes(random, base);
    if (!OneIn(random, 4)) e.writes = RandomBytes(random, base);
    e.reads_anything = OneIn(random, odd);
    e.writes_anything = OneIn(random, odd);
    e.ordering_point = OneIn(random, odd);
  }
  return effects;
}

inline std::bitset<kBytes> BytesOf(const access::ExtentSet& set) {
  std::bitset<kBytes> bytes;
  for (const access::Extent& extent : set.extents()) {
    for (uint64_t i = 0; i < extent.size; ++i) {
      bytes.set((extent.address + i) % kBytes);
    }
  }
  return bytes;
}

inline bool Conflicts(const Effects& a, const Effects& b) {
  const auto a_reads = BytesOf(a.reads);
  const auto a_writes = BytesOf(a.writes);
  const auto b_reads = BytesOf(b.reads);
  const auto b_writes = BytesOf(b.writes);
  const bool a_does = a.writes_anything || a_writes.any();
  const bool b_does = b.writes_anything || b_writes.any();
  const bool a_touches = a_does || a.reads_anything || a_reads.any();
  const bool b_touches = b_does || b.reads_anything || b_reads.any();
  return (a_writes & (b_reads | b_writes)).any() ||
         (a_reads & b_writes).any() || (a.writes_anything && b_touches) ||
         (b.writes_anything && a_touches) || (a.reads_anything && b_does) ||
         (b.reads_anything && a_does) ||
         (a.ordering_point && (b_touches || b.ordering_point)) ||
         (b.ordering_point && a_touches);
}

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_UNIT_PLAN_RANDOM_EFFECTS_H_
