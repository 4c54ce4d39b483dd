// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_ELF_WRITER_H_
#define HEDDLE_RUNTIME_CUBIN_ELF_WRITER_H_

// Writes an ELF file anew with some of its sections larger.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/elf_view.h"

namespace heddle::cubin {

// Sections keep their order, alignment and the bytes between them; where
// nothing grows the result is the input. Offsets and sizes in the section
// headers follow, and so do those of every program header that covers a moved
// section: the driver loads by program headers, and with stale ones it loads
// other bytes without a word.
class ElfWriter {
 public:
  // `image` and `elf`, which was made of it, outlive the writer.
  // InvalidArgument: parts of the file overlap. Only whole sections may: those
  // that share all their bytes do so in the result.
  static absl::StatusOr<ElfWriter> Create(Bytes image, const ElfView& elf);

  // Replaces the content of a section that has bytes in the file. `content` is
  // no shorter than what it replaces. The latest of Replace and Grow for a
  // section counts.
  void Replace(uint32_t section, std::vector<uint8_t> content);
  // Appends zeros up to `size` bytes.
  void Grow(uint32_t section, uint64_t size);

  // Whether another section has the same bytes: then it cannot be changed
  // alone, and neither Replace nor Grow may be called for it.
  bool IsShared(uint32_t section) const;

  // The new file. InvalidArgument: a program header covers a part of a section
  // that has moved, or the file is damaged otherwise.
  absl::StatusOr<std::vector<uint8_t>> Write();
  // Offset in the file that Write returned.
  uint64_t Offset(uint32_t section) const;

 private:
  // One stretch of the file that moves as a whole.
  struct Chunk {
    static constexpr uint32_t kNone = UINT32_MAX;
    uint64_t old_offset = 0;
    uint64_t old_size = 0;  // in the file
    uint64_t alignment = 1;
    uint64_t new_offset = 0;
    uint64_t new_size = 0;
    std::vector<uint8_t> content;  // empty: the old bytes
    uint32_t same_as = kNone;      // index of a chunk with the same bytes
    bool shared = false;           // has the same bytes as another one

    uint64_t old_end() const { return old_offset + old_size; }
    uint64_t new_end() const { return new_offset + new_size; }
  };

  ElfWriter(Bytes image, const ElfView& elf) : image_(image), elf_(&elf) {}
  absl::Status Layout();
  void CopyChunks(std::vector<uint8_t>* out) const;
  absl::Status WriteProgramHeaders(std::vector<uint8_t>* out) const;
  absl::Status MoveSegment(Elf64_Phdr* segment) const;

  Bytes image_;
  const ElfView* elf_;
  // By section, then the file header, the section header table and the program
  // header table.
  std::vector<Chunk> chunks_;
  std::vector<uint32_t> order_;     // indices of chunks_ by old offset
  std::vector<uint32_t> nonempty_;  // those of order_ with bytes in the file
  uint64_t new_size_ = 0;
};

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_ELF_WRITER_H_
