// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/elf.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/nv_info.h"

namespace heddle::cubin {
namespace {

constexpr uint16_t kMachineCuda = 190;  // EM_CUDA
constexpr uint8_t kOsAbi7 = 0x33;
constexpr uint8_t kOsAbi8 = 0x41;
// STO_CUDA_ENTRY in st_other: the function can be launched.
constexpr uint8_t kEntryFlag = 0x10;
// From sm_90 on, .nv.shared.<kernel> begins with what the system reserves
// (CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK).
constexpr uint64_t kReservedSharedBytes = 1024;
// The kernel parameter limit is 32764 bytes, so no layout has more of them.
constexpr uint32_t kMaxParams = 32764;

struct SymbolValue {
  uint32_t symbol;
  uint32_t value;
};

// EIATTR_KPARAM_INFO and its V2.
struct KparamInfo {
  uint32_t index;
  uint16_t ordinal;
  uint16_t offset;
  uint32_t size;  // V1: bytes << 18 | bank << 12 | ...; V2: kind << 24 | bytes
};

struct ParamCbank {
  uint32_t symbol;
  uint16_t offset;
  uint16_t size;
};

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("damaged cubin: ", what));
}

// The attributes of .nv.info, by symbol index.
struct GlobalInfo {
  absl::flat_hash_map<uint32_t, uint32_t> registers;
  absl::flat_hash_map<uint32_t, uint32_t> frame_bytes;
};

absl::StatusOr<GlobalInfo> ReadGlobalInfo(const ElfView& elf) {
  GlobalInfo info;
  const ElfSection* section = elf.Find(".nv.info");
  if (section == nullptr) return info;
  absl::Status status =
      ForEachNvInfo(section->data, [&](const NvInfoAttribute& attribute) {
        SymbolValue value;
        if (!ReadAt(attribute.value, 0, &value)) return;
        if (attribute.code == NvInfoCode::kRegCount) {
          info.registers[value.symbol] = value.value;
        } else if (attribute.code == NvInfoCode::kFrameSize) {
          info.frame_bytes[value.symbol] = value.value;
        }
      });
  if (!status.ok()) return status;
  return info;
}

absl::Status ReadKernelInfo(Bytes section, Kernel* kernel) {
  std::vector<std::pair<uint32_t, KernelParam>> params;
  bool damaged = false;
  absl::Status status =
      ForEachNvInfo(section, [&](const NvInfoAttribute& attribute) {
        const auto read = [&](auto* out) {
          if (ReadAt(attribute.value, 0, out)) return true;
          damaged = true;
          return false;
        };
        switch (attribute.code) {
          case NvInfoCode::kKparamInfo: {
            KparamInfo info;
            if (!read(&info)) break;
            params.push_back(
                {info.ordinal, KernelParam{info.offset, info.size >> 18}});
            break;
          }
          case NvInfoCode::kKparamInfoV2: {
            KparamInfo info;
            if (!read(&info)) break;
            params.push_back(
                {info.ordinal, KernelParam{info.offset, info.size & 0xffffff}});
            break;
          }
          case NvInfoCode::kParamCbank: {
            ParamCbank bank;
            if (!read(&bank)) break;
            kernel->param_base = bank.offset;
            kernel->param_size = bank.size;
            break;
          }
          case NvInfoCode::kMaxThreads:
          case NvInfoCode::kReqNtid: {
            std::array<uint32_t, 3> dim;
            if (!read(&dim)) break;
            kernel->max_threads = dim[0] * dim[1] * dim[2];
            break;
          }
          case NvInfoCode::kCtaPerCluster:
            read(&kernel->cluster);
            break;
          default:
            break;
        }
      });
  if (!status.ok()) return status;
  if (damaged) return Damaged("attribute shorter than its kind");

  std::sort(params.begin(), params.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  if (params.size() > kMaxParams) return Damaged("parameter count");
  uint64_t end = 0;
  for (uint32_t i = 0; i < params.size(); ++i) {
    const KernelParam& param = params[i].second;
    if (params[i].first != i || param.size > kMaxParams || param.offset < end) {
      return Damaged(absl::StrCat("parameters of ", kernel->name));
    }
    end = uint64_t{param.offset} + param.size;
    kernel->params.push_back(param);
  }
  if (kernel->param_size != 0 && end > kernel->param_size) {
    return Damaged(absl::StrCat("parameter block of ", kernel->name));
  }
  if (kernel->param_size == 0) kernel->param_size = static_cast<uint32_t>(end);
  return absl::OkStatus();
}

// Section name → section, for the per-kernel look-ups.
using SectionMap = absl::flat_hash_map<absl::string_view, const ElfSection*>;

absl::Status AddKernel(const SectionMap& by_name, const GlobalInfo& info,
                       uint32_t symbol_index, const ElfSymbol& symbol,
                       Cubin* cubin) {
  Kernel kernel;
  kernel.name = absl::StrCat(symbol.name);
  kernel.text_section = symbol.symbol.st_shndx;
  kernel.text_offset = symbol.symbol.st_value;
  if (auto it = info.registers.find(symbol_index); it != info.registers.end()) {
    kernel.registers = it->second;
  }
  if (auto it = info.frame_bytes.find(symbol_index);
      it != info.frame_bytes.end()) {
    kernel.local_bytes = it->second;
  }
  if (auto it = by_name.find(absl::StrCat(".nv.info.", kernel.name));
      it != by_name.end()) {
    absl::Status status = ReadKernelInfo(it->second->data, &kernel);
    if (!status.ok()) return status;
  }
  if (auto it = by_name.find(absl::StrCat(".nv.shared.", kernel.name));
      it != by_name.end()) {
    uint64_t bytes = it->second->header.sh_size;
    if (cubin->arch >= 90) bytes -= std::min(bytes, kReservedSharedBytes);
    kernel.static_shared_bytes =
        static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
  }
  cubin->kernels.push_back(std::move(kernel));
  return absl::OkStatus();
}

absl::Status AddVariable(const ElfView& elf, const ElfSymbol& symbol,
                         const ElfSection& section, Cubin* cubin) {
  Variable variable;
  if (absl::StartsWith(section.name, ".nv.global")) {
    variable.space = VariableSpace::kGlobal;
  } else if (section.name == ".nv.constant3") {
    variable.space = VariableSpace::kConstant;
  } else {
    return absl::OkStatus();
  }
  variable.name = absl::StrCat(symbol.name);
  variable.size = symbol.symbol.st_size;
  const uint64_t start = symbol.symbol.st_value;
  if (section.header.sh_type != SHT_NOBITS) {
    if (!InBounds(section.data, start, variable.size)) {
      return Damaged(
          absl::StrCat("variable ", variable.name, " outside its section"));
    }
    variable.initial = section.data.subspan(start, variable.size);
  } else if (start > section.header.sh_size ||
             variable.size > section.header.sh_size - start) {
    return Damaged(
        absl::StrCat("variable ", variable.name, " outside its section"));
  }
  for (const absl::string_view prefix : {".rel", ".rela"}) {
    const ElfSection* relocations =
        elf.Find(absl::StrCat(prefix, section.name));
    if (relocations == nullptr) continue;
    const uint64_t entry_size =
        prefix == ".rel" ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
    for (uint64_t at = 0; at < relocations->data.size(); at += entry_size) {
      uint64_t offset;
      if (!ReadAt(relocations->data, at, &offset)) break;
      if (offset >= start && offset - start < variable.size) {
        variable.relocated = true;
      }
    }
  }
  cubin->variables.push_back(std::move(variable));
  return absl::OkStatus();
}

}  // namespace

const Kernel* Cubin::FindKernel(absl::string_view name) const {
  for (const Kernel& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

const Variable* Cubin::FindVariable(absl::string_view name) const {
  for (const Variable& variable : variables) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

bool Cubin::HasMutableState() const { return !variables.empty(); }

absl::StatusOr<Cubin> ParseCubin(absl::Span<const uint8_t> image) {
  absl::StatusOr<ElfView> elf = ElfView::Create(image);
  if (!elf.ok()) return elf.status();
  const Elf64_Ehdr& header = elf->header();
  if (header.e_machine != kMachineCuda) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a cubin: ELF for machine ", header.e_machine));
  }
  Cubin cubin;
  const uint8_t os_abi = header.e_ident[EI_OSABI];
  if (os_abi == kOsAbi7) {
    cubin.abi = 7;
    cubin.arch = header.e_flags & 0xff;
  } else if (os_abi == kOsAbi8) {
    cubin.abi = 8;
    cubin.arch = (header.e_flags >> 8) & 0xff;
  } else {
    return absl::UnimplementedError(
        absl::StrCat("cubin with ELF OSABI 0x", absl::Hex(os_abi),
                     ": only ABI 7 (0x33) and 8 (0x41) are known"));
  }

  absl::StatusOr<GlobalInfo> info = ReadGlobalInfo(*elf);
  if (!info.ok()) return info.status();
  SectionMap by_name;
  for (const ElfSection& section : elf->sections()) {
    by_name.try_emplace(section.name, &section);
  }
  for (uint32_t i = 0; i < elf->symbols().size(); ++i) {
    const ElfSymbol& symbol = elf->symbols()[i];
    const uint16_t section_index = symbol.symbol.st_shndx;
    if (symbol.name.empty() || section_index == SHN_UNDEF) continue;
    // Indices from SHN_LORESERVE on are not sections, except that a cubin with
    // that many sections would use SHN_XINDEX, which nvcc was not seen to do.
    if (section_index >= elf->sections().size()) continue;
    const ElfSection& section = elf->sections()[section_index];
    const int type = ELF64_ST_TYPE(symbol.symbol.st_info);
    absl::Status status;
    if (type == STT_FUNC && (symbol.symbol.st_other & kEntryFlag) != 0 &&
        absl::StartsWith(section.name, ".text.")) {
      status = AddKernel(by_name, *info, i, symbol, &cubin);
    } else if (type == STT_OBJECT) {
      status = AddVariable(*elf, symbol, section, &cubin);
    }
    if (!status.ok()) return status;
  }
  return cubin;
}

}  // namespace heddle::cubin
