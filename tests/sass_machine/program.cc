// SPDX-License-Identifier: Apache-2.0
#include "tests/sass_machine/program.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/sass_table.h"
#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {
namespace {

using cubin::ElfSection;
using cubin::ElfView;

constexpr uint32_t kRelocation64 = 2;  // R_CUDA_64

std::string String(absl::string_view text) {
  return {text.data(), text.size()};
}

std::vector<uint8_t> Bytes(const ElfSection& section) {
  return {section.data.begin(), section.data.end()};
}

// The addresses of variables that a section of constants holds. With addends of
// their own (.rela) or with those in place (.rel).
absl::Status Relocate(const ElfView& elf, const std::string& name,
                      const std::map<std::string, uint64_t>& variables,
                      std::vector<uint8_t>* bytes) {
  for (const bool own_addend : {true, false}) {
    const ElfSection* section =
        elf.Find(absl::StrCat(own_addend ? ".rela" : ".rel", name));
    if (section == nullptr) continue;
    const size_t size = own_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (size_t at = 0; at + size <= section->data.size(); at += size) {
      Elf64_Rela entry{};
      std::memcpy(&entry, section->data.data() + at, size);
      const uint64_t symbol = ELF64_R_SYM(entry.r_info);
      const auto found =
          symbol < elf.symbols().size()
              ? variables.find(String(elf.symbols()[symbol].name))
              : variables.end();
      if (ELF64_R_TYPE(entry.r_info) != kRelocation64 ||
          found == variables.end() || bytes->size() < 8 ||
          entry.r_offset > bytes->size() - 8) {
        return absl::InvalidArgumentError(
            absl::StrCat("relocation ", at / size, " of ", name,
                         " is not known to the machine"));
      }
      uint64_t address = static_cast<uint64_t>(entry.r_addend);
      if (!own_addend) {
        std::memcpy(&address, bytes->data() + entry.r_offset, sizeof(address));
      }
      address += found->second;
      std::memcpy(bytes->data() + entry.r_offset, &address, sizeof(address));
    }
  }
  return absl::OkStatus();
}

std::vector<Code> DecodeAll(const ElfSection& section, uint32_t arch) {
  std::vector<Code> result;
  for (uint64_t at = 0; at + 16 <= section.data.size(); at += 16) {
    Code code;
    std::memcpy(&code.low, section.data.data() + at, 8);
    std::memcpy(&code.high, section.data.data() + at + 8, 8);
    code.decoded = cubin::DecodeSass(code.low, code.high, at, arch);
    code.operation = cubin::InterpretSass(code.low, code.high, code.decoded);
    code.handler = Warp::FindHandler(code);
    result.push_back(code);
  }
  return result;
}

}  // namespace

uint64_t Code::Bits(int bit, int size) const {
  return cubin::sass::Bits(low, high, bit, size);
}

const KernelCode* Program::Find(const std::string& name) const {
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : &found->second;
}

absl::StatusOr<Program> LoadProgram(const std::vector<uint8_t>& image,
                                    uint64_t variables_at, Memory* memory) {
  const absl::StatusOr<cubin::Cubin> cubin = cubin::ParseCubin(image);
  if (!cubin.ok()) return cubin.status();
  const absl::StatusOr<ElfView> elf = ElfView::Create(image);
  if (!elf.ok()) return elf.status();
  Program program;
  program.arch = cubin->arch;
  for (const cubin::Variable& variable : cubin->variables) {
    if (variable.space != cubin::VariableSpace::kGlobal) continue;
    std::vector<uint8_t> content(variable.size);
    std::copy(variable.initial.begin(), variable.initial.end(),
              content.begin());
    memory->Add(variables_at, std::move(content));
    program.variables[variable.name] = variables_at;
    variables_at += (variable.size + 511) / 256 * 256;
  }
  for (const cubin::Kernel& kernel : cubin->kernels) {
    KernelCode& code = program.kernels[kernel.name];
    code.kernel = kernel;
    code.entry = static_cast<uint32_t>(kernel.text_offset);
    code.code = DecodeAll(elf->sections()[kernel.text_section], cubin->arch);
    for (const int bank : {2, 3, 4}) {
      for (const std::string& name :
           {absl::StrCat(".nv.constant", bank),
            absl::StrCat(".nv.constant", bank, ".", kernel.name)}) {
        const ElfSection* section = elf->Find(name);
        if (section == nullptr) continue;
        std::vector<uint8_t> bytes = Bytes(*section);
        // Jump tables (bank 2) hold offsets, which are in place.
        if (bank == 4) {
          const absl::Status status =
              Relocate(*elf, name, program.variables, &bytes);
          if (!status.ok()) return status;
        }
        code.banks[bank] = std::move(bytes);
      }
    }
  }
  return program;
}

}  // namespace heddle::sass_machine
