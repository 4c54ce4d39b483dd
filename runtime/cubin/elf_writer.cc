// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/elf_writer.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::cubin {
namespace {

// No section of a cubin asks for more than a page; a damaged header must not
// make us write gigabytes of padding.
constexpr uint64_t kMaxAlignment = 1 << 16;
constexpr uint64_t kTableAlignment = 8;

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("damaged ELF: ", what));
}

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

bool HasBytes(const Elf64_Shdr& header) {
  return header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL;
}

}  // namespace

absl::StatusOr<ElfWriter> ElfWriter::Create(Bytes image, const ElfView& elf) {
  ElfWriter writer(image, elf);
  const Elf64_Ehdr& header = elf.header();
  writer.chunks_.reserve(elf.sections().size() + 3);
  for (const ElfSection& section : elf.sections()) {
    Chunk chunk;
    if (section.header.sh_type != SHT_NULL) {
      chunk.old_offset =
          std::min<uint64_t>(section.header.sh_offset, image.size());
      chunk.alignment = std::max<uint64_t>(1, section.header.sh_addralign);
    }
    if (HasBytes(section.header)) chunk.old_size = section.header.sh_size;
    if ((chunk.alignment & (chunk.alignment - 1)) != 0 ||
        chunk.alignment > kMaxAlignment) {
      return Damaged(absl::StrCat("section alignment ", chunk.alignment));
    }
    writer.chunks_.push_back(std::move(chunk));
  }
  const uint64_t phnum = header.e_phoff == 0 ? 0 : header.e_phnum;
  const auto add_table = [&](uint64_t offset, uint64_t size) {
    Chunk chunk;
    chunk.old_offset = size == 0 ? 0 : offset;
    chunk.old_size = size;
    chunk.alignment = kTableAlignment;
    writer.chunks_.push_back(std::move(chunk));
  };
  add_table(0, sizeof(Elf64_Ehdr));
  add_table(header.e_shoff, elf.sections().size() * sizeof(Elf64_Shdr));
  add_table(header.e_phoff, phnum * sizeof(Elf64_Phdr));
  for (Chunk& chunk : writer.chunks_) {
    if (!InBounds(image, chunk.old_offset, chunk.old_size)) {
      return Damaged("a part lies outside the file");
    }
    chunk.new_size = chunk.old_size;
  }

  writer.order_.resize(writer.chunks_.size());
  for (uint32_t i = 0; i < writer.order_.size(); ++i) writer.order_[i] = i;
  std::sort(writer.order_.begin(), writer.order_.end(),
            [&](uint32_t a, uint32_t b) {
              const Chunk& x = writer.chunks_[a];
              const Chunk& y = writer.chunks_[b];
              return std::tie(x.old_offset, x.old_size, a) <
                     std::tie(y.old_offset, y.old_size, b);
            });
  uint64_t end = 0;
  for (const uint32_t i : writer.order_) {
    Chunk& chunk = writer.chunks_[i];
    if (chunk.old_size == 0) continue;
    if (!writer.nonempty_.empty()) {
      Chunk& previous = writer.chunks_[writer.nonempty_.back()];
      // From sm_100 on, sections of .nv.merc share the bytes of others.
      if (chunk.old_offset == previous.old_offset &&
          chunk.old_size == previous.old_size) {
        chunk.same_as = writer.nonempty_.back();
        chunk.shared = previous.shared = true;
        previous.alignment = std::max(previous.alignment, chunk.alignment);
        continue;
      }
    }
    if (chunk.old_offset < end) {
      return Damaged(
          absl::StrCat("parts overlap at offset ", chunk.old_offset));
    }
    end = chunk.old_end();
    writer.nonempty_.push_back(i);
  }
  return writer;
}

void ElfWriter::Replace(uint32_t section, std::vector<uint8_t> content) {
  chunks_[section].new_size = content.size();
  chunks_[section].content = std::move(content);
}

void ElfWriter::Grow(uint32_t section, uint64_t size) {
  chunks_[section].new_size = std::max(size, chunks_[section].old_size);
  chunks_[section].content.clear();
}

bool ElfWriter::IsShared(uint32_t section) const {
  return chunks_[section].shared;
}

uint64_t ElfWriter::Offset(uint32_t section) const {
  return chunks_[section].new_offset;
}

absl::Status ElfWriter::Layout() {
  // Everything moves by `shift` and then up to its alignment, so that distances
  // never shrink and nothing can come to overlap.
  uint64_t shift = 0;
  for (const uint32_t i : order_) {
    Chunk& chunk = chunks_[i];
    if (chunk.same_as != Chunk::kNone) {  // which comes before it in order_
      chunk.new_offset = chunks_[chunk.same_as].new_offset;
      continue;
    }
    if (chunk.new_size < chunk.old_size) {
      return absl::InternalError("a section would shrink");
    }
    if (chunk.old_size == 0 && chunk.new_size != 0) {
      return absl::InternalError("an empty section would grow");
    }
    chunk.new_offset = chunk.old_offset + shift;
    if (shift == 0 && chunk.new_size == chunk.old_size) continue;
    if (chunk.old_size == 0) continue;
    if (shift != 0) {
      chunk.new_offset = AlignUp(chunk.new_offset, chunk.alignment);
    }
    shift = chunk.new_end() - chunk.old_end();
  }
  new_size_ = image_.size() + shift;
  return absl::OkStatus();
}

void ElfWriter::CopyChunks(std::vector<uint8_t>* out) const {
  uint64_t old_end = 0;
  uint64_t new_end = 0;
  const auto copy = [&](uint64_t from, uint64_t to, uint64_t size) {
    if (size > 0) std::memcpy(out->data() + to, image_.data() + from, size);
  };
  for (const uint32_t i : nonempty_) {
    const Chunk& chunk = chunks_[i];
    copy(old_end, new_end, chunk.old_offset - old_end);
    if (chunk.content.empty()) {
      copy(chunk.old_offset, chunk.new_offset, chunk.old_size);
    } else {
      std::memcpy(out->data() + chunk.new_offset, chunk.content.data(),
                  chunk.content.size());
    }
    old_end = chunk.old_end();
    new_end = chunk.new_end();
  }
  copy(old_end, new_end, image_.size() - old_end);
}

absl::Status ElfWriter::MoveSegment(Elf64_Phdr* segment) const {
  if (segment->p_type == PT_NULL) return absl::OkStatus();
  if (!InBounds(image_, segment->p_offset, segment->p_filesz)) {
    return Damaged("segment outside the file");
  }
  const uint64_t begin = segment->p_offset;
  const uint64_t end = begin + segment->p_filesz;
  if (segment->p_filesz == 0) {
    // It has only memory, of SHT_NOBITS sections: it stays at the part of the
    // file that it stood before.
    const auto at = std::lower_bound(order_.begin(), order_.end(), begin,
                                     [&](uint32_t i, uint64_t offset) {
                                       return chunks_[i].old_offset < offset;
                                     });
    segment->p_offset =
        at == order_.end()
            ? begin + (new_size_ - image_.size())
            : chunks_[*at].new_offset - (chunks_[*at].old_offset - begin);
    return absl::OkStatus();
  }
  const auto first = std::lower_bound(nonempty_.begin(), nonempty_.end(), begin,
                                      [&](uint32_t i, uint64_t offset) {
                                        return chunks_[i].old_end() <= offset;
                                      });
  const auto behind = std::lower_bound(nonempty_.begin(), nonempty_.end(), end,
                                       [&](uint32_t i, uint64_t offset) {
                                         return chunks_[i].old_offset < offset;
                                       });
  if (first == behind) return Damaged("segment that covers no section");
  const Chunk& front = chunks_[*first];
  const Chunk& back = chunks_[*(behind - 1)];
  if (front.old_offset < begin || back.old_end() > end) {
    return Damaged("segment that covers a part of a section");
  }
  // What it covers of the gaps before and behind stays covered.
  segment->p_offset = front.new_offset - (front.old_offset - begin);
  const uint64_t size =
      back.new_end() + (end - back.old_end()) - segment->p_offset;
  segment->p_memsz += size - segment->p_filesz;
  segment->p_filesz = size;
  return absl::OkStatus();
}

absl::Status ElfWriter::WriteProgramHeaders(std::vector<uint8_t>* out) const {
  const Chunk& table = chunks_.back();
  for (uint64_t at = 0; at < table.old_size; at += sizeof(Elf64_Phdr)) {
    Elf64_Phdr segment;
    ReadAt(image_, table.old_offset + at, &segment);
    if (absl::Status status = MoveSegment(&segment); !status.ok()) {
      return status;
    }
    std::memcpy(out->data() + table.new_offset + at, &segment, sizeof(segment));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> ElfWriter::Write() {
  if (absl::Status status = Layout(); !status.ok()) return status;
  std::vector<uint8_t> out(new_size_);
  CopyChunks(&out);
  if (new_size_ == image_.size()) return out;

  const size_t sections = elf_->sections().size();
  const Chunk& section_table = chunks_[sections + 1];
  const Chunk& program_table = chunks_[sections + 2];
  Elf64_Ehdr header = elf_->header();
  if (section_table.old_size > 0) header.e_shoff = section_table.new_offset;
  if (program_table.old_size > 0) header.e_phoff = program_table.new_offset;
  std::memcpy(out.data(), &header, sizeof(header));
  for (size_t i = 0; i < sections; ++i) {
    Elf64_Shdr section = elf_->sections()[i].header;
    if (section.sh_type == SHT_NULL) continue;
    section.sh_offset = chunks_[i].new_offset;
    if (HasBytes(section)) section.sh_size = chunks_[i].new_size;
    std::memcpy(out.data() + section_table.new_offset + i * sizeof(section),
                &section, sizeof(section));
  }
  if (absl::Status status = WriteProgramHeaders(&out); !status.ok()) {
    return status;
  }
  return out;
}

}  // namespace heddle::cubin
