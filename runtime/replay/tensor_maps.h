// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_TENSOR_MAPS_H_
#define HEDDLE_RUNTIME_REPLAY_TENSOR_MAPS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/access/extents.h"

namespace heddle::replay {

// The tensor maps that a program had encoded, by their 128 bytes: what a kernel
// gets is a copy of them (cuTensorMapEncodeTiled and its like, cuda.h).
class TensorMaps {
 public:
  void Add(const fb::TensorMap& map);
  // The bytes of the tensor that `map` describes; nullopt if it was not seen
  // being encoded.
  std::optional<access::ExtentSet> Find(absl::Span<const uint8_t> map) const;
  size_t size() const { return maps_.size(); }

 private:
  absl::flat_hash_map<std::string, access::ExtentSet> maps_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_TENSOR_MAPS_H_
