// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_HASH_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_HASH_H_

#include <cstddef>
#include <cstdint>

namespace apps {

// 64-bit FNV-1a of `size` bytes.
inline uint64_t Fnv1a(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_HASH_H_
