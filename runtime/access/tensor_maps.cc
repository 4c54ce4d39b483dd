// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/tensor_maps.h"

#include <cuda.h>

#include <utility>

#include "runtime/access/launch_access.h"

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

const TensorMaps::Shape* TensorMaps::Look(
    absl::Span<const uint8_t> map) const {
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
  const std::vector<uint64_t> sizes(shape->dims.begin() + 1,
                                    shape->dims.end());
  const uint64_t width = shape->dims[0] * BitsOf(shape->data_type) / 8;
  return BoxOf(shape->address, width, sizes, shape->strides);
}

}  // namespace heddle::access
