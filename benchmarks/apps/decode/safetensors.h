// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_SAFETENSORS_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_SAFETENSORS_H_

// Reader of the safetensors file format: an 8-byte little-endian header length,
// a JSON header {"name": {"dtype", "shape", "data_offsets": [begin, end]},
// ...}, then the data, to which the offsets are relative. Source:
// https://github.com/huggingface/safetensors#format

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace decode {

// Where one tensor lies and how it is stored.
struct SafetensorsEntry {
  std::string dtype;  // as in the file: "F32", "BF16", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // in bytes from the start of the data
  uint64_t end = 0;

  int64_t elements() const;
};

// The header, checked: every offset lies within the data, every size is that of
// dtype and shape, and the tensors neither overlap nor leave gaps.
struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  uint64_t data_offset = 0;  // of the data, in the file

  // `file` is the whole file. InvalidArgument says what is wrong with which
  // tensor.
  static absl::StatusOr<SafetensorsHeader> Parse(absl::string_view file);
};

// A memory-mapped file. Immutable, so safe to share between threads.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // NotFound if there is none of that name; the message lists a few that are.
  absl::StatusOr<const SafetensorsEntry*> Find(const std::string& name) const;

  // The tensor's values as floats. F32, F16 and BF16 are understood; anything
  // else is Unimplemented.
  absl::StatusOr<std::vector<float>> ReadFloats(const std::string& name) const;

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }

 private:
  SafetensorsFile(std::string path, const void* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const void* data_;
  size_t size_;
  SafetensorsHeader header_;
};

// The value of an IEEE half.
float FloatFromHalf(uint16_t bits);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_SAFETENSORS_H_
