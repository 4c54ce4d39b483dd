// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/image.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/fatbin.h"

namespace heddle::cubin {
namespace {

// __fatBinC_Wrapper_t of the toolkit's fatbinary_section.h. Version 2 is for
// relocatable code; `data` is the container in both.
constexpr uint32_t kWrapperMagic = 0x466243b1;
struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* filename_or_fatbins;
};

// No image is this large. A bare pointer to something that only looks like one
// must not make us read on for ever.
constexpr uint64_t kMaxImageSize = uint64_t{1} << 34;

// Length of the PTX text at `bytes` up to, not including, its NUL or the end;
// 0 if it is not PTX. PTX starts with its .version directive; only white space
// and comments may come before it. Never looks beyond the first NUL.
size_t PtxLength(Bytes bytes) {
  const auto at = [&](size_t i) { return i < bytes.size() ? bytes[i] : 0; };
  size_t i = 0;
  while (true) {
    const uint8_t c = at(i);
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++i;
    } else if (c == '/' && at(i + 1) == '/') {
      while (at(i) != '\n' && at(i) != 0) ++i;
    } else if (c == '/' && at(i + 1) == '*') {
      i += 2;
      while (at(i) != 0 && !(at(i) == '*' && at(i + 1) == '/')) ++i;
      if (at(i) == 0) return 0;
      i += 2;
    } else {
      break;
    }
  }
  constexpr absl::string_view kVersion = ".version";
  for (char expected : kVersion) {
    if (at(i++) != static_cast<uint8_t>(expected)) return 0;
  }
  while (at(i) != 0) ++i;
  return std::min(i, bytes.size());
}

absl::Status NotAnImage(Bytes bytes) {
  uint32_t first = 0;
  ReadAt(bytes, 0, &first);
  return absl::InvalidArgumentError(
      absl::StrCat("not a device-code image: starts with 0x",
                   absl::Hex(first, absl::kZeroPad8),
                   "; expected a fatbin, a cubin (ELF) or PTX text"));
}

}  // namespace

absl::string_view ImageKindName(ImageKind kind) {
  switch (kind) {
    case ImageKind::kFatbin:
      return "fatbin";
    case ImageKind::kElf:
      return "cubin";
    case ImageKind::kPtx:
      return "ptx";
  }
  return "unknown";
}

absl::StatusOr<ImageView> IdentifyImage(const void* image) {
  if (image == nullptr) {
    return absl::InvalidArgumentError("not a device-code image: null pointer");
  }
  // The extent of a bare pointer is unknown, so each step below reads no more
  // than the steps before it have shown to be there: four bytes tell binary
  // from text, and text is read up to its NUL.
  const auto* data = static_cast<const uint8_t*>(image);
  uint32_t magic = 0;
  for (size_t i = 0; i < sizeof(magic); ++i) {
    magic |= static_cast<uint32_t>(data[i]) << (8 * i);
    if (data[i] == 0) break;
  }
  if (magic == kWrapperMagic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, image, sizeof(wrapper));
    if (wrapper.data == nullptr) {
      return absl::InvalidArgumentError(
          "fatbin wrapper has a null data pointer");
    }
    absl::StatusOr<ImageView> inner = IdentifyImage(wrapper.data);
    if (inner.ok()) inner->wrapped = true;
    return inner;
  }
  if (magic == kFatbinMagic) {
    const Bytes header(data, kFatbinHeaderSize);
    absl::StatusOr<uint64_t> size = FatbinSize(header);
    if (!size.ok()) return size.status();
    if (*size > kMaxImageSize) return NotAnImage(header);
    return ImageView{ImageKind::kFatbin, Bytes(data, *size)};
  }
  if (magic == kElfMagic) {
    // In steps: the header says where the tables start, the first section
    // header how many there are if the header has no room for that, the tables
    // where the image ends.
    absl::StatusOr<uint64_t> tables =
        ElfTablesExtent(Bytes(data, kElfHeaderSize));
    if (tables.ok() && *tables <= kMaxImageSize) {
      tables = ElfTablesExtent(Bytes(data, *tables));
    }
    if (!tables.ok()) return tables.status();
    if (*tables > kMaxImageSize) return NotAnImage(Bytes(data, kElfHeaderSize));
    absl::StatusOr<uint64_t> size = ElfExtent(Bytes(data, *tables));
    if (!size.ok()) return size.status();
    if (*size > kMaxImageSize) return NotAnImage(Bytes(data, kElfHeaderSize));
    return ImageView{ImageKind::kElf, Bytes(data, *size)};
  }
  const size_t length = PtxLength(Bytes(data, kMaxImageSize));
  if (length > 0) return ImageView{ImageKind::kPtx, Bytes(data, length + 1)};
  return absl::InvalidArgumentError(
      absl::StrCat("not a device-code image: starts with 0x", absl::Hex(magic),
                   "; expected a fatbin, a cubin (ELF) or PTX text"));
}

absl::StatusOr<ImageView> IdentifyImage(absl::Span<const uint8_t> bytes) {
  uint32_t magic = 0;
  ReadAt(bytes, 0, &magic);
  if (magic == kWrapperMagic) {
    return absl::InvalidArgumentError(
        "a fatbin wrapper holds a pointer and means nothing outside its "
        "process");
  }
  if (magic == kFatbinMagic) {
    absl::StatusOr<uint64_t> size = FatbinSize(bytes);
    if (!size.ok()) return size.status();
    if (!InBounds(bytes, 0, *size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("fatbin is cut short: ", *size, " bytes stated, ",
                       bytes.size(), " present"));
    }
    return ImageView{ImageKind::kFatbin, bytes.first(*size)};
  }
  if (magic == kElfMagic) {
    absl::StatusOr<uint64_t> size = ElfExtent(bytes);
    if (!size.ok()) return size.status();
    if (!InBounds(bytes, 0, *size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cubin is cut short: ", *size, " bytes stated, ",
                       bytes.size(), " present"));
    }
    return ImageView{ImageKind::kElf, bytes.first(*size)};
  }
  const size_t length = PtxLength(bytes);
  if (length == 0) return NotAnImage(bytes);
  const size_t with_nul = std::min(length + 1, bytes.size());
  return ImageView{ImageKind::kPtx, bytes.first(with_nul)};
}

}  // namespace heddle::cubin
