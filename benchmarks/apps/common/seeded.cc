// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/common/seeded.h"

#include "benchmarks/apps/common/hash.h"

namespace apps {
namespace {

// SplitMix64: a counter times the golden ratio, through a 64-bit mixer.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::vector<float> SeededFloats(uint64_t seed, absl::string_view name,
                                size_t count, float center, float radius) {
  // By name, so that values do not depend on the order they are asked for in.
  const uint64_t key = Mix(Mix(seed) ^ Fnv1a(name.data(), name.size()));
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    // 24 bits, exact in fp32.
    const auto bits = static_cast<int32_t>(Mix(key + i) >> 40);
    values[i] =
        center + radius * (static_cast<float>(bits - (1 << 23)) * 0x1p-23f);
  }
  return values;
}

}  // namespace apps
