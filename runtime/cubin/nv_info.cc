// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/nv_info.h"

#include "absl/strings/str_cat.h"

namespace heddle::cubin {

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
        offset += kHeaderSize;
        break;
      case 4:
        if (!InBounds(section, offset + kHeaderSize, size)) {
          return absl::InvalidArgumentError(absl::StrCat(
              ".nv.info attribute runs past the end at offset ", offset));
        }
        attribute.value = section.subspan(offset + kHeaderSize, size);
        offset += kHeaderSize + size;
        break;
      default:
        return absl::InvalidArgumentError(
            absl::StrCat(".nv.info attribute has unknown format ", format,
                         " at offset ", offset));
    }
    visit(attribute);
  }
  return absl::OkStatus();
}

}  // namespace heddle::cubin
