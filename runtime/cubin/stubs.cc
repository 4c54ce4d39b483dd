// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/stubs.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/elf_view.h"

// stub_images.S: per template cubin a u64 size and the cubin, each aligned to 8
// bytes; a size of 0 ends the list.
extern "C" const uint8_t heddle_stub_images[];

namespace heddle::cubin {
namespace {

constexpr uint32_t kFirstArch = 90;

// The PREEXIT and ACQBULK instructions of kernel `name`. Fails if they are not
// those expected, or if something else stands between them: then nvcc has made
// of the template what this code does not understand.
absl::Status Harvest(const ElfView& elf, const Cubin& cubin,
                     absl::string_view name,
                     std::initializer_list<uint32_t> expected,
                     std::vector<Instruction>* out, Instruction* nop) {
  const Kernel* kernel = cubin.FindKernel(name);
  if (kernel == nullptr) {
    return absl::InternalError(absl::StrCat("stub template lacks ", name));
  }
  const Bytes text = elf.sections()[kernel->text_section].data;
  std::vector<uint32_t> found;
  bool apart = false;
  Instruction instruction;
  for (uint64_t at = 0; ReadAt(text, at, &instruction);
       at += kInstructionBytes) {
    const uint32_t opcode = Opcode(instruction);
    if (opcode == kOpcodeNop) *nop = instruction;
    if (opcode == kOpcodeAcqbulk || opcode == kOpcodePreexit) {
      if (apart) return absl::InternalError("stub template is not contiguous");
      out->push_back(instruction);
      found.push_back(opcode);
    } else if (!out->empty()) {
      apart = true;
    }
  }
  if (!std::equal(found.begin(), found.end(), expected.begin(),
                  expected.end())) {
    return absl::InternalError(
        absl::StrCat("unexpected instructions in stub template ", name));
  }
  return absl::OkStatus();
}

std::vector<Stubs> HarvestAll() {
  std::vector<Stubs> all;
  const uint8_t* at = heddle_stub_images;
  while (true) {
    uint64_t size;
    std::memcpy(&size, at, sizeof(size));
    if (size == 0) return all;
    at += sizeof(size);
    absl::StatusOr<Stubs> stubs = HarvestStubs(absl::MakeConstSpan(at, size));
    // One that cannot be read counts as not built; a test requires all.
    if (stubs.ok()) all.push_back(*std::move(stubs));
    at += (size + 7) / 8 * 8;
  }
}

const std::vector<Stubs>& AllStubs() {
  static const auto* all = new std::vector<Stubs>(HarvestAll());
  return *all;
}

}  // namespace

const std::vector<Instruction>& Stubs::For(Prologue prologue) const {
  static const auto* nothing = new std::vector<Instruction>();
  switch (prologue) {
    case Prologue::kNone:
      break;
    case Prologue::kWait:
      return wait;
    case Prologue::kTriggerWait:
      return trigger_wait;
    case Prologue::kWaitTrigger:
      return wait_trigger;
  }
  return *nothing;
}

absl::StatusOr<Stubs> HarvestStubs(absl::Span<const uint8_t> cubin) {
  absl::StatusOr<Cubin> parsed = ParseCubin(cubin);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<ElfView> elf = ElfView::Create(cubin);
  if (!elf.ok()) return elf.status();
  Stubs stubs;
  stubs.arch = parsed->arch;
  const struct {
    absl::string_view name;
    std::initializer_list<uint32_t> opcodes;
    std::vector<Instruction>* out;
  } templates[] = {
      {"heddle_wait", {kOpcodeAcqbulk}, &stubs.wait},
      {"heddle_trigger_wait",
       {kOpcodePreexit, kOpcodeAcqbulk},
       &stubs.trigger_wait},
      {"heddle_wait_trigger",
       {kOpcodeAcqbulk, kOpcodePreexit},
       &stubs.wait_trigger},
  };
  for (const auto& [name, opcodes, out] : templates) {
    absl::Status status =
        Harvest(*elf, *parsed, name, opcodes, out, &stubs.nop);
    if (!status.ok()) return status;
  }
  if (Opcode(stubs.nop) != kOpcodeNop) {
    return absl::InternalError("stub template has no padding");
  }
  return stubs;
}

absl::StatusOr<const Stubs*> FindStubs(uint32_t arch) {
  if (arch < kFirstArch) {
    return absl::UnimplementedError(
        absl::StrCat("sm_", arch,
                     " has no griddepcontrol instructions: only sm_90 and "
                     "later can be patched"));
  }
  const Stubs* best = nullptr;
  for (const Stubs& stubs : AllStubs()) {
    if (stubs.arch / 10 != arch / 10 || stubs.arch > arch) continue;
    if (best == nullptr || stubs.arch > best->arch) best = &stubs;
  }
  if (best == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("this build has no patch code for sm_", arch,
                     ": its nvcc does not know that chip"));
  }
  return best;
}

std::string StubsVersion() {
  std::vector<Instruction> code;
  for (const Stubs& stubs : AllStubs()) {
    code.push_back(Instruction{stubs.arch, 0});
    for (const auto* part :
         {&stubs.wait, &stubs.trigger_wait, &stubs.wait_trigger}) {
      code.insert(code.end(), part->begin(), part->end());
    }
    code.push_back(stubs.nop);
  }
  return absl::StrCat(
      absl::Hex(XXH3_64bits(code.data(), code.size() * sizeof(Instruction)),
                absl::kZeroPad16));
}

}  // namespace heddle::cubin
