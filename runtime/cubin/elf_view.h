// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_ELF_VIEW_H_
#define HEDDLE_RUNTIME_CUBIN_ELF_VIEW_H_

// Bounds-checked sections and symbols of a 64-bit little-endian ELF file.

#include <elf.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cubin/byte_reader.h"

namespace heddle::cubin {

inline constexpr uint32_t kElfMagic = 0x464c457f;
inline constexpr uint64_t kElfHeaderSize = sizeof(Elf64_Ehdr);

// Offset of the first byte behind the header and the section and program
// header tables; all that ElfExtent needs to see. InvalidArgument if `bytes`
// is no 64-bit little-endian ELF header. Needs kElfHeaderSize bytes, and one
// section header more where the section count does not fit the header (then it
// counts that one only).
absl::StatusOr<uint64_t> ElfTablesExtent(Bytes bytes);

// Offset of the first byte behind everything that the headers mention: the size
// of the image. `bytes` must hold at least the tables, else InvalidArgument.
absl::StatusOr<uint64_t> ElfExtent(Bytes bytes);

struct ElfSection {
  absl::string_view name;
  Elf64_Shdr header{};
  Bytes data;  // empty for SHT_NOBITS
};

struct ElfSymbol {
  absl::string_view name;
  Elf64_Sym symbol{};
};

class ElfView {
 public:
  // `bytes` outlives the view. InvalidArgument if the file is damaged so that
  // its sections or symbols cannot be read.
  static absl::StatusOr<ElfView> Create(Bytes bytes);

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  // Of .symtab, by index; empty if there is none.
  const std::vector<ElfSymbol>& symbols() const { return symbols_; }
  // The first section called `name`, or nullptr.
  const ElfSection* Find(absl::string_view name) const;

 private:
  absl::Status ReadSymbols();

  Elf64_Ehdr header_{};
  std::vector<ElfSection> sections_;
  std::vector<ElfSymbol> symbols_;
};

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_ELF_VIEW_H_
