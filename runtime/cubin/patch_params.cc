// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/patch_params.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/nv_info.h"

namespace heddle::cubin {
namespace {

constexpr uint32_t kAlignment = 8;
// CUDA C++ Programming Guide, "Kernel parameters": from CUDA 12.1 on.
constexpr uint32_t kMaxParameterBytes = 32764;
// ptxas describes parameters of more bytes in the second form.
constexpr uint32_t kMaxFirstForm = 4352;
// The size word. First form: bits 8 to 11 a kind (5 for pointers, on sm_100 and
// later), bits 12 to 16 set in all that ptxas writes, the size from bit 18 on.
// Second form: the size, and the kind from bit 24 on.
constexpr uint32_t kFirstFormBank = 0x1f000;
constexpr uint32_t kFirstFormSizeShift = 18;
constexpr uint32_t kSecondFormSize = 0xffffff;

uint32_t SecondFormWord(uint32_t first_form) {
  return first_form >> kFirstFormSizeShift | ((first_form >> 8) & 0xf) << 24;
}

constexpr uint8_t kFormatU16 = 3;
constexpr uint8_t kFormatBytes = 4;
// CUDA_API_VERSION, which ptxas writes before all others.
constexpr auto kApiVersion = static_cast<NvInfoCode>(0x37);

struct KparamInfo {
  uint32_t index;
  uint16_t ordinal;
  uint16_t offset;
  uint32_t size;
};

struct ParamCbank {
  uint32_t symbol;
  uint16_t offset;
  uint16_t size;
};

// What the attributes say of the parameters.
struct Found {
  uint32_t count = 0;        // KPARAM_INFOs
  uint32_t end = 0;          // of the last parameter
  uint32_t ordinals = 0;     // highest ordinal + 1
  uint32_t cbanks = 0;       // PARAM_CBANKs
  uint32_t cbank_sizes = 0;  // CBANK_PARAM_SIZEs
  bool second_form = false;
  bool short_value = false;
  ParamCbank cbank{};
  uint16_t cbank_size = 0;
};

bool IsKparam(NvInfoCode code) {
  return code == NvInfoCode::kKparamInfo || code == NvInfoCode::kKparamInfoV2;
}

absl::StatusOr<Found> Find(Bytes info) {
  Found found;
  absl::Status status =
      ForEachNvInfo(info, [&](const NvInfoAttribute& attribute) {
        if (IsKparam(attribute.code)) {
          KparamInfo param{};
          found.short_value |= !ReadAt(attribute.value, 0, &param);
          const bool second = attribute.code == NvInfoCode::kKparamInfoV2;
          const uint32_t size = second ? param.size & kSecondFormSize
                                       : param.size >> kFirstFormSizeShift;
          found.second_form |= second;
          ++found.count;
          found.end = std::max(found.end, param.offset + size);
          found.ordinals = std::max(found.ordinals, param.ordinal + 1U);
        } else if (attribute.code == NvInfoCode::kParamCbank) {
          found.short_value |= !ReadAt(attribute.value, 0, &found.cbank);
          ++found.cbanks;
        } else if (attribute.code == NvInfoCode::kCbankParamSize) {
          found.short_value |= !ReadAt(attribute.value, 0, &found.cbank_size);
          ++found.cbank_sizes;
        }
      });
  if (!status.ok()) return status;
  return found;
}

template <typename T>
void Append(uint8_t format, NvInfoCode code, const T& payload,
            std::vector<uint8_t>* out) {
  out->push_back(format);
  out->push_back(static_cast<uint8_t>(code));
  if (format == kFormatBytes) {
    out->push_back(sizeof(T));
    out->push_back(0);
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(&payload);
  out->insert(out->end(), bytes, bytes + sizeof(T));
}

void AppendKparam(const KparamInfo& param, bool second_form,
                  std::vector<uint8_t>* out) {
  Append(kFormatBytes,
         second_form ? NvInfoCode::kKparamInfoV2 : NvInfoCode::kKparamInfo,
         param, out);
}

// Where parameters start in constant bank 0; 0 if not known.
uint32_t ParameterBase(uint32_t arch) {
  if (arch >= 100) return 0x380;
  return arch >= 90 ? 0x210 : 0;
}

absl::Status Check(const Found& found, const ParameterSections& sections) {
  if (found.short_value) {
    return absl::FailedPreconditionError("its attributes are damaged");
  }
  if (found.count == 0) {
    if (found.cbanks != 0 || found.cbank_sizes != 0) {
      return absl::FailedPreconditionError("its parameters are not described");
    }
    // Then nothing but the bank's size says where parameters would begin.
    if (sections.constant_size != ParameterBase(sections.arch)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "its parameter bank has an unusual size, ", sections.constant_size));
    }
    return absl::OkStatus();
  }
  if (found.cbanks != 1 || found.cbank_sizes != 1 ||
      found.cbank.size != found.cbank_size || found.end > found.cbank_size ||
      found.ordinals != found.count) {
    return absl::FailedPreconditionError(
        "its attributes describe the parameters in an unknown way");
  }
  if (found.cbank.offset % kAlignment != 0 ||
      sections.constant_size <
          uint64_t{found.cbank.offset} + found.cbank.size) {
    return absl::FailedPreconditionError(
        "its parameter bank does not hold its parameters");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HiddenParameter> PlanHiddenParameter(
    const ParameterSections& sections, uint32_t bytes) {
  absl::StatusOr<Found> found = Find(sections.info);
  if (!found.ok()) return absl::FailedPreconditionError("damaged attributes");
  if (absl::Status status = Check(*found, sections); !status.ok()) {
    return status;
  }
  HiddenParameter hidden;
  hidden.ordinal = found->count;
  hidden.offset =
      (found->cbank_size + kAlignment - 1) / kAlignment * kAlignment;
  const uint32_t end = hidden.offset + bytes;
  if (end > kMaxParameterBytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it has ", found->cbank_size, " bytes of parameters: ", bytes,
        " more are over the limit"));
  }
  const bool second_form = found->second_form || end > kMaxFirstForm;
  const uint32_t base =
      found->count == 0 ? ParameterBase(sections.arch) : found->cbank.offset;
  hidden.constant_size =
      std::max<uint64_t>(sections.constant_size, uint64_t{base} + end);

  const KparamInfo added{
      0, static_cast<uint16_t>(hidden.ordinal),
      static_cast<uint16_t>(hidden.offset),
      second_form ? bytes : bytes << kFirstFormSizeShift | kFirstFormBank};
  std::vector<uint8_t>& out = hidden.info;
  out.reserve(sections.info.size() + 64);
  bool written = false;
  const auto write_added = [&] {
    if (!written) AppendKparam(added, second_form, &out);
    written = true;
  };
  // ptxas lists parameters from the last to the first.
  ForEachNvInfo(sections.info, [&](const NvInfoAttribute& attribute) {
    const size_t start = out.size();
    if (IsKparam(attribute.code)) {
      write_added();
      KparamInfo param{};
      ReadAt(attribute.value, 0, &param);
      if (attribute.code == NvInfoCode::kKparamInfo && second_form) {
        param.size = SecondFormWord(param.size);
        AppendKparam(param, true, &out);
        return;
      }
    } else if (found->count == 0 && attribute.code != kApiVersion) {
      write_added();
    }
    out.insert(out.end(), attribute.encoded.begin(), attribute.encoded.end());
    // Both hold the size in their last two bytes.
    if (attribute.code == NvInfoCode::kParamCbank ||
        attribute.code == NvInfoCode::kCbankParamSize) {
      const auto size = static_cast<uint16_t>(end);
      const size_t at = attribute.code == NvInfoCode::kParamCbank
                            ? start + 4 + offsetof(ParamCbank, size)
                            : start + 2;
      std::memcpy(out.data() + at, &size, sizeof(size));
    }
  }).IgnoreError();  // read without error above
  write_added();
  if (found->count == 0) {
    const auto size = static_cast<uint16_t>(end);
    Append(kFormatU16, NvInfoCode::kCbankParamSize, size, &out);
    Append(
        kFormatBytes, NvInfoCode::kParamCbank,
        ParamCbank{sections.constant_symbol, static_cast<uint16_t>(base), size},
        &out);
  }
  return hidden;
}

}  // namespace heddle::cubin
