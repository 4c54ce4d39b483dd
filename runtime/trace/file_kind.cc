// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/file_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/trace/format.h"

namespace heddle::trace {
namespace {

struct Kind {
  absl::string_view start;
  absl::string_view description;
};

constexpr std::array kKinds = {
    Kind{"\x7f"
         "ELF",
         "is an ELF file (a program, library or cubin)"},
    Kind{"\x50\xed\x55\xba", "is a CUDA fatbin"},
    Kind{"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it first"},
    Kind{"\x1f\x8b", "is compressed with gzip; unpack it first"},
    Kind{"\xfd"
         "7zXZ",
         "is compressed with xz; unpack it first"},
    Kind{"PK\x03\x04", "is a zip archive; unpack it first"},
    Kind{"SQLite format 3", "is a SQLite database (of Nsight Systems?)"},
    Kind{"\x89PNG", "is a PNG image"},
    Kind{"{", "looks like JSON"},
    Kind{"[", "looks like JSON"},
    Kind{"#!", "is a script"},
};

}  // namespace

std::string DescribeFile(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) {
    return "is empty; the program ended before it recorded anything";
  }
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()),
                               std::min<size_t>(bytes.size(), 64));
  if (absl::StartsWith(text.substr(1), "HTR")) {
    return "was changed by a transfer in text mode; copy it in binary mode";
  }
  if (std::all_of(bytes.begin(),
                  bytes.begin() + static_cast<ptrdiff_t>(std::min(
                                      bytes.size(), sizeof(FileHeader))),
                  [](uint8_t byte) { return byte == 0; })) {
    return "begins with zeros; the program or the machine ended before the "
           "header was written";
  }
  for (const Kind& kind : kKinds) {
    if (absl::StartsWith(text, kind.start)) {
      return std::string(kind.description);
    }
  }
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return absl::ascii_isprint(byte) || absl::ascii_isspace(byte);
  });
  return printable ? "is text" : "begins with other bytes";
}

}  // namespace heddle::trace
