// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/kernel_analysis.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/access/control_flow.h"
#include "runtime/access/fixpoint.h"

namespace heddle::access {
namespace {

using cubin::SassClass;
using cubin::SassInstruction;
using cubin::SassMemory;
using cubin::SassMemoryKind;
using cubin::SassSpace;

constexpr Wide kFar = Wide{1} << 50;

Mode ModeOf(SassMemoryKind kind) {
  switch (kind) {
    case SassMemoryKind::kStore:
      return Mode::kWrite;
    case SassMemoryKind::kReduction:
    case SassMemoryKind::kAtomic:
      return Mode::kAtomic;
    case SassMemoryKind::kLoad:
    case SassMemoryKind::kPrefetch:
      break;
  }
  return Mode::kRead;
}

std::vector<CodeInstruction> Decode(const KernelCodeView& code) {
  std::vector<CodeInstruction> result;
  const size_t count = code.text.size() / cubin::kSassInstructionBytes;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t offset = i * cubin::kSassInstructionBytes;
    uint64_t words[2];
    std::memcpy(words, code.text.data() + offset, sizeof(words));
    CodeInstruction instruction;
    instruction.decoded =
        cubin::DecodeSass(words[0], words[1], offset, code.arch);
    instruction.operation =
        cubin::InterpretSass(words[0], words[1], instruction.decoded);
    result.push_back(instruction);
  }
  return result;
}

// Numbers at which growing ranges come to rest: what the code compares with.
std::vector<int64_t> Thresholds(absl::Span<const CodeInstruction> code,
                                const LaunchValues& launch) {
  std::vector<int64_t> values = {0, 1, -1};
  const auto add = [&values](int64_t value) {
    for (const int64_t near : {value - 1, value, value + 1}) {
      values.push_back(near);
      values.push_back(-near);
    }
  };
  for (const CodeInstruction& instruction : code) {
    for (const cubin::SassSource& source : instruction.operation.source) {
      if (source.kind == cubin::SassSource::Kind::kImmediate) {
        add(static_cast<int32_t>(source.value));
      }
    }
  }
  for (size_t at = 0; at + 4 <= launch.params.size(); at += 4) {
    int32_t value;
    std::memcpy(&value, launch.params.data() + at, sizeof(value));
    add(value);
  }
  for (int axis = 0; axis < 3; ++axis) {
    add(launch.grid[axis]);
    add(launch.block[axis]);
  }
  for (const Range& range : {kSigned32, kUnsigned32}) {
    values.push_back(static_cast<int64_t>(range.lo));
    values.push_back(static_cast<int64_t>(range.hi));
  }
  return values;
}

class Collector {
 public:
  Collector(absl::Span<const CodeInstruction> code, Interpreter* interpreter,
            Domain* domain, KernelFootprint* result)
      : code_(code),
        interpreter_(*interpreter),
        domain_(*domain),
        result_(*result) {}

  void Visit(uint32_t index, uint32_t place, const State& state) {
    const SassInstruction& instruction = code_[index].decoded;
    AddConstants(index, instruction);
    bool looks = false;
    for (const SassMemory& memory : instruction.accesses()) {
      looks |= Counts(instruction, memory);
    }
    if (!looks) return;
    State here = interpreter_.When(index, true, state);
    if (!here.reachable) return;
    for (const SassMemory& memory : instruction.accesses()) {
      if (Counts(instruction, memory)) {
        Add(index, place, instruction, memory, &here);
      }
    }
  }

 private:
  // Variables of the module in constant memory, which the host may write: bank
  // 3, and what is reached by descriptor. The others are the driver's (0), the
  // compiler's (2) and addresses (4).
  void AddConstants(uint32_t index, const SassInstruction& instruction) {
    if (reads_constants_) return;
    for (const cubin::SassOperand& operand : instruction.operands()) {
      if (operand.kind != cubin::SassOperandKind::kConstant ||
          (!operand.bindless &&
           (operand.bank == 0 || operand.bank == 2 || operand.bank == 4))) {
        continue;
      }
      reads_constants_ = true;
      Footprint footprint;
      footprint.offset = index * cubin::kSassInstructionBytes;
      footprint.name = std::string(instruction.mnemonic);
      footprint.origins = kFromVariable;
      footprint.bytes = 4;
      result_.footprints.push_back(std::move(footprint));
      return;
    }
  }

  static bool Counts(const SassInstruction& instruction,
                     const SassMemory& memory) {
    if (memory.kind == SassMemoryKind::kPrefetch) return false;
    return memory.space == SassSpace::kGlobal ||
           memory.space == SassSpace::kGeneric ||
           (memory.space == SassSpace::kNone &&
            instruction.instruction_class == SassClass::kBulk);
  }

  void Add(uint32_t index, uint32_t place, const SassInstruction& instruction,
           const SassMemory& memory, State* state) {
    const Universe& universe = domain_.universe();
    Footprint footprint;
    footprint.offset = index * cubin::kSassInstructionBytes;
    footprint.name = std::string(instruction.mnemonic);
    footprint.mode = ModeOf(memory.kind);
    footprint.bytes = memory.bytes;
    footprint.generic = memory.space == SassSpace::kGeneric;
    const Form address =
        universe.form(interpreter_.AddressOf(index, place, memory, state));
    footprint.origins = universe.OriginsOf(address);
    if (absl::StartsWith(footprint.name, "UTMA")) {
      footprint.tensor_map = TensorMapOf(address);
      result_.footprints.push_back(std::move(footprint));
      return;
    }
    Form rest = address;
    for (const Term& term : address.terms) {
      const Symbol& symbol = universe.symbol(term.symbol);
      if (symbol.kind != SymbolKind::kPointer) continue;
      if (footprint.pointer >= 0 || term.coefficient != 1) {
        footprint.pointer = -1;
        result_.footprints.push_back(std::move(footprint));
        return;
      }
      footprint.pointer = symbol.pointer;
      rest = heddle::access::Add(
          rest, universe.form(domain_.universe().Of(term.symbol)), -1);
    }
    const Range range = universe.RangeOf(rest, state->bounds);
    footprint.bounded =
        range.Within(-kFar, kFar) && footprint.bytes != 0 && !range.empty();
    if (footprint.bounded) {
      footprint.lo = static_cast<int64_t>(range.lo);
      footprint.hi = static_cast<int64_t>(range.hi);
      AddTerms(rest, *state, &footprint);
    }
    result_.footprints.push_back(std::move(footprint));
  }

  void AddTerms(const Form& rest, const State& state, Footprint* footprint) {
    Universe& universe = domain_.universe();
    footprint->constant = rest.constant;
    for (const Term& term : rest.terms) {
      const Symbol& symbol = universe.symbol(term.symbol);
      const Range range = domain_.RangeOf(universe.Of(term.symbol), state);
      if (!range.Within(-kFar, kFar)) {
        footprint->terms.clear();
        return;
      }
      footprint->terms.push_back({symbol.kind, symbol.axis, term.coefficient,
                                  static_cast<int64_t>(range.lo),
                                  static_cast<int64_t>(range.hi)});
    }
  }

  // The offset in the parameter block of a tensor map.
  int TensorMapOf(const Form& address) const {
    const Universe& universe = domain_.universe();
    if (address.terms.size() != 1 || address.terms[0].coefficient != 1 ||
        universe.symbol(address.terms[0].symbol).kind !=
            SymbolKind::kParameters) {
      return -2;
    }
    return address.constant >= 0 && address.constant < (1 << 16)
               ? static_cast<int>(address.constant)
               : -2;
  }

  absl::Span<const CodeInstruction> code_;
  Interpreter& interpreter_;
  Domain& domain_;
  KernelFootprint& result_;
  bool reads_constants_ = false;
};

}  // namespace

KernelFootprint AnalyzeKernel(const KernelCodeView& code,
                              const LaunchValues& launch) {
  KernelFootprint result;
  if (!cubin::SassSupports(code.arch)) {
    result.unknown =
        absl::StrCat("the machine code of sm_", code.arch, " cannot be read");
    return result;
  }
  const std::vector<CodeInstruction> instructions = Decode(code);
  result.instructions = static_cast<uint32_t>(instructions.size());
  const ControlFlow flow =
      BuildControlFlow(instructions, code.branch_targets, code.fatal_calls);
  if (!flow.unknown.empty()) {
    result.unknown = flow.unknown;
    return result;
  }
  Domain domain;
  domain.SetThresholds(Thresholds(instructions, launch));
  Interpreter interpreter(launch, instructions, &domain);
  Fixpoint fixpoint(flow, &interpreter, &domain);
  const bool settled = fixpoint.Run();
  result.sweeps = fixpoint.sweeps();
  if (!settled) {
    result.unknown = "the analysis of its loops did not come to an end";
    return result;
  }
  Collector collector(instructions, &interpreter, &domain, &result);
  fixpoint.Visit([&collector](uint32_t index, uint32_t place, State* state) {
    collector.Visit(index, place, *state);
  });
  return result;
}

}  // namespace heddle::access
