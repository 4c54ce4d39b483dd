// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/nv_info.h"

#include "absl/strings/str_cat.h"

namespace heddle::cubin {
namespace {

// Where the code offsets are among the u32 words of an attribute: `first`, and
// from there every `step` words. Names as cuobjdump prints them; layouts from
// what ptxas writes for code that has such instructions.
struct OffsetWords {
  uint8_t code;
  uint8_t first;
  uint8_t step;
};
constexpr OffsetWords kOffsetWords[] = {
    {0x1c, 0, 1},  // EXIT_INSTR_OFFSETS
    {0x1d, 0, 1},  // S2RCTAID_INSTR_OFFSETS
    {0x25, 0, 1},  // LD_CACHEMOD_INSTR_OFFSETS
    {0x27, 0, 1},  // ATOM_SYS_INSTR_OFFSETS
    {0x28, 0, 1},  // COOP_GROUP_INSTR_OFFSETS
    {0x2d, 0, 1},  // ATOMF16_EMUL_INSTR_OFFSETS
    {0x2e, 0, 2},  // ATOM16_EMUL_INSTR_REG_MAP: {offset, registers}
    {0x31, 0, 1},  // INT_WARP_WIDE_INSTR_OFFSETS
    {0x39, 0, 4},  // MBARRIER_INSTR_OFFSETS: {offset, ...}
    {0x3a, 1, 2},  // COROUTINE_RESUME_ID_OFFSETS: {id, offset}
    {0x44, 0, 2},  // UNUSED_LOAD_BYTE_OFFSET: {offset, ...}
    {0x46, 0, 1}, {0x47, 0, 1}, {0x55, 1, 2},  // ANNOTATIONS: {kind, offset}
    {0x57, 0, 1}, {0x59, 0, 1}, {0x65, 0, 1},
};
// {offset, unused, count, count offsets} once or more.
constexpr uint8_t kIndirectBranchTargets = 0x34;

}  // namespace

absl::Status ForEachNvInfo(
    Bytes section, const std::function<void(const NvInfoAttribute&)>& visit) {
  constexpr size_t kHeaderSize = 4;
  size_t offset = 0;
  while (offset < section.size()) {
    uint8_t format;
    uint8_t code;
    uint16_t size = 0;
    if (!ReadAt(section, offset, &format) ||
        !ReadAt(section, offset + 1, &code) ||
        !ReadAt(section, offset + 2, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat(".nv.info attribute cut short at offset ", offset));
    }
    NvInfoAttribute attribute;
    attribute.code = static_cast<NvInfoCode>(code);
    switch (format) {
      case 1:
      case 2:
      case 3:
        attribute.value = section.subspan(offset + 2, 2);
        attribute.encoded = section.subspan(offset, kHeaderSize);
        break;
      case 4:
        if (!InBounds(section, offset + kHeaderSize, size)) {
          return absl::InvalidArgumentError(absl::StrCat(
              ".nv.info attribute runs past the end at offset ", offset));
        }
        attribute.value = section.subspan(offset + kHeaderSize, size);
        attribute.encoded = section.subspan(offset, kHeaderSize + size);
        break;
      default:
        return absl::InvalidArgumentError(
            absl::StrCat(".nv.info attribute has unknown format ", format,
                         " at offset ", offset));
    }
    offset += attribute.encoded.size();
    visit(attribute);
  }
  return absl::OkStatus();
}

void ForEachCodeOffset(const NvInfoAttribute& attribute,
                       const std::function<void(uint32_t)>& visit) {
  constexpr uint64_t kWord = sizeof(uint32_t);
  const auto code = static_cast<uint8_t>(attribute.code);
  uint32_t offset;
  if (code == kIndirectBranchTargets) {
    uint64_t at = 0;
    uint32_t count;
    while (ReadAt(attribute.value, at, &offset) &&
           ReadAt(attribute.value, at + 2 * kWord, &count)) {
      visit(offset);
      at += 3 * kWord;
      for (; count > 0 && ReadAt(attribute.value, at, &offset); --count) {
        visit(offset);
        at += kWord;
      }
    }
    return;
  }
  for (const OffsetWords& words : kOffsetWords) {
    if (words.code != code) continue;
    for (uint64_t at = words.first * kWord;
         ReadAt(attribute.value, at, &offset); at += words.step * kWord) {
      visit(offset);
    }
  }
}

}  // namespace heddle::cubin
