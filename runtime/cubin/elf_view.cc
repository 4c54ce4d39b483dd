// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/elf_view.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heddle::cubin {
namespace {

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("damaged ELF: ", what));
}

// The header, and the section count with the escape for counts that do not fit
// its 16-bit field (gABI: the count is then sh_size of section 0).
struct Tables {
  Elf64_Ehdr header{};
  uint64_t section_count = 0;
  uint64_t name_section = 0;
};

absl::StatusOr<Elf64_Ehdr> ReadHeader(Bytes bytes) {
  Elf64_Ehdr header;
  if (!ReadAt(bytes, 0, &header)) return Damaged("no room for its header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return absl::InvalidArgumentError("not an ELF file");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return absl::InvalidArgumentError("not a 64-bit little-endian ELF file");
  }
  if (header.e_shoff != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) {
    return Damaged("section header size");
  }
  if (header.e_phoff != 0 && header.e_phnum != 0 &&
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Damaged("program header size");
  }
  return header;
}

absl::StatusOr<Tables> ReadTables(Bytes bytes) {
  absl::StatusOr<Elf64_Ehdr> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  Tables tables{*header, header->e_shnum, header->e_shstrndx};
  if (header->e_shoff == 0) {
    tables.section_count = 0;
    return tables;
  }
  if (header->e_shnum == 0 || header->e_shstrndx == SHN_XINDEX) {
    Elf64_Shdr first;
    if (!ReadAt(bytes, header->e_shoff, &first)) {
      return Damaged("section table outside the file");
    }
    if (header->e_shnum == 0) tables.section_count = first.sh_size;
    if (header->e_shstrndx == SHN_XINDEX) tables.name_section = first.sh_link;
  }
  // Division, so that a huge count cannot overflow.
  if (header->e_shoff > bytes.size() ||
      tables.section_count >
          (bytes.size() - header->e_shoff) / sizeof(Elf64_Shdr)) {
    return Damaged("section table outside the file");
  }
  return tables;
}

// The NUL-terminated string at `offset` of `table`; empty if it does not end
// inside.
absl::string_view StringAt(Bytes table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* start = reinterpret_cast<const char*>(table.data()) + offset;
  const void* end = std::memchr(start, 0, table.size() - offset);
  if (end == nullptr) return {};
  return absl::string_view(start, static_cast<const char*>(end) - start);
}

// a + b, saturating: a damaged header must not wrap round to a small extent.
uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

}  // namespace

absl::StatusOr<uint64_t> ElfTablesExtent(Bytes bytes) {
  absl::StatusOr<Elf64_Ehdr> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  uint64_t extent = kElfHeaderSize;
  if (header->e_shoff != 0) {
    uint64_t count = header->e_shnum;
    if (count == 0) {
      count = 1;
      Elf64_Shdr first;
      if (ReadAt(bytes, header->e_shoff, &first)) {
        count = std::max<uint64_t>(
            1, std::min<uint64_t>(first.sh_size, uint64_t{1} << 32));
      }
    }
    extent = std::max(
        extent, SaturatingAdd(header->e_shoff, count * sizeof(Elf64_Shdr)));
  }
  if (header->e_phoff != 0) {
    extent = std::max(
        extent, SaturatingAdd(header->e_phoff,
                              uint64_t{header->e_phnum} * sizeof(Elf64_Phdr)));
  }
  return extent;
}

absl::StatusOr<uint64_t> ElfExtent(Bytes bytes) {
  absl::StatusOr<Tables> tables = ReadTables(bytes);
  if (!tables.ok()) return tables.status();
  absl::StatusOr<uint64_t> extent = ElfTablesExtent(bytes);
  if (!extent.ok()) return extent.status();
  const Elf64_Ehdr& header = tables->header;
  for (uint64_t i = 0; i < tables->section_count; ++i) {
    Elf64_Shdr section;
    if (!ReadAt(bytes, header.e_shoff + i * sizeof(section), &section)) {
      return Damaged("section table outside the file");
    }
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    *extent =
        std::max(*extent, SaturatingAdd(section.sh_offset, section.sh_size));
  }
  for (uint64_t i = 0; header.e_phoff != 0 && i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!InBounds(bytes, header.e_phoff, 0) ||
        !ReadAt(bytes, header.e_phoff + i * sizeof(segment), &segment)) {
      return Damaged("program header table outside the file");
    }
    if (segment.p_type == PT_NULL || segment.p_filesz == 0) continue;
    *extent =
        std::max(*extent, SaturatingAdd(segment.p_offset, segment.p_filesz));
  }
  return *extent;
}

absl::StatusOr<ElfView> ElfView::Create(Bytes bytes) {
  absl::StatusOr<Tables> tables = ReadTables(bytes);
  if (!tables.ok()) return tables.status();
  ElfView view;
  view.header_ = tables->header;
  view.sections_.resize(tables->section_count);
  for (uint64_t i = 0; i < tables->section_count; ++i) {
    ElfSection& section = view.sections_[i];
    ReadAt(bytes, view.header_.e_shoff + i * sizeof(Elf64_Shdr),
           &section.header);
    if (section.header.sh_type == SHT_NOBITS ||
        section.header.sh_type == SHT_NULL) {
      continue;
    }
    if (!InBounds(bytes, section.header.sh_offset, section.header.sh_size)) {
      return Damaged(absl::StrCat("section ", i, " outside the file"));
    }
    section.data =
        bytes.subspan(section.header.sh_offset, section.header.sh_size);
  }
  if (tables->section_count > 0) {
    if (tables->name_section >= tables->section_count) {
      return Damaged("section name table index");
    }
    const Bytes names = view.sections_[tables->name_section].data;
    for (ElfSection& section : view.sections_) {
      section.name = StringAt(names, section.header.sh_name);
    }
  }
  if (absl::Status status = view.ReadSymbols(); !status.ok()) return status;
  return view;
}

absl::Status ElfView::ReadSymbols() {
  for (const ElfSection& section : sections_) {
    if (section.header.sh_type != SHT_SYMTAB) continue;
    if (section.header.sh_link >= sections_.size()) {
      return Damaged("symbol string table index");
    }
    const Bytes names = sections_[section.header.sh_link].data;
    symbols_.resize(section.data.size() / sizeof(Elf64_Sym));
    for (size_t i = 0; i < symbols_.size(); ++i) {
      ReadAt(section.data, i * sizeof(Elf64_Sym), &symbols_[i].symbol);
      symbols_[i].name = StringAt(names, symbols_[i].symbol.st_name);
    }
    break;
  }
  return absl::OkStatus();
}

const ElfSection* ElfView::Find(absl::string_view name) const {
  for (const ElfSection& section : sections_) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

}  // namespace heddle::cubin
