// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_BYTE_READER_H_
#define HEDDLE_RUNTIME_CUBIN_BYTE_READER_H_

// Bounds-checked access to little-endian bytes of any alignment. Device code is
// written by tools that owe us nothing, so every offset is checked here and
// nowhere else.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/types/span.h"

namespace heddle::cubin {

using Bytes = absl::Span<const uint8_t>;

// Whether [offset, offset + size) lies inside `bytes`; immune to overflow.
inline bool InBounds(Bytes bytes, uint64_t offset, uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

// Reads a T at `offset` into *out; false and *out untouched if it would not
// fit.
template <typename T>
bool ReadAt(Bytes bytes, uint64_t offset, T* out) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!InBounds(bytes, offset, sizeof(T))) return false;
  std::memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_BYTE_READER_H_
