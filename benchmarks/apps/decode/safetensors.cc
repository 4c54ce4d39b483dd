// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace decode {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit

// Bits of an element, or 0 if the format does not know the name.
uint64_t DtypeBits(absl::string_view dtype) {
  static constexpr std::pair<absl::string_view, uint64_t> kBits[] = {
      {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},
      {"U32", 32}, {"F32", 32}, {"F64", 64}, {"I64", 64},    {"U64", 64},
  };
  for (const auto& [name, bits] : kBits) {
    if (name == dtype) return bits;
  }
  return 0;
}

absl::Status Bad(absl::string_view tensor, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor \"", tensor, "\": ", what));
}

// Parses and refuses a key that occurs twice in one object, which JSON parsers
// otherwise resolve silently.
absl::StatusOr<json> ParseJson(absl::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string duplicate;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const std::string key = value.get<std::string>();
      if (!keys.back().insert(key).second) duplicate = key;
    }
    return true;
  };
  json result = json::parse(text.begin(), text.end(), watch,
                            /*allow_exceptions=*/false);
  if (result.is_discarded() || !result.is_object()) {
    return absl::InvalidArgumentError("the header is not a JSON object");
  }
  if (!duplicate.empty()) {
    return Bad(duplicate, "the header has this key twice");
  }
  return result;
}

absl::StatusOr<SafetensorsEntry> ParseEntry(const std::string& name,
                                            const json& value,
                                            uint64_t data_bytes) {
  SafetensorsEntry entry;
  if (!value.is_object()) return Bad(name, "is not a JSON object");
  const auto dtype = value.find("dtype");
  const auto shape = value.find("shape");
  const auto offsets = value.find("data_offsets");
  if (dtype == value.end() || !dtype->is_string()) {
    return Bad(name, "\"dtype\" is missing or not a string");
  }
  if (shape == value.end() || !shape->is_array()) {
    return Bad(name, "\"shape\" is missing or not an array");
  }
  if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2 ||
      !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned()) {
    return Bad(name, "\"data_offsets\" is not [begin, end]");
  }
  entry.dtype = dtype->get<std::string>();
  const uint64_t bits = DtypeBits(entry.dtype);
  if (bits == 0) {
    return Bad(name, absl::StrCat("unknown dtype \"", entry.dtype, "\""));
  }
  uint64_t bytes = bits / 8;
  for (const json& dimension : *shape) {
    if (!dimension.is_number_unsigned()) {
      return Bad(name, "\"shape\" has an entry that is no length");
    }
    const auto length = dimension.get<uint64_t>();
    if (__builtin_mul_overflow(bytes, length, &bytes) || length > INT64_MAX) {
      return Bad(name, "the shape is larger than any file");
    }
    entry.shape.push_back(static_cast<int64_t>(length));
  }
  entry.begin = (*offsets)[0].get<uint64_t>();
  entry.end = (*offsets)[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return Bad(name, absl::StrCat("data_offsets [", entry.begin, ", ",
                                  entry.end, ") lie outside the ", data_bytes,
                                  " bytes of data; is the file cut short?"));
  }
  if (entry.end - entry.begin != bytes) {
    return Bad(name, absl::StrCat("has ", entry.end - entry.begin,
                                  " bytes; its dtype and shape need ", bytes));
  }
  return entry;
}

// The format wants the data covered exactly once.
absl::Status CheckCoverage(const SafetensorsHeader& header,
                           uint64_t data_bytes) {
  std::vector<std::pair<const std::string*, const SafetensorsEntry*>> order;
  for (const auto& [name, entry] : header.tensors) {
    order.emplace_back(&name, &entry);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.second->begin, a.second->end) <
           std::make_pair(b.second->begin, b.second->end);
  });
  uint64_t covered = 0;
  for (const auto& [name, entry] : order) {
    if (entry->begin < covered) {
      return Bad(*name, "overlaps the tensor before it");
    }
    if (entry->begin > covered) {
      return Bad(*name, absl::StrCat("leaves a gap of ", entry->begin - covered,
                                     " bytes before it"));
    }
    covered = entry->end;
  }
  if (covered != data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(data_bytes - covered,
                     " bytes at the end of the file belong to no tensor"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t SafetensorsEntry::elements() const {
  int64_t count = 1;
  for (int64_t length : shape) count *= length;
  return count;
}

absl::StatusOr<SafetensorsHeader> SafetensorsHeader::Parse(
    absl::string_view file) {
  if (file.size() < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has ", file.size(),
        " bytes; a safetensors file starts with an 8-byte length"));
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(file[i]))
              << (8 * i);
  }
  if (length > kMaxHeader || length > file.size() - kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the header should have ", length, " bytes, the file has ",
        file.size() - kLengthBytes,
        " after the length; it is cut short or not a safetensors file"));
  }
  absl::StatusOr<json> root = ParseJson(file.substr(kLengthBytes, length));
  if (!root.ok()) return root.status();
  SafetensorsHeader header;
  header.data_offset = kLengthBytes + length;
  const uint64_t data_bytes = file.size() - header.data_offset;
  for (const auto& [name, value] : root->items()) {
    if (name == "__metadata__") continue;
    absl::StatusOr<SafetensorsEntry> entry =
        ParseEntry(name, value, data_bytes);
    if (!entry.ok()) return entry.status();
    header.tensors.emplace(name, *std::move(entry));
  }
  absl::Status status = CheckCoverage(header, data_bytes);
  if (!status.ok()) return status;
  return header;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is empty or not a regular file"));
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", path, ": ", std::strerror(error)));
  }
  SafetensorsFile file(path, data, size);
  absl::StatusOr<SafetensorsHeader> header = SafetensorsHeader::Parse(
      absl::string_view(static_cast<const char*>(data), size));
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        absl::StrCat(path, ": ", header.status().message()));
  }
  file.header_ = *std::move(header);
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  if (data_ != nullptr) munmap(const_cast<void*>(data_), size_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      header_(std::move(other.header_)) {}

SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(header_, other.header_);
  return *this;
}

absl::StatusOr<const SafetensorsEntry*> SafetensorsFile::Find(
    const std::string& name) const {
  const auto found = header_.tensors.find(name);
  if (found != header_.tensors.end()) return &found->second;
  std::vector<std::string> some;
  for (const auto& [other, entry] : header_.tensors) {
    if (some.size() == 3) break;
    some.push_back(other);
  }
  return absl::NotFoundError(absl::StrCat(
      path_, " has no tensor \"", name, "\" among its ", header_.tensors.size(),
      " (", absl::StrJoin(some, ", "), ", ...)"));
}

absl::StatusOr<std::vector<float>> SafetensorsFile::ReadFloats(
    const std::string& name) const {
  absl::StatusOr<const SafetensorsEntry*> found = Find(name);
  if (!found.ok()) return found.status();
  const SafetensorsEntry& entry = **found;
  const char* bytes =
      static_cast<const char*>(data_) + header_.data_offset + entry.begin;
  std::vector<float> values(entry.elements());
  if (values.empty()) return values;
  // The data need not be aligned in the file, so it is copied out.
  if (entry.dtype == "F32") {
    std::memcpy(values.data(), bytes, values.size() * sizeof(float));
    return values;
  }
  if (entry.dtype != "BF16" && entry.dtype != "F16") {
    return absl::UnimplementedError(
        absl::StrCat(path_, ": tensor \"", name, "\" is ", entry.dtype,
                     "; only F32, F16 and BF16 are supported"));
  }
  const bool half = entry.dtype == "F16";
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes + i * sizeof(bits), sizeof(bits));
    values[i] = half ? FloatFromHalf(bits)
                     : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  return values;
}

float FloatFromHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  }
  if (exponent == 0) {
    // Subnormal: fraction * 2^-24, which a float holds exactly.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (fraction << 13));
}

}  // namespace decode
