// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/interpreter.h"

#include <algorithm>
#include <cstring>

namespace heddle::access {
namespace {

using cubin::SassAccess;
using cubin::SassClass;
using cubin::SassInstruction;
using cubin::SassMemoryKind;
using cubin::SassOp;
using cubin::SassOperand;
using cubin::SassOperandKind;
using cubin::SassOperation;
using cubin::SassPredicateUse;

// Places of symbols that do not belong to an instruction alone.
constexpr uint32_t kConstantPlace = 0xf0000000;
constexpr uint32_t kGuardPlace = 0x40000000;
constexpr uint32_t kAddressPlace = 0x20000000;
// Numbers of symbols at an instruction: results that are not modelled.
constexpr uint32_t kResultNumber = 256;

// Where sm_90 has the generic address of the parameter block, and of the bank
// that the block is in. The second is not what nvcc uses, but the kernels of
// cuBLASLt: their tensor maps lie where it says.
// On other chips something else is there.
constexpr int64_t kParametersOfSm90 = 0x210;
constexpr int64_t kParametersAddress = 0x198;
constexpr int64_t kBankAddress = 0xc0;
constexpr uint32_t kMostParameters = 0x8000;  // bytes, with what is before them
constexpr uint64_t kDriverParams = 0x18;      // block and grid sizes end here

// Values of the floating-point and matrix units are no part of addresses: what
// is known of one of them is not worth a symbol.
bool IsAddressFree(SassClass instruction_class) {
  return instruction_class == SassClass::kFloat ||
         instruction_class == SassClass::kTensor ||
         instruction_class == SassClass::kConversion;
}

// Registers that were written under guards and are told apart.
constexpr size_t kMostGuarded = 96;

bool Apart(const Atom& a, const Atom& b) {
  if (a.unequal && b.unequal) return false;
  if (!a.unequal && !b.unequal) {
    return a.range.hi < b.range.lo || b.range.hi < a.range.lo;
  }
  const Atom& one = a.unequal ? b : a;
  const Atom& rest = a.unequal ? a : b;
  return one.range.lo == rest.range.lo && one.range.hi == rest.range.lo;
}

// Whether the condition of a truth is both necessary and sufficient: when it
// is false, the opposite holds.
bool IsExactly(const Truth& truth, Atom* condition) {
  if (truth.when_true.size() != 1 || truth.when_false.size() != 1 ||
      truth.when_true[0].form != truth.when_false[0].form ||
      !Apart(truth.when_true[0], truth.when_false[0])) {
    return false;
  }
  *condition = truth.when_true[0];
  return true;
}

bool Implies(const Atom& atom, const Atom& condition) {
  if (atom.form != condition.form) return false;
  if (condition.unequal) {
    return atom.unequal ? atom.range.lo == condition.range.lo
                        : condition.range.lo < atom.range.lo ||
                              condition.range.lo > atom.range.hi;
  }
  return !atom.unequal && atom.range.lo >= condition.range.lo &&
         atom.range.hi <= condition.range.hi;
}

}  // namespace

Interpreter::Interpreter(const LaunchValues& launch,
                         absl::Span<const CodeInstruction> code, Domain* domain)
    : launch_(launch),
      code_(code),
      domain_(*domain),
      universe_(domain->universe()) {
  for (uint8_t axis = 0; axis < 3; ++axis) {
    Symbol thread;
    thread.kind = SymbolKind::kThread;
    thread.axis = axis;
    thread.range = {0, Wide{launch.block[axis]} - 1};
    // Threads are numbered along x first.
    uint64_t row = 1;
    for (int lower = 0; lower < axis; ++lower) row *= launch.block[lower];
    thread.varies_in_warp = axis == 0 || row % 32 != 0;
    thread_[axis] = universe_.NewSymbol(thread);
    Symbol block;
    block.kind = SymbolKind::kBlock;
    block.axis = axis;
    block.range = {0, Wide{launch.grid[axis]} - 1};
    block.varies_in_warp = false;
    block_[axis] = universe_.NewSymbol(block);
  }
  Symbol parameters;
  parameters.kind = SymbolKind::kParameters;
  parameters.range = {Wide{1} << 16, (Wide{1} << 49) - 1};
  parameters.origins = kFromDriver;
  parameters.varies_in_warp = false;
  parameters_ = universe_.NewSymbol(parameters);
  warp_is_row_ = launch.block[0] % 32 == 0 ||
                 (launch.block[1] == 1 && launch.block[2] == 1);
  for (size_t i = 0; i < launch.pointers.size(); ++i) {
    Symbol pointer;
    pointer.kind = SymbolKind::kPointer;
    pointer.pointer = static_cast<uint8_t>(i);
    pointer.residue = launch.params[launch.pointers[i]];
    // Addresses of unified memory have at most 49 bits (CUDA C++ Programming
    // Guide, compute capabilities); page 0 is never mapped.
    pointer.range = {Wide{1} << 16, (Wide{1} << 49) - 1};
    pointer.origins = uint64_t{1} << i;
    pointer.varies_in_warp = false;
    pointers_.push_back(universe_.NewSymbol(pointer));
  }
}

State Interpreter::Entry() {
  State state;
  state.reachable = true;
  for (int slot = 0; slot < kSlots; ++slot) {
    state.values[slot] =
        IsZeroSlot(slot) ? domain_.ConstantWord(0) : domain_.Top(kFromMemory);
  }
  return state;
}

Truth Interpreter::TruthOf(uint8_t index, bool uniform, bool negated,
                           const State& state) const {
  Truth truth;
  if (index == cubin::kSassPredicateTrue) {
    truth.known = 1;
  } else {
    truth = state.truths[(uniform ? kPredicates : 0) + index];
  }
  if (negated) {
    if (truth.known >= 0) truth.known = static_cast<int8_t>(1 - truth.known);
    std::swap(truth.when_true, truth.when_false);
    truth.low = nullptr;
  }
  return truth;
}

Truth Interpreter::TruthOf(const SassPredicateUse& use,
                           const State& state) const {
  return TruthOf(use.index, use.uniform, use.negated, state);
}

State Interpreter::When(uint32_t index, bool taken, const State& state) const {
  const SassInstruction& code = code_[index].decoded;
  const Truth guard =
      TruthOf(code.guard, code.guard_uniform, code.guard_negated, state);
  State result = state;
  if (guard.known >= 0) {
    result.reachable &= (guard.known == 1) == taken;
    return result;
  }
  domain_.Assume(taken ? guard.when_true : guard.when_false, &result);
  UseGuarded(code, taken, guard, &result);
  return result;
}

void Interpreter::UseGuarded(const SassInstruction& code, bool taken,
                             const Truth& guard, State* state) const {
  const int predicate = (code.guard_uniform ? kPredicates : 0) + code.guard;
  const Atoms& atoms = taken ? guard.when_true : guard.when_false;
  for (const Guarded& guarded : state->guarded) {
    if ((guarded.predicate == predicate &&
         (guarded.negated == code.guard_negated) == taken) ||
        (guarded.has_condition &&
         std::any_of(atoms.begin(), atoms.end(), [&](const Atom& atom) {
           return Implies(atom, guarded.condition);
         }))) {
      state->values[guarded.slot] = guarded.value;
    }
  }
}

void Interpreter::UpdateGuarded(const SassInstruction& code,
                                const Truth& guard_truth, const State& then,
                                State* state) const {
  const bool always =
      code.guard == cubin::kSassPredicateTrue && !code.guard_negated;
  const int guard = (code.guard_uniform ? kPredicates : 0) + code.guard;
  std::vector<Guarded>& guarded = state->guarded;
  const auto drop = [&guarded](const auto& which) {
    guarded.erase(std::remove_if(guarded.begin(), guarded.end(), which),
                  guarded.end());
  };
  // A predicate that is written says nothing of the threads that it was true
  // for; the condition that it came from still may.
  const auto forget = [&](int from, int to) {
    for (Guarded& entry : guarded) {
      if (entry.predicate >= from && entry.predicate <= to) {
        entry.predicate = Guarded::kNoPredicate;
      }
    }
    drop([](const Guarded& entry) {
      return entry.predicate == Guarded::kNoPredicate && !entry.has_condition;
    });
  };
  Guarded made;
  made.predicate = static_cast<uint8_t>(guard);
  made.negated = code.guard_negated;
  // `guard_truth` is that of the guard, negation included.
  made.has_condition = IsExactly(guard_truth, &made.condition);
  bool guard_written = false;
  for (const SassOperand& operand : code.operands()) {
    if (operand.access != SassAccess::kWrite) continue;
    int first = operand.index;
    int last = first + operand.count - 1;
    switch (operand.kind) {
      case SassOperandKind::kUniformRegister:
      case SassOperandKind::kRegister: {
        const bool uniform = operand.kind == SassOperandKind::kUniformRegister;
        first = SlotOf(uniform, first);
        last = SlotOf(uniform, last);
        drop([&](const Guarded& entry) {
          return entry.slot >= first && entry.slot <= last;
        });
        if (always) break;
        for (int slot = first; slot <= last && slot < kSlots; ++slot) {
          if (IsZeroSlot(slot)) break;
          made.slot = static_cast<uint16_t>(slot);
          made.value = then.values[slot];
          if (guarded.size() >= kMostGuarded) guarded.erase(guarded.begin());
          guarded.push_back(made);
        }
        break;
      }
      case SassOperandKind::kPredicateSet:
      case SassOperandKind::kUniformPredicateSet:
      case SassOperandKind::kPredicate:
      case SassOperandKind::kUniformPredicate: {
        const bool all = operand.kind == SassOperandKind::kPredicateSet ||
                         operand.kind == SassOperandKind::kUniformPredicateSet;
        const bool uniform =
            operand.kind == SassOperandKind::kUniformPredicate ||
            operand.kind == SassOperandKind::kUniformPredicateSet;
        const int base = uniform ? kPredicates : 0;
        const int from = all ? base : base + first;
        const int to = all ? base + kPredicates - 1 : base + first;
        forget(from, to);
        guard_written |= guard >= from && guard <= to;
        break;
      }
      default:
        break;
    }
  }
  if (guard_written) {
    forget(guard, guard);
  }
}

State Interpreter::WhenTaken(uint32_t index, bool taken,
                             const State& state) const {
  const SassInstruction& code = code_[index].decoded;
  // Beside the guard: all of them have to hold. Of several that are not known
  // the first stands for all when it is taken, and for none when not.
  Truth second;
  second.known = 1;
  bool several = false;
  for (const SassOperand& operand : code.operands()) {
    if (operand.access != SassAccess::kRead ||
        (operand.kind != SassOperandKind::kPredicate &&
         operand.kind != SassOperandKind::kUniformPredicate)) {
      continue;
    }
    const Truth truth = TruthOf(
        operand.index, operand.kind == SassOperandKind::kUniformPredicate,
        operand.negated, state);
    if (truth.known == 1 || second.known == 0) continue;
    several |= second.known < 0 && truth.known < 0;
    if (second.known == 1 || truth.known == 0) second = truth;
  }
  const Truth guard =
      TruthOf(code.guard, code.guard_uniform, code.guard_negated, state);
  if (second.known == 1) return When(index, taken, state);
  if (guard.known == 1) {
    State result = state;
    if (second.known >= 0) {
      result.reachable &= (second.known == 1) == taken;
    } else if (taken || !several) {
      domain_.Assume(taken ? second.when_true : second.when_false, &result);
    }
    return result;
  }
  State result = state;
  if (taken) {
    if (guard.known == 0 || second.known == 0) result.reachable = false;
    domain_.Assume(guard.when_true, &result);
    domain_.Assume(second.when_true, &result);
  }
  return result;
}

void Interpreter::Step(uint32_t index, uint32_t place, State* state) {
  if (!state->reachable) return;
  const CodeInstruction& instruction = code_[index];
  const SassInstruction& code = instruction.decoded;
  if (TruthOf(code.guard, code.guard_uniform, code.guard_negated, *state)
          .known == 0) {
    return;
  }
  // Before operands are read: they may be known by these symbols, and so may
  // the guard.
  domain_.ForgetMadeAt(place, state);
  const Truth guard =
      TruthOf(code.guard, code.guard_uniform, code.guard_negated, *state);
  if (guard.known == 1) {
    Where where{place, 0, state};
    Apply(instruction, &where);
    if (!state->guarded.empty()) UpdateGuarded(code, guard, *state, state);
    return;
  }
  State otherwise = When(index, false, *state);
  State then = When(index, true, *state);
  if (then.reachable) {
    Where where{place, 0, &then};
    Apply(instruction, &where);
  }
  // Of the others, what they hold under either value of the guard stays as it
  // was known; only the bounds of one side are not those of both.
  State both = then;
  domain_.JoinInto(otherwise, place | kGuardPlace, &both);
  if (!both.reachable) {
    *state = std::move(both);
    return;
  }
  // The meeting may have given symbols a new meaning, of which these know
  // nothing yet.
  domain_.ForgetMadeAt(place | kGuardPlace, state);
  domain_.ForgetMadeAt(place | kGuardPlace, &then);
  both.guarded = state->guarded;
  UpdateGuarded(code, guard, then, &both);
  *state = std::move(both);
}

void Interpreter::Apply(const CodeInstruction& instruction, Where* where) {
  const SassOperation& op = instruction.operation;
  if (op.op == SassOp::kOpaque) {
    Opaque(instruction, where);
    return;
  }
  Results results = Compute(op, where);
  // Whatever Compute does not say stays open.
  State& state = *where->state;
  for (const SassOperand& operand : instruction.decoded.operands()) {
    if (operand.access != SassAccess::kWrite) continue;
    const bool uniform_predicate =
        operand.kind == SassOperandKind::kUniformPredicate;
    if (operand.kind == SassOperandKind::kPredicate || uniform_predicate) {
      if (operand.index != cubin::kSassPredicateTrue) {
        state.truths[(uniform_predicate ? kPredicates : 0) + operand.index] =
            Truth();
      }
    } else if (operand.kind == SassOperandKind::kPredicateSet ||
               operand.kind == SassOperandKind::kUniformPredicateSet) {
      const int first =
          operand.kind == SassOperandKind::kPredicateSet ? 0 : kPredicates;
      for (int i = 0; i < kPredicates; ++i) {
        if (results.restores == 0) {
          state.truths[first + i] = Truth();
        } else if ((results.restores >> i & 1) != 0) {
          state.truths[first + i] = results.restored[i];
        }
      }
    }
  }
  for (size_t i = 0; i < op.destination_predicate.size(); ++i) {
    const SassPredicateUse& use = op.destination_predicate[i];
    if (use.index == cubin::kSassPredicateTrue) continue;
    state.truths[(use.uniform ? kPredicates : 0) + use.index] =
        results.truth[i];
  }
  const int slot = SlotOf(op.uniform, op.destination);
  if (IsZeroSlot(slot)) return;
  for (int word = 0; word < op.destination_words; ++word) {
    if (IsZeroSlot(slot + word)) break;
    state.values[slot + word] = word < results.values
                                    ? results.value[word]
                                    : domain_.Top(OriginsOf(op, where));
  }
}

Origins Interpreter::OriginsOf(const SassOperation& op, Where* where) {
  Origins origins = 0;
  for (const Source& source : op.source) {
    for (int word = 0; word < source.words; ++word) {
      origins |= domain_.OriginsOf(Raw(source, word, where));
    }
  }
  return origins;
}

void Interpreter::Opaque(const CodeInstruction& instruction, Where* where) {
  const SassInstruction& code = instruction.decoded;
  State& state = *where->state;
  // An instruction that is not known may write anything.
  if (!code.known()) {
    for (int slot = 0; slot < kSlots; ++slot) {
      if (!IsZeroSlot(slot)) state.values[slot] = domain_.Top(~Origins{0});
    }
    state.truths.fill(Truth());
    return;
  }
  Origins origins = 0;
  Range range = kSigned32;
  bool loads = false;
  for (const cubin::SassMemory& memory : code.accesses()) {
    if (memory.kind == SassMemoryKind::kLoad ||
        memory.kind == SassMemoryKind::kAtomic) {
      loads = true;
      if (memory.bytes == 1) range = {-128, 255};
      if (memory.bytes == 2) range = {-32768, 65535};
    }
  }
  if (loads) origins |= kFromMemory;
  const bool shuffles = code.mnemonic == "SHFL";
  for (const SassOperand& operand : code.operands()) {
    if (operand.access == SassAccess::kWrite) continue;
    if (loads && operand.address) continue;
    const bool uniform = operand.kind == SassOperandKind::kUniformRegister;
    if (!uniform && operand.kind != SassOperandKind::kRegister) continue;
    for (int i = 0; i < operand.count; ++i) {
      const int slot = SlotOf(uniform, operand.index + i);
      if (slot >= kSlots) break;
      origins |= domain_.OriginsOf(state.values[slot]);
    }
  }
  const uint64_t threads =
      uint64_t{launch_.block[0]} * launch_.block[1] * launch_.block[2];
  if (shuffles && threads % 32 == 0) {
    // Another thread's value of a register, the first one that is read. (In a
    // warp that is not full it may be that of no thread.)
    for (const SassOperand& operand : code.operands()) {
      if (operand.access == SassAccess::kWrite ||
          operand.kind != SassOperandKind::kRegister) {
        continue;
      }
      range = domain_.RangeOf(
          Integer(state.values[SlotOf(false, operand.index)], true, where),
          state);
      break;
    }
  }
  const bool symbols = !IsAddressFree(code.instruction_class);
  uint32_t number = kResultNumber;
  for (const SassOperand& operand : code.operands()) {
    if (operand.access != SassAccess::kWrite) continue;
    switch (operand.kind) {
      case SassOperandKind::kRegister:
      case SassOperandKind::kUniformRegister: {
        const bool uniform = operand.kind == SassOperandKind::kUniformRegister;
        for (int i = 0; i < operand.count; ++i) {
          const int slot = SlotOf(uniform, operand.index + i);
          if (slot >= kSlots || IsZeroSlot(slot)) break;
          state.values[slot] = symbols
                                   ? domain_.Word(universe_.Of(domain_.Fresh(
                                         {where->place, number++}, range,
                                         origins, !uniform, &state)))
                                   : domain_.Top(origins);
        }
        break;
      }
      case SassOperandKind::kPredicate:
        if (operand.index != cubin::kSassPredicateTrue) {
          state.truths[operand.index] = Truth();
        }
        break;
      case SassOperandKind::kUniformPredicate:
        if (operand.index != cubin::kSassPredicateTrue) {
          state.truths[kPredicates + operand.index] = Truth();
        }
        break;
      case SassOperandKind::kPredicateSet:
        std::fill_n(state.truths.begin(), kPredicates, Truth());
        break;
      case SassOperandKind::kUniformPredicateSet:
        std::fill_n(state.truths.begin() + kPredicates, kPredicates, Truth());
        break;
      default:
        break;
    }
  }
}

Value Interpreter::ReadConstant(uint8_t bank, int64_t offset, Where* where) {
  (void)where;
  if (bank == 0 && offset >= 0 &&
      offset < static_cast<int64_t>(kDriverParams) && offset % 4 == 0) {
    const int64_t axis = offset / 4;
    return domain_.ConstantWord(axis < 3 ? launch_.block[axis]
                                         : launch_.grid[axis - 3]);
  }
  const int64_t base = launch_.param_base;
  const auto size = static_cast<int64_t>(launch_.params.size());
  if (bank == 0 && offset >= base && offset < base + size) {
    const int64_t at = offset - base;
    for (size_t i = 0; i < launch_.pointers.size(); ++i) {
      const int64_t pointer = launch_.pointers[i];
      if (at + 4 <= pointer || at >= pointer + 8) continue;
      const FormId form = universe_.Of(pointers_[i]);
      if (at == pointer) return {Value::Kind::kWord, form, 0};
      if (at == pointer + 4) return {Value::Kind::kHigh, form, 0};
      return domain_.Top(uint64_t{1} << i);
    }
    uint32_t word = 0;
    std::memcpy(&word, launch_.params.data() + at,
                static_cast<size_t>(std::min<int64_t>(4, size - at)));
    return domain_.ConstantWord(word);
  }
  const bool has_addresses = bank == 0 && base == kParametersOfSm90;
  if (has_addresses && (offset & ~int64_t{4}) == kParametersAddress) {
    return {
        offset == kParametersAddress ? Value::Kind::kWord : Value::Kind::kHigh,
        universe_.Of(parameters_), 0};
  }
  if (has_addresses && (offset & ~int64_t{4}) == kBankAddress) {
    Form bank_address = universe_.form(universe_.Of(parameters_));
    bank_address.constant -= base;
    return {offset == kBankAddress ? Value::Kind::kWord : Value::Kind::kHigh,
            universe_.Intern(std::move(bank_address)), 0};
  }
  // Constants do not change while a kernel runs: one symbol for each.
  Origins origins = kFromMemory;
  if (bank == 0) origins = kFromDriver;
  if (bank == 4) origins = kFromVariable;
  const SymbolId symbol =
      domain_.Fresh({kConstantPlace | bank, static_cast<uint32_t>(offset)},
                    kSigned32, origins, false, nullptr);
  return domain_.Word(universe_.Of(symbol));
}

Value Interpreter::Raw(const Source& source, int word, Where* where) {
  switch (source.kind) {
    case Source::Kind::kZero:
      return domain_.ConstantWord(0);
    case Source::Kind::kRegister:
      if (source.index + word >= kRegisters) return domain_.ConstantWord(0);
      return where->state->values[source.index + word];
    case Source::Kind::kUniform:
      if (source.index + word >= kUniformRegisters) {
        return domain_.ConstantWord(0);
      }
      return where->state->values[kRegisters + source.index + word];
    case Source::Kind::kImmediate:
      return domain_.ConstantWord(
          static_cast<uint32_t>(source.value >> (32 * word)));
    case Source::Kind::kConstant:
      return ReadConstant(source.bank, source.value + 4 * word, where);
  }
  return domain_.Top(~Origins{0});
}

Value Interpreter::Read(const Source& source, int word, Where* where) {
  Value value = Raw(source, word, where);
  if (source.absolute) {
    const FormId integer = Integer(value, true, where);
    const Range range = domain_.RangeOf(integer, *where->state);
    value = range.lo >= 0 ? domain_.Word(universe_.form(integer))
                          : Unknown(Range{0, Wide{1} << 31},
                                    domain_.OriginsOf(value), true, where);
  }
  if (source.negate || source.invert) {
    Form form = Times(universe_.form(Low(value, where)), -1);
    if (source.invert) form.constant -= 1;
    value = domain_.Word(form);
  }
  return value;
}

Value Interpreter::Unknown(const Range& range, Origins origins, bool varies,
                           Where* where) {
  return domain_.Word(universe_.Of(domain_.Fresh(
      {where->place, where->next++}, range, origins, varies, where->state)));
}

FormId Interpreter::Low(const Value& value, Where* where) {
  switch (value.kind) {
    case Value::Kind::kTop:
      return Unknown(value.origins, where).form;
    case Value::Kind::kWord:
      return value.form;
    case Value::Kind::kHigh:
      return FloorShift(value.form, 32, where);
  }
  return 0;
}

FormId Interpreter::IntegerOf(FormId low, bool is_signed, Where* where) {
  const Wide least = is_signed ? kSigned32.lo : 0;
  const Range range = domain_.RangeOf(low, *where->state);
  // How often to subtract 2^32.
  const Wide first = (range.lo - least) >> 32;
  const Wide last = (range.hi - least) >> 32;
  Form form = universe_.form(low);
  if (first == last && range.lo > -kUnbounded && range.hi < kUnbounded) {
    form.constant -= static_cast<int64_t>(first << 32);
    return universe_.Intern(std::move(form));
  }
  Form shifted = form;
  shifted.constant -= static_cast<int64_t>(least);
  const FormId turns = FloorShift(universe_.Intern(shifted), 32, where);
  return universe_.Intern(
      Add(universe_.form(low), universe_.form(turns), -(int64_t{1} << 32)));
}

FormId Interpreter::Integer(const Value& value, bool is_signed, Where* where) {
  return IntegerOf(Low(value, where), is_signed, where);
}

bool Interpreter::Linked(const Value& low, const Value& high,
                         Form* whole) const {
  if (low.kind != Value::Kind::kWord || high.kind != Value::Kind::kHigh) {
    return false;
  }
  const Form& h = universe_.form(high.form);
  const Form difference = Add(universe_.form(low.form), h, -1);
  const auto offset = static_cast<uint32_t>(difference.constant);
  // Code that adds to the low half alone counts on it that the parameters do
  // not lie across a boundary of 4 GiB; else its address would be none of
  // theirs.
  const bool in_parameters =
      offset < kMostParameters && h.terms.size() == 1 &&
      h.terms[0].coefficient == 1 &&
      universe_.symbol(h.terms[0].symbol).kind == SymbolKind::kParameters;
  if (offset != 0 && !in_parameters) return false;
  for (const Term& term : difference.terms) {
    if ((term.coefficient & 0xffffffff) != 0) return false;
  }
  *whole = h;
  whole->constant += offset;
  return true;
}

FormId Interpreter::Compose(const Value& low, const Value& high, Where* where) {
  Form whole;
  if (Linked(low, high, &whole)) return universe_.Intern(std::move(whole));
  const FormId l = Integer(low, false, where);
  const FormId h = Low(high, where);
  return universe_.Intern(
      Add(universe_.form(l), universe_.form(h), int64_t{1} << 32));
}

bool Interpreter::Exact64(FormId form, bool is_signed,
                          const State& state) const {
  const Range range = domain_.RangeOf(form, state);
  // Narrower than the type, so that differences do not wrap either.
  return range.Within(is_signed ? -(Wide{1} << 62) : 0, Wide{1} << 62);
}

FormId Interpreter::FloorShift(FormId id, int bits, Where* where) {
  if (bits == 0) return id;
  const Form form = universe_.form(id);
  const State& state = *where->state;
  const Range range = domain_.RangeOf(id, state);
  if (range.lo > -kUnbounded && range.hi < kUnbounded &&
      range.lo >> bits == range.hi >> bits) {
    const Wide value = range.lo >> bits;
    if (value >= INT64_MIN && value <= INT64_MAX) {
      return universe_.Constant(static_cast<int64_t>(value));
    }
  }
  // 2^bits * whole + rest.
  if (bits < 63) {
    const int64_t unit = int64_t{1} << bits;
    Form whole;
    Form rest;
    for (const Term& term : form.terms) {
      if (term.coefficient % unit == 0) {
        whole.terms.push_back({term.symbol, term.coefficient / unit});
      } else {
        rest.terms.push_back(term);
      }
    }
    whole.constant = form.constant >> bits;
    rest.constant = form.constant - (whole.constant << bits);
    if (!whole.is_constant()) {
      const Range of_rest = universe_.RangeOf(rest, state.bounds);
      if (of_rest.lo > -kUnbounded && of_rest.hi < kUnbounded &&
          of_rest.lo >> bits == of_rest.hi >> bits) {
        whole.constant += static_cast<int64_t>(of_rest.lo >> bits);
        return universe_.Intern(std::move(whole));
      }
    }
  }
  // A quotient shifted further, alone or added to its numerator.
  for (const Term& term : form.terms) {
    const Symbol& symbol = universe_.symbol(term.symbol);
    if (symbol.shift == 0 || term.coefficient != 1 ||
        symbol.shift + bits > 64) {
      continue;
    }
    const Form without =
        Add(form, universe_.form(universe_.Of(term.symbol)), -1);
    const FormId numerator = symbol.numerator;
    int64_t factor = symbol.factor;
    const int shift = symbol.shift + bits;
    if (without == universe_.form(numerator) && symbol.shift < 60) {
      factor += int64_t{1} << symbol.shift;
    } else if (without != Form{}) {
      continue;
    }
    return universe_.Of(domain_.Quotient(numerator, factor, shift, state));
  }
  const SymbolId quotient = domain_.Quotient(id, 1, bits, state);
  if (warp_is_row_ && bits >= 5 && form.constant == 0 &&
      form.terms.size() == 1 && form.terms[0].symbol == thread_[0] &&
      form.terms[0].coefficient == 1) {
    universe_.symbol(quotient).varies_in_warp = false;
  }
  return universe_.Of(quotient);
}

FormId Interpreter::LowBits(FormId id, int bits, Where* where) {
  const Form& form = universe_.form(id);
  if (bits <= 8) {
    const int residue = universe_.ResidueOf(form, bits);
    if (residue >= 0) return universe_.Constant(residue);
  }
  const FormId turns = FloorShift(id, bits, where);
  return universe_.Intern(
      Add(universe_.form(id), universe_.form(turns), -(int64_t{1} << bits)));
}

FormId Interpreter::AddressOf(uint32_t index, uint32_t place,
                              const cubin::SassMemory& memory, State* state) {
  const SassInstruction& code = code_[index].decoded;
  Where where{place | kAddressPlace, 0, state};
  Form sum;
  sum.constant = memory.offset;
  const auto add = [&](uint8_t which, bool wide) {
    if (which == cubin::kSassNoOperand) return;
    const SassOperand& operand = code.operand[which];
    const bool uniform = operand.kind == SassOperandKind::kUniformRegister;
    if (!uniform && operand.kind != SassOperandKind::kRegister) return;
    const int slot = SlotOf(uniform, operand.index);
    if (IsZeroSlot(slot)) return;
    const Value& low = state->values[slot];
    if (wide && slot + 1 < kSlots) {
      const Value high = state->values[slot + 1];
      sum = Add(sum, universe_.form(Compose(low, high, &where)));
    } else {
      sum = Add(sum, universe_.form(Integer(low, false, &where)));
    }
  };
  const auto words = [&](uint8_t which) {
    return which == cubin::kSassNoOperand ? 1 : code.operand[which].count;
  };
  add(memory.base_operand, words(memory.base_operand) >= 2);
  add(memory.uniform_operand, words(memory.uniform_operand) >= 2);
  return universe_.Intern(std::move(sum));
}

}  // namespace heddle::access
