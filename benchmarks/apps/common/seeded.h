// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_SEEDED_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_SEEDED_H_

// Random numbers that are the same on every machine: a pure function of a seed,
// a name and an index.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace apps {

// `count` floats, uniform in [center - radius, center + radius).
std::vector<float> SeededFloats(uint64_t seed, absl::string_view name,
                                size_t count, float center, float radius);

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_SEEDED_H_
