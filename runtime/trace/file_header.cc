// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/file_header.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/file_kind.h"
#include "runtime/trace/format.h"

namespace heddle::trace {

FileHeader MakeFileHeader(int rank) {
  FileHeader header{};
  header.magic = kFileMagic;
  header.version = kFormatVersion;
  header.min_reader_version = kMinReaderVersion;
  header.pid = static_cast<uint32_t>(getpid());
  header.rank = rank;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  header.start_unix_ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
                         static_cast<uint64_t>(now.tv_nsec);
  if (getrandom(header.uuid.data(), header.uuid.size(), GRND_NONBLOCK) !=
      static_cast<ssize_t>(header.uuid.size())) {
    // No entropy yet (early boot): unique on this machine is enough.
    std::memcpy(header.uuid.data(), &header.start_unix_ns, 8);
    std::memcpy(header.uuid.data() + 8, &header.pid, 4);
  }
  header.uuid[6] = static_cast<uint8_t>((header.uuid[6] & 0x0f) | 0x40);
  header.uuid[8] = static_cast<uint8_t>((header.uuid[8] & 0x3f) | 0x80);
  header.checksum = HashBytes64(&header, offsetof(FileHeader, checksum));
  return header;
}

FileHeader MakeFileHeader(const Header& source) {
  FileHeader header{};
  header.magic = kFileMagic;
  header.version = kFormatVersion;
  header.min_reader_version = kMinReaderVersion;
  header.uuid = source.uuid;
  header.pid = source.pid;
  header.rank = source.rank;
  header.start_unix_ns = source.start_unix_ns;
  header.checksum = HashBytes64(&header, offsetof(FileHeader, checksum));
  return header;
}

absl::StatusOr<Header> ParseFileHeader(absl::Span<const uint8_t> bytes,
                                       const std::string& name) {
  if (bytes.size() < kFileMagic.size() ||
      !std::equal(kFileMagic.begin(), kFileMagic.end(), bytes.begin())) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not a heddle trace: it ", DescribeFile(bytes)));
  }
  if (bytes.size() < sizeof(FileHeader)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is cut within its header: it has ", bytes.size(),
                     " of ", sizeof(FileHeader), " bytes; record it again"));
  }
  FileHeader raw{};
  std::memcpy(&raw, bytes.data(), sizeof(raw));
  if (raw.checksum !=
      HashBytes64(bytes.data(), offsetof(FileHeader, checksum))) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        ": the header is damaged (its checksum does not match); take "
        "another copy of the file"));
  }
  if (raw.min_reader_version > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " has format version ", raw.version,
        " and needs a reader of version ", raw.min_reader_version,
        " at least; this is version ", kFormatVersion, ": update heddle"));
  }
  return Header{raw.version, raw.min_reader_version, raw.uuid, raw.pid,
                raw.rank,    raw.start_unix_ns};
}

}  // namespace heddle::trace
