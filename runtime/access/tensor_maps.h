// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_TENSOR_MAPS_H_
#define HEDDLE_RUNTIME_ACCESS_TENSOR_MAPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "runtime/access/extents.h"

namespace heddle::access {

// The tensor maps that a program had encoded, by their 128 bytes: what a kernel
// gets is a copy of them (cuTensorMapEncodeTiled and its like, cuda.h). A
// program that goes on encoding loses the oldest. Not thread safe.
class TensorMaps {
 public:
  static constexpr size_t kBytes = 128;
  static constexpr size_t kMostMaps = 65536;
  static constexpr size_t kHardwareBytes = 64;  // that the device reads

  // What a map was made of, innermost dimension first.
  struct Shape {
    uint32_t data_type = 0;  // CUtensorMapDataType
    uint64_t address = 0;
    std::vector<uint64_t> dims;     // elements
    std::vector<uint64_t> strides;  // bytes, of all dimensions but the first
  };

  // What the bytes of a map for sm_90 say, whoever made it: cuBLASLt writes its
  // own. The format is not documented; this reads what the driver's encoder
  // makes of known shapes (tests/gpu), without the interleaved layouts. nullopt
  // for what does not look like a map.
  static std::optional<Shape> Decode(absl::Span<const uint8_t> map);
  // The bytes of the tensor; nullopt for elements that are not known.
  static std::optional<ExtentSet> BytesOf(const Shape& shape);

  // Shapes that make no sense, or of elements that are not known, are left out.
  void Add(absl::Span<const uint8_t> map, Shape shape);
  // `map`, which was `before`, has another address
  // (cuTensorMapReplaceAddress).
  void Replace(absl::Span<const uint8_t> before, absl::Span<const uint8_t> map,
               uint64_t address);
  // The bytes of the tensor that `map` describes; nullopt if it was not seen
  // being encoded.
  std::optional<ExtentSet> Find(absl::Span<const uint8_t> map) const;

 private:
  const Shape* Look(absl::Span<const uint8_t> map) const;

  absl::flat_hash_map<std::string, Shape> maps_;
  absl::flat_hash_map<std::string, Shape> older_;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_TENSOR_MAPS_H_
