// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_MAPPED_INPUT_H_
#define HEDDLE_RUNTIME_TRACE_MAPPED_INPUT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::trace {

// A file mapped for reading.
class MappedInput {
 public:
  // NotFound and the like as open(2) says; InvalidArgument if `path` is no
  // regular file.
  static absl::StatusOr<MappedInput> Open(const std::string& path);

  MappedInput() = default;
  MappedInput(MappedInput&& other) noexcept { *this = std::move(other); }
  MappedInput& operator=(MappedInput&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(being_written_, other.being_written_);
    return *this;
  }
  ~MappedInput();

  // Page aligned.
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  // A writer had the file open when this opened it.
  bool being_written() const { return being_written_; }

 private:
  absl::Span<const uint8_t> bytes_;
  bool being_written_ = false;
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_MAPPED_INPUT_H_
