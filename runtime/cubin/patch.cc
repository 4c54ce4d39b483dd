// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/patch.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/elf_writer.h"
#include "runtime/cubin/nv_info.h"
#include "runtime/cubin/patch_code.h"
#include "runtime/cubin/patch_params.h"
#include "runtime/cubin/stubs.h"

namespace heddle::cubin {
namespace {

// Raise when the same stubs and options lead to another image.
constexpr int kCodeVersion = 1;
// More is of no use to any stub, and leaves room for the kernel's own.
constexpr uint32_t kMaxHiddenBytes = 4096;

// What the file says of one section of code, collected in one pass over it.
struct TextFacts {
  uint32_t entries = 0;   // kernels that begin in it
  uint32_t info = 0;      // .nv.info.<kernel> section, 0: none
  uint32_t constant = 0;  // .nv.constant0.<kernel> section, 0: none
  bool relocated_start = false;
};

struct FileFacts {
  std::vector<TextFacts> texts;           // by section index
  std::vector<uint32_t> section_symbols;  // by section index; 0: none
  uint32_t symbol_table = 0;              // section; 0: none
};

void ReadRelocations(const ElfSection& section, TextFacts* facts) {
  const uint64_t entry_size = section.header.sh_type == SHT_RELA
                                  ? sizeof(Elf64_Rela)
                                  : sizeof(Elf64_Rel);
  uint64_t offset;
  for (uint64_t at = 0; ReadAt(section.data, at, &offset); at += entry_size) {
    if (offset < kInstructionBytes) facts->relocated_start = true;
  }
}

FileFacts ReadFacts(const ElfView& elf, const Cubin& cubin) {
  FileFacts facts;
  const uint32_t count = static_cast<uint32_t>(elf.sections().size());
  facts.texts.resize(count);
  facts.section_symbols.resize(count);
  for (const Kernel& kernel : cubin.kernels) {
    ++facts.texts[kernel.text_section].entries;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const ElfSection& section = elf.sections()[i];
    const uint32_t type = section.header.sh_type;
    if (type == SHT_SYMTAB && facts.symbol_table == 0) facts.symbol_table = i;
    // All three kinds state the code they belong to in sh_info.
    if (section.header.sh_info >= count) continue;
    TextFacts& text = facts.texts[section.header.sh_info];
    if (text.entries == 0) continue;
    if (type == SHT_REL || type == SHT_RELA) {
      ReadRelocations(section, &text);
    } else if (absl::StartsWith(section.name, ".nv.info.")) {
      text.info = i;
    } else if (absl::StartsWith(section.name, ".nv.constant0.")) {
      text.constant = i;
    }
  }
  for (uint32_t i = 0; i < elf.symbols().size(); ++i) {
    const Elf64_Sym& symbol = elf.symbols()[i].symbol;
    if (symbol.st_shndx >= count) continue;
    if (ELF64_ST_TYPE(symbol.st_info) == STT_SECTION) {
      facts.section_symbols[symbol.st_shndx] = i;
    }
  }
  return facts;
}

// The attribute that names the first instruction, 0 if none does. It would have
// to name the displaced copy.
uint32_t AttributeOfFirstInstruction(Bytes info) {
  uint32_t code = 0;
  ForEachNvInfo(info, [&](const NvInfoAttribute& attribute) {
    ForEachCodeOffset(attribute, [&](uint32_t offset) {
      if (offset < kInstructionBytes) {
        code = static_cast<uint32_t>(attribute.code);
      }
    });
  }).IgnoreError();  // a damaged list was refused by ParseCubin
  return code;
}

struct KernelPlan {
  uint32_t text = 0;  // section
  Detour detour;
};

class Patcher {
 public:
  Patcher(const ElfView& elf, const Cubin& cubin, const PatchOptions& options,
          const Stubs& stubs, ElfWriter* writer)
      : elf_(elf),
        cubin_(cubin),
        options_(options),
        stubs_(stubs),
        facts_(ReadFacts(elf, cubin)),
        writer_(*writer) {}

  absl::StatusOr<PatchedImage> Run() {
    PatchedImage result;
    result.kernels.reserve(cubin_.kernels.size());
    for (const Kernel& kernel : cubin_.kernels) {
      KernelPatch patch;
      patch.name = kernel.name;
      absl::Status status = Plan(kernel, &patch);
      patch.patched = status.ok();
      if (!status.ok()) patch.reason = absl::StrCat(status.message());
      result.kernels.push_back(std::move(patch));
    }
    absl::StatusOr<std::vector<uint8_t>> image = writer_.Write();
    if (!image.ok()) return image.status();
    for (const KernelPlan& plan : plans_) {
      const uint64_t old_size = elf_.sections()[plan.text].data.size();
      WriteDetour(plan.detour, old_size, stubs_.nop,
                  absl::MakeSpan(*image).subspan(writer_.Offset(plan.text),
                                                 plan.detour.text_size));
    }
    GrowSymbols(absl::MakeSpan(*image));
    result.image = *std::move(image);
    return result;
  }

 private:
  // Changes nothing unless it succeeds.
  absl::Status Plan(const Kernel& kernel, KernelPatch* patch) {
    const uint32_t text = kernel.text_section;
    const TextFacts& facts = facts_.texts[text];
    if (facts.entries != 1 || writer_.IsShared(text) ||
        writer_.IsShared(facts.info) || writer_.IsShared(facts.constant)) {
      return absl::FailedPreconditionError("it shares its sections");
    }
    KernelPlan plan{text, {}};
    if (options_.prologue != Prologue::kNone) {
      absl::StatusOr<Detour> detour = PlanCode(kernel, facts);
      if (!detour.ok()) return detour.status();
      plan.detour = *std::move(detour);
    }
    if (options_.hidden_parameter_bytes != 0) {
      absl::Status status = PlanParameter(facts, patch);
      if (!status.ok()) return status;
    }
    if (options_.prologue != Prologue::kNone) {
      writer_.Grow(text, plan.detour.text_size);
      plans_.push_back(std::move(plan));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Detour> PlanCode(const Kernel& kernel,
                                  const TextFacts& facts) const {
    if (kernel.text_offset != 0) {
      return absl::FailedPreconditionError(
          "it does not begin where its section begins");
    }
    if (facts.relocated_start) {
      return absl::FailedPreconditionError(
          "its first instruction is relocated");
    }
    if (facts.info != 0) {
      const uint32_t code =
          AttributeOfFirstInstruction(elf_.sections()[facts.info].data);
      if (code != 0) {
        return absl::FailedPreconditionError(absl::StrCat(
            "attribute 0x", absl::Hex(code), " names its first instruction"));
      }
    }
    return PlanDetour(elf_.sections()[kernel.text_section].data,
                      stubs_.For(options_.prologue));
  }

  absl::Status PlanParameter(const TextFacts& facts, KernelPatch* patch) {
    if (facts.info == 0 || facts.constant == 0 ||
        elf_.sections()[facts.info].data.empty() ||
        elf_.sections()[facts.constant].data.empty() ||
        facts_.section_symbols[facts.constant] == 0) {
      return absl::FailedPreconditionError(
          "its attributes or its parameter bank are missing");
    }
    const ParameterSections sections{
        elf_.sections()[facts.info].data,
        elf_.sections()[facts.constant].data.size(),
        facts_.section_symbols[facts.constant], cubin_.arch};
    absl::StatusOr<HiddenParameter> hidden =
        PlanHiddenParameter(sections, options_.hidden_parameter_bytes);
    if (!hidden.ok()) return hidden.status();
    patch->hidden_offset = hidden->offset;
    patch->hidden_ordinal = hidden->ordinal;
    writer_.Replace(facts.info, std::move(hidden->info));
    writer_.Grow(facts.constant, hidden->constant_size);
    return absl::OkStatus();
  }

  // A symbol of code that reached to the end of its section still does.
  void GrowSymbols(absl::Span<uint8_t> image) {
    std::vector<uint64_t> grown(elf_.sections().size());
    bool any = false;
    for (const KernelPlan& plan : plans_) {
      if (plan.detour.text_size == elf_.sections()[plan.text].data.size()) {
        continue;
      }
      grown[plan.text] = plan.detour.text_size;
      any = true;
    }
    if (!any) return;
    const uint64_t table = writer_.Offset(facts_.symbol_table);
    for (size_t i = 0; i < elf_.symbols().size(); ++i) {
      Elf64_Sym symbol = elf_.symbols()[i].symbol;
      if (symbol.st_shndx >= grown.size() || grown[symbol.st_shndx] == 0) {
        continue;
      }
      const uint64_t old_size = elf_.sections()[symbol.st_shndx].data.size();
      if (symbol.st_size == 0 || symbol.st_value + symbol.st_size != old_size) {
        continue;
      }
      symbol.st_size = grown[symbol.st_shndx] - symbol.st_value;
      std::memcpy(image.data() + table + i * sizeof(symbol), &symbol,
                  sizeof(symbol));
    }
  }

  const ElfView& elf_;
  const Cubin& cubin_;
  const PatchOptions options_;
  const Stubs& stubs_;
  const FileFacts facts_;
  ElfWriter& writer_;
  std::vector<KernelPlan> plans_;
};

}  // namespace

absl::StatusOr<PatchedImage> PatchCubin(absl::Span<const uint8_t> cubin,
                                        const PatchOptions& options) {
  if (options.prologue > Prologue::kWaitTrigger) {
    return absl::InvalidArgumentError(
        absl::StrCat("no such prologue: ", static_cast<int>(options.prologue)));
  }
  if (options.hidden_parameter_bytes % 8 != 0 ||
      options.hidden_parameter_bytes > kMaxHiddenBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hidden parameter of ", options.hidden_parameter_bytes,
        " bytes: expected a multiple of 8, at most ", kMaxHiddenBytes));
  }
  absl::StatusOr<Cubin> parsed = ParseCubin(cubin);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<ElfView> elf = ElfView::Create(cubin);
  if (!elf.ok()) return elf.status();
  if (elf->header().e_type != ET_EXEC) {
    return absl::UnimplementedError(
        "cubin is not linked: the driver would link it and move its code");
  }
  absl::StatusOr<const Stubs*> stubs = FindStubs(parsed->arch);
  if (!stubs.ok()) return stubs.status();
  absl::StatusOr<ElfWriter> writer = ElfWriter::Create(cubin, *elf);
  if (!writer.ok()) return writer.status();
  return Patcher(*elf, *parsed, options, **stubs, &*writer).Run();
}

std::string PatcherVersion() {
  static const auto* version =
      new std::string(absl::StrCat(kCodeVersion, ".", StubsVersion()));
  return *version;
}

}  // namespace heddle::cubin
