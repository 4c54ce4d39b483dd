// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/tensor_maps.h"

#include <cuda.h>

#include <vector>

#include "runtime/access/launch_access.h"

namespace heddle::replay {
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

}  // namespace

void TensorMaps::Add(const fb::TensorMap& map) {
  if (map.bytes() == nullptr || map.dims() == nullptr || map.rank() == 0 ||
      map.dims()->size() < map.rank()) {
    return;
  }
  const uint64_t bits = BitsOf(map.data_type());
  if (bits == 0) return;
  const uint32_t outer = map.rank() - 1;
  if (outer > 0 &&
      (map.strides() == nullptr || map.strides()->size() < outer)) {
    return;
  }
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> strides;
  for (uint32_t i = 0; i < outer; ++i) {
    sizes.push_back(map.dims()->Get(i + 1));
    strides.push_back(map.strides()->Get(i));
  }
  const uint64_t width = map.dims()->Get(0) * bits / 8;
  maps_[std::string(map.bytes()->begin(), map.bytes()->end())] =
      access::BoxOf(map.address(), width, sizes, strides);
}

std::optional<access::ExtentSet> TensorMaps::Find(
    absl::Span<const uint8_t> map) const {
  const auto it = maps_.find(std::string(map.begin(), map.end()));
  if (it == maps_.end()) return std::nullopt;
  return it->second;
}

}  // namespace heddle::replay
