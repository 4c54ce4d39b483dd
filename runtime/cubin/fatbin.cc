// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/fatbin.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/compression.h"

namespace heddle::cubin {
namespace {

struct ContainerHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size;
  uint64_t entries_size;
};
static_assert(sizeof(ContainerHeader) == kFatbinHeaderSize);

// The part of an entry's header that all versions share. header_size is larger
// where names or compile options follow.
struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_size;
  uint64_t payload_size;  // with padding to 8 bytes
  uint32_t compressed_size;
  uint32_t options_offset;
  uint16_t minor;  // format version of the payload, e.g. the cubin's ABI
  uint16_t major;
  uint32_t arch;
  uint32_t name_offset;
  uint32_t name_size;
  uint64_t flags;
  uint64_t reserved;
  uint64_t uncompressed_size;
};
static_assert(sizeof(EntryHeader) == 64);

constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr uint64_t kFlagArchSpecific = 0x100000;
constexpr uint64_t kFlagFamilySpecific = 0x200000;

// A damaged header must not make us allocate the address space.
constexpr uint64_t kMaxEntrySize = uint64_t{1} << 32;

absl::Status Damaged(absl::string_view what, uint64_t offset) {
  return absl::InvalidArgumentError(
      absl::StrCat("damaged fatbin: ", what, " at offset ", offset));
}

}  // namespace

absl::StatusOr<uint64_t> FatbinSize(absl::Span<const uint8_t> bytes) {
  ContainerHeader header;
  if (!ReadAt(bytes, 0, &header)) return Damaged("no room for its header", 0);
  if (header.magic != kFatbinMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a fatbin: starts with 0x", absl::Hex(header.magic)));
  }
  if (header.version != 1 && header.version != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fatbin version ", header.version, " is unknown (1 and 2 are known)"));
  }
  if (header.header_size < kFatbinHeaderSize ||
      header.entries_size > UINT64_MAX - header.header_size) {
    return Damaged("header size", 0);
  }
  return header.header_size + header.entries_size;
}

absl::StatusOr<std::vector<FatbinEntry>> FatbinEntries(
    absl::Span<const uint8_t> fatbin) {
  absl::StatusOr<uint64_t> size = FatbinSize(fatbin);
  if (!size.ok()) return size.status();
  if (!InBounds(fatbin, 0, *size)) {
    return Damaged("cut short, its size ends", *size);
  }
  fatbin = fatbin.first(*size);
  ContainerHeader container;
  ReadAt(fatbin, 0, &container);

  std::vector<FatbinEntry> entries;
  uint64_t offset = container.header_size;
  while (offset < fatbin.size()) {
    EntryHeader header;
    if (!ReadAt(fatbin, offset, &header)) {
      return Damaged("no room for an entry header", offset);
    }
    if (header.header_size < sizeof(EntryHeader) ||
        !InBounds(fatbin, offset, header.header_size) ||
        !InBounds(fatbin, offset + header.header_size, header.payload_size)) {
      return Damaged("entry size", offset);
    }
    FatbinEntry entry;
    entry.kind = static_cast<FatbinEntryKind>(header.kind);
    entry.arch = header.arch;
    entry.arch_specific = (header.flags & kFlagArchSpecific) != 0;
    entry.family_specific = (header.flags & kFlagFamilySpecific) != 0;
    entry.bytes =
        fatbin.subspan(offset, header.header_size + header.payload_size);
    entry.payload = entry.bytes.subspan(header.header_size);
    entry.uncompressed_size = header.payload_size;
    if ((header.flags & (kFlagLz4 | kFlagZstd)) != 0) {
      entry.compression = (header.flags & kFlagZstd) != 0
                              ? FatbinCompression::kZstd
                              : FatbinCompression::kLz4;
      entry.uncompressed_size = header.uncompressed_size;
      if (header.compressed_size > header.payload_size) {
        return Damaged("compressed size", offset);
      }
      if (header.compressed_size != 0) {
        entry.payload = entry.payload.first(header.compressed_size);
      }
    }
    offset += entry.bytes.size();
    entries.push_back(entry);
  }
  return entries;
}

absl::StatusOr<std::vector<uint8_t>> FatbinEntryContent(
    const FatbinEntry& entry) {
  if (entry.uncompressed_size > kMaxEntrySize) {
    return absl::DataLossError(absl::StrCat(
        "fatbin entry states ", entry.uncompressed_size, " bytes of content"));
  }
  switch (entry.compression) {
    case FatbinCompression::kNone:
      return std::vector<uint8_t>(entry.payload.begin(), entry.payload.end());
    case FatbinCompression::kLz4:
      return DecompressLz4(entry.payload, entry.uncompressed_size);
    case FatbinCompression::kZstd:
      return DecompressZstd(entry.payload, entry.uncompressed_size);
  }
  return absl::InternalError("fatbin entry with an unknown compression");
}

bool FatbinEntryFits(const FatbinEntry& entry, int major, int minor) {
  const uint32_t device = static_cast<uint32_t>(major * 10 + minor);
  if (entry.arch_specific) return entry.arch == device;
  switch (entry.kind) {
    case FatbinEntryKind::kElf:
      return entry.arch / 10 == static_cast<uint32_t>(major) &&
             entry.arch <= device;
    case FatbinEntryKind::kPtx:
      if (entry.family_specific && entry.arch / 10 != device / 10) return false;
      return entry.arch <= device;
  }
  return false;
}

absl::StatusOr<std::vector<uint8_t>> FilterFatbin(
    absl::Span<const uint8_t> fatbin, int major, int minor) {
  absl::StatusOr<std::vector<FatbinEntry>> entries = FatbinEntries(fatbin);
  if (!entries.ok()) return entries.status();

  std::vector<const FatbinEntry*> kept;
  for (const FatbinEntryKind kind :
       {FatbinEntryKind::kElf, FatbinEntryKind::kPtx}) {
    for (const FatbinEntry& entry : *entries) {
      if (entry.kind == kind && FatbinEntryFits(entry, major, minor)) {
        kept.push_back(&entry);
      }
    }
    if (!kept.empty()) break;
  }
  if (kept.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "fatbin of ", entries->size(),
        " entries has none for compute capability ", major, ".", minor));
  }

  ContainerHeader header;
  ReadAt(fatbin, 0, &header);
  header.entries_size = 0;
  for (const FatbinEntry* entry : kept) {
    header.entries_size += entry->bytes.size();
  }
  std::vector<uint8_t> out(fatbin.begin(), fatbin.begin() + header.header_size);
  std::memcpy(out.data(), &header, sizeof(header));
  out.reserve(out.size() + header.entries_size);
  for (const FatbinEntry* entry : kept) {
    out.insert(out.end(), entry->bytes.begin(), entry->bytes.end());
  }
  return out;
}

}  // namespace heddle::cubin
