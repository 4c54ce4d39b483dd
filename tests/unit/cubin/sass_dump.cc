// SPDX-License-Identifier: Apache-2.0
// Prints how heddle decodes machine code, for benchmarks/suite/check_sass.py to
// compare with nvdisasm.
//
//   decode: instructions of 16 bytes to one line each: guard, mnemonic, class,
//     operands, registers read, registers written; tab-separated. Operands that
//     have no effect (RZ, PT) and offsets of 0 are left out; a question mark is
//     before descriptors of memory, which nvdisasm hides for some chips.
//   words: the distinct instructions of the kernels in libraries or cubins,
//     without their scheduling controls.
//   blame: how many of those kernels have one of the given instructions.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/fatbin.h"
#include "runtime/cubin/image.h"
#include "runtime/cubin/sass.h"

namespace heddle::cubin {
namespace {

std::string String(absl::string_view text) {
  return {text.data(), text.size()};
}

bool IsNull(const SassOperand& operand) {
  switch (operand.kind) {
    case SassOperandKind::kRegister:
      return operand.index == kSassRegisterZero;
    case SassOperandKind::kUniformRegister:
      return operand.index == kSassUniformRegisterZero;
    case SassOperandKind::kPredicate:
    case SassOperandKind::kUniformPredicate:
      return operand.index == kSassPredicateTrue;
    case SassOperandKind::kImmediate:
      return operand.address && operand.value == 0;
    default:
      return false;
  }
}

absl::string_view Prefix(SassOperandKind kind) {
  switch (kind) {
    case SassOperandKind::kRegister:
      return "R";
    case SassOperandKind::kUniformRegister:
      return "UR";
    case SassOperandKind::kPredicate:
      return "P";
    case SassOperandKind::kUniformPredicate:
      return "UP";
    case SassOperandKind::kConvergenceBarrier:
      return "B";
    default:
      return "";
  }
}

std::string Text(const SassOperand& operand) {
  switch (operand.kind) {
    case SassOperandKind::kPredicateSet:
      return "PR";
    case SassOperandKind::kUniformPredicateSet:
      return "UPR";
    case SassOperandKind::kImmediate:
      return absl::StrCat(
          "0x", absl::Hex(static_cast<uint64_t>(operand.value) & 0xffffffff));
    case SassOperandKind::kConstant:
      return absl::StrCat(
          operand.bindless ? "cx" : absl::StrCat("c", operand.bank), ":",
          absl::Hex(static_cast<uint64_t>(operand.value) & 0xffffffff));
    case SassOperandKind::kSpecialRegister:
      return absl::StrCat("SR", operand.value);
    case SassOperandKind::kTarget:
      return absl::StrCat("T", operand.value);
    default:
      return absl::StrCat(operand.negated ? "!" : "", Prefix(operand.kind),
                          operand.index);
  }
}

void Print(const SassInstruction& instruction) {
  std::string guard;
  if (instruction.guard != kSassPredicateTrue || instruction.guard_negated) {
    const std::string number =
        instruction.guard == kSassPredicateTrue
            ? "T"
            : absl::StrCat(static_cast<int>(instruction.guard));
    guard = absl::StrCat("@", instruction.guard_negated ? "!" : "",
                         instruction.guard_uniform ? "UP" : "P", number);
  }
  std::vector<std::string> texts;
  std::array<std::set<std::string>, 2> registers;  // read, written
  if (instruction.guard != kSassPredicateTrue) {
    registers[0].insert(absl::StrCat(instruction.guard_uniform ? "UP" : "P",
                                     instruction.guard));
  }
  for (const SassOperand& operand : instruction.operands()) {
    if (IsNull(operand)) continue;
    const auto at =
        static_cast<uint8_t>(&operand - instruction.operands().data());
    const bool descriptor = std::any_of(
        instruction.accesses().begin(), instruction.accesses().end(),
        [&](const SassMemory& memory) {
          return memory.descriptor_operand == at;
        });
    texts.push_back(absl::StrCat(descriptor ? "?" : "", Text(operand)));
    if (Prefix(operand.kind).empty() ||
        operand.kind == SassOperandKind::kConvergenceBarrier) {
      continue;
    }
    for (int i = 0; i < operand.count; ++i) {
      registers[operand.access == SassAccess::kWrite ? 1 : 0].insert(
          absl::StrCat(Prefix(operand.kind), operand.index + i));
    }
  }
  std::printf("%s\t%s\t%s\t%s\t%s\t%s\n", guard.c_str(),
              String(instruction.mnemonic).c_str(),
              String(SassClassName(instruction.instruction_class)).c_str(),
              absl::StrJoin(texts, " ").c_str(),
              absl::StrJoin(registers[0], " ").c_str(),
              absl::StrJoin(registers[1], " ").c_str());
}

uint32_t Number(const std::string& text) {
  return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

int Decode(uint32_t arch) {
  uint64_t words[2];
  for (uint64_t offset = 0; std::fread(words, sizeof(words), 1, stdin) == 1;
       offset += sizeof(words)) {
    Print(DecodeSass(words[0], words[1], offset, arch));
  }
  return 0;
}

// Which kernels to look at: those for `arch` in `files`, all or about `kernels`
// of them.
struct Selection {
  uint32_t arch = 0;
  uint32_t kernels = 0;
  std::vector<std::string> files;
};

using Word = std::array<uint64_t, 2>;

// An instruction with scheduling controls that suit every one.
Word WithoutControls(uint64_t low, uint64_t high) {
  constexpr uint64_t kControlBits = ~uint64_t{0} << 41;
  constexpr uint64_t kPlain = uint64_t{0x000fe2} << 40;
  return {low, (high & ~kControlBits) | kPlain};
}

// Calls `visit` with the code of every kernel and device function in `image`.
void ForEachText(Bytes image, const std::function<void(Bytes)>& visit) {
  const absl::StatusOr<ElfView> elf = ElfView::Create(image);
  if (!elf.ok()) return;
  for (const ElfSection& section : elf->sections()) {
    if (section.header.sh_type != SHT_PROGBITS ||
        (section.header.sh_flags & SHF_EXECINSTR) == 0) {
      continue;
    }
    visit(section.data);
  }
}

// Calls `visit` with every cubin for `arch` in `file`, which is one, or a
// library with fatbins in it.
void ForEachCubin(const std::string& path, uint32_t arch,
                  const std::function<void(Bytes)>& visit) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<uint8_t> file(std::istreambuf_iterator<char>(stream), {});
  if (file.empty()) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  if (ParseCubin(file).ok()) {
    visit(file);
    return;
  }
  Bytes rest = file;
  const absl::StatusOr<ElfView> elf = ElfView::Create(file);
  if (elf.ok()) {
    const ElfSection* section = elf->Find(".nv_fatbin");
    rest = section == nullptr ? Bytes() : section->data;
  }
  while (rest.size() >= kFatbinHeaderSize) {
    const absl::StatusOr<ImageView> image = IdentifyImage(rest);
    if (!image.ok()) {  // padding between containers
      rest.remove_prefix(8);
      continue;
    }
    const absl::StatusOr<std::vector<FatbinEntry>> entries =
        FatbinEntries(image->bytes);
    if (entries.ok()) {
      for (const FatbinEntry& entry : *entries) {
        if (entry.kind != FatbinEntryKind::kElf || entry.arch != arch) continue;
        const absl::StatusOr<std::vector<uint8_t>> content =
            FatbinEntryContent(entry);
        if (content.ok()) visit(*content);
      }
    }
    rest.remove_prefix(image->bytes.size());
  }
}

void ForEachKernel(const Selection& selection,
                   const std::function<void(Bytes)>& visit) {
  uint64_t total = 0;
  const auto each = [&](const std::function<void(Bytes)>& call) {
    for (const std::string& path : selection.files) {
      ForEachCubin(path, selection.arch,
                   [&](Bytes image) { ForEachText(image, call); });
    }
  };
  uint64_t step = 1;
  if (selection.kernels != 0) {
    each([&](Bytes) { ++total; });
    step = std::max<uint64_t>(1, total / selection.kernels);
  }
  uint64_t at = 0;
  each([&](Bytes code) {
    if (at++ % step == 0) visit(code);
  });
}

int Words(const Selection& selection) {
  absl::flat_hash_set<Word> seen;
  uint64_t kernels = 0;
  uint64_t instructions = 0;
  ForEachKernel(selection, [&](Bytes code) {
    ++kernels;
    Word word;
    for (uint64_t at = 0; ReadAt(code, at, &word); at += sizeof(word)) {
      ++instructions;
      seen.insert(WithoutControls(word[0], word[1]));
    }
  });
  // In order, so that two runs see every branch at the same offset.
  std::vector<Word> sorted(seen.begin(), seen.end());
  std::sort(sorted.begin(), sorted.end());
  std::fwrite(sorted.data(), sizeof(Word), sorted.size(), stdout);
  std::fprintf(stderr, "{\"kernels\": %llu, \"instructions\": %llu}\n",
               static_cast<unsigned long long>(kernels),
               static_cast<unsigned long long>(instructions));
  return 0;
}

// How many kernels have one of the instructions in the file `bad`.
int Blame(const Selection& selection, const std::string& bad) {
  absl::flat_hash_set<Word> words;
  std::ifstream stream(bad, std::ios::binary);
  Word word;
  while (stream.read(reinterpret_cast<char*>(word.data()), sizeof(word))) {
    words.insert(word);
  }
  uint64_t kernels = 0;
  ForEachKernel(selection, [&](Bytes code) {
    Word at_hand;
    for (uint64_t at = 0; ReadAt(code, at, &at_hand); at += sizeof(at_hand)) {
      if (!words.contains(WithoutControls(at_hand[0], at_hand[1]))) continue;
      ++kernels;
      return;
    }
  });
  std::printf("{\"kernels\": %llu}\n",
              static_cast<unsigned long long>(kernels));
  return 0;
}

}  // namespace
}  // namespace heddle::cubin

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 2 && args[0] == "decode") {
    return heddle::cubin::Decode(heddle::cubin::Number(args[1]));
  }
  if (args.size() >= 4 && args[0] == "words") {
    return heddle::cubin::Words(
        {heddle::cubin::Number(args[1]), heddle::cubin::Number(args[2]),
         std::vector<std::string>(args.begin() + 3, args.end())});
  }
  if (args.size() >= 5 && args[0] == "blame") {
    return heddle::cubin::Blame(
        {heddle::cubin::Number(args[1]), heddle::cubin::Number(args[2]),
         std::vector<std::string>(args.begin() + 4, args.end())},
        args[3]);
  }
  std::fprintf(stderr,
               "usage: sass_dump decode ARCH < INSTRUCTIONS\n"
               "       sass_dump words ARCH KERNELS FILE... > INSTRUCTIONS\n"
               "       sass_dump blame ARCH KERNELS INSTRUCTIONS FILE...\n");
  return 2;
}
