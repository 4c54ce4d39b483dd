// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/tensor_maps.h"

#include <cuda.h>

#include <array>
#include <cstring>
#include <utility>

#include "runtime/access/launch_access.h"
#include "runtime/access/linear.h"

namespace heddle::access {
namespace {

// Bits of an element (CUtensorMapDataType); 0: not known.
uint64_t BitsOf(uint32_t type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 8;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 16;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 32;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 64;
    default:
      // The packed types of 4 and 6 bits (later headers) are not tried.
      return 0;
  }
}

template <typename T>
T At(absl::Span<const uint8_t> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Types by the 4 bits that the device has for them.
constexpr std::array<CUtensorMapDataType, 11> kTypes = {
    CU_TENSOR_MAP_DATA_TYPE_UINT8,       CU_TENSOR_MAP_DATA_TYPE_UINT16,
    CU_TENSOR_MAP_DATA_TYPE_UINT32,      CU_TENSOR_MAP_DATA_TYPE_INT32,
    CU_TENSOR_MAP_DATA_TYPE_UINT64,      CU_TENSOR_MAP_DATA_TYPE_INT64,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16,     CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16};

std::string Key(absl::Span<const uint8_t> map) {
  return {map.begin(), map.end()};
}

}  // namespace

void TensorMaps::Add(absl::Span<const uint8_t> map, Shape shape) {
  if (map.size() != kBytes || BitsOf(shape.data_type) == 0 ||
      shape.dims.empty() || shape.strides.size() + 1 < shape.dims.size()) {
    return;
  }
  if (maps_.size() >= kMostMaps / 2) older_ = std::exchange(maps_, {});
  maps_[Key(map)] = std::move(shape);
}

void TensorMaps::Replace(absl::Span<const uint8_t> before,
                         absl::Span<const uint8_t> map, uint64_t address) {
  const Shape* known = Look(before);
  if (known == nullptr) return;
  Shape shape = *known;
  shape.address = address;
  Add(map, std::move(shape));
}

const TensorMaps::Shape* TensorMaps::Look(absl::Span<const uint8_t> map) const {
  const std::string key = Key(map);
  for (const auto* maps : {&maps_, &older_}) {
    const auto it = maps->find(key);
    if (it != maps->end()) return &it->second;
  }
  return nullptr;
}

std::optional<ExtentSet> TensorMaps::Find(absl::Span<const uint8_t> map) const {
  const Shape* shape = Look(map);
  if (shape == nullptr) return std::nullopt;
  return BytesOf(*shape);
}

std::optional<ExtentSet> TensorMaps::BytesOf(const Shape& shape) {
  const uint64_t bits = BitsOf(shape.data_type);
  if (bits == 0 || shape.dims.empty()) return std::nullopt;
  // What goes past the end of all addresses is no tensor, and must not pass for
  // the few bytes that are left of it in 64 bits. (Programs that have all rows
  // of a batch end where they like make such maps: their steps wrap around.)
  constexpr uint64_t kMost = uint64_t{1} << 40;  // elements, bytes of a step
  Wide end = Wide{shape.address} + Wide{shape.dims[0]} * bits / 8;
  for (size_t i = 1; i < shape.dims.size(); ++i) {
    if (shape.dims[i] > kMost || shape.strides[i - 1] > kMost) {
      return std::nullopt;
    }
    end += (Wide{shape.dims[i]} - 1) * shape.strides[i - 1];
  }
  if (shape.dims[0] > kMost || end > kSigned64.hi) return std::nullopt;
  const std::vector<uint64_t> sizes(shape.dims.begin() + 1, shape.dims.end());
  return BoxOf(shape.address, shape.dims[0] * bits / 8, sizes, shape.strides);
}

std::optional<TensorMaps::Shape> TensorMaps::Decode(
    absl::Span<const uint8_t> map) {
  if (map.size() < kHardwareBytes) return std::nullopt;
  // Bits 0 to 3: kind (0 tiled, 1 im2col, 2 as cuBLASLt makes them); 4 to 6:
  // rank - 1; 7 to 10: type, 16: TF32; 11, 12: interleaved; 13 to 15, 17, 18:
  // swizzle, fill, caching.
  const auto flags = At<uint32_t>(map, 8);
  const uint32_t rank = (flags >> 4 & 7) + 1;
  const uint32_t type = flags >> 7 & 15;
  if ((flags & 15) > 2 || rank > 5 || type >= kTypes.size() ||
      (flags >> 11 & 3) != 0 || flags >> 19 != 0) {
    return std::nullopt;
  }
  Shape shape;
  shape.data_type = kTypes[type];
  shape.address = At<uint64_t>(map, 0);
  if (shape.address == 0) return std::nullopt;
  const auto high = At<uint32_t>(map, 28);
  for (uint32_t i = 0; i < 5; ++i) {
    const auto last = At<uint32_t>(map, 32 + 4 * i);
    if (i >= rank) {
      if (last != 0) return std::nullopt;
      continue;
    }
    shape.dims.push_back(uint64_t{last} + 1);
    if (i + 1 >= rank) continue;
    // In units of 16 bytes, the highest of 36 bits apart.
    shape.strides.push_back((uint64_t{At<uint32_t>(map, 12 + 4 * i)} |
                             uint64_t{high >> (4 * i) & 15} << 32)
                            << 4);
  }
  return shape;
}

}  // namespace heddle::access
