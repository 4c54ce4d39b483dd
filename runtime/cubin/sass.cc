// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/sass.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/cubin/byte_reader.h"
#include "runtime/cubin/sass_table.h"

namespace heddle::cubin {
namespace {

using sass::Bits;
using sass::BitTest;
using sass::Part;
using sass::Row;
using sass::Slot;
using sass::SlotKind;

int64_t SignExtend(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

class Decoder {
 public:
  Decoder(uint64_t low, uint64_t high, uint64_t offset, uint32_t arch)
      : low_(low), high_(high), offset_(offset), arch_(arch) {}

  // Whether `row` is what the word's modifiers mean.
  bool Matches(const Row& row) const {
    if (arch_ < row.min_arch || arch_ > row.max_arch) return false;
    if (!All(row.when)) return false;
    if (row.allowed.size != 0 &&
        (row.allowed.values >> bits(row.allowed.bit, row.allowed.size) & 1) ==
            0) {
      return false;
    }
    if (row.forms == 0) return true;
    // Bit 91 selects uniform registers; with constants, banks by descriptor.
    const int form = Form();
    if (form == 3 || form == 5) return true;
    return (bits(91, 1) != 0) == (row.uniform || form >= 6);
  }

  // Fills in *out as `row` says; false if a modifier has no known meaning.
  bool Fill(const Row& row, SassInstruction* out) {
    row_ = &row;
    out_ = out;
    out->mnemonic = row.mnemonic;
    out->instruction_class = row.instruction_class;
    out->flow = row.flow;
    out->guard_uniform = row.uniform;
    out->memory_count = row.memory_count;
    for (int i = 0; i < row.memory_count; ++i) {
      const sass::MemoryRow& from = row.memory[i];
      SassMemory& memory = out->memory[i];
      memory.space = from.space;
      memory.kind = from.kind;
      if (from.fixed_bytes != 0) {
        memory.bytes = from.fixed_bytes;
      } else if (from.sized) {
        memory.bytes = Bytes(from.bytes);
        if (memory.bytes == 0) return false;
      }
    }
    for (const Slot& slot : row.slots) {
      if (slot.kind == SlotKind::kEnd) break;
      if (All(slot.when) && !FillSlot(slot)) return false;
    }
    return true;
  }

 private:
  uint64_t bits(int bit, int size) const {
    return Bits(low_, high_, bit, size);
  }
  int Form() const { return static_cast<int>(bits(9, 3)); }

  template <size_t N>
  bool All(const std::array<BitTest, N>& tests) const {
    return std::all_of(tests.begin(), tests.end(), [&](BitTest test) {
      return test.none() || (bits(test.bit(), 1) != 0) == test.wants_set();
    });
  }

  uint16_t Bytes(sass::Count count) const {
    if (count == sass::Count::kSize73) {
      constexpr uint16_t kBytes[] = {1, 1, 2, 2, 4, 8, 16, 0};
      return kBytes[bits(73, 3)];
    }
    return static_cast<uint16_t>(4 * sass::RegisterCount(count, low_, high_));
  }

  // Appends an operand and hands it to the memory access that it belongs to.
  bool Add(const Slot& slot, SassOperand operand) {
    if (out_->operand_count == kSassMaxOperands) return false;
    const uint8_t at = out_->operand_count++;
    operand.access = slot.write ? SassAccess::kWrite : SassAccess::kRead;
    operand.address = slot.part != Part::kNone && slot.part != Part::kData;
    out_->operand[at] = operand;
    // Instructions that only look at an address have parts but no access.
    if (slot.part == Part::kNone || slot.access >= out_->memory_count) {
      return true;
    }
    SassMemory& memory = out_->memory[slot.access];
    switch (slot.part) {
      case Part::kBase:
        memory.base_operand = at;
        memory.wide = operand.count >= 2 && Paired(memory.space);
        if (row_->scaled) {
          memory.base_scale =
              static_cast<uint8_t>(bits(78, 2) == 0 ? 1 : 2 << bits(78, 2));
        }
        break;
      case Part::kUniform:
        memory.uniform_operand = at;
        break;
      case Part::kOffset:
        memory.offset = operand.value;
        break;
      case Part::kDescriptor:
        memory.descriptor_operand = at;
        break;
      case Part::kData:
        memory.data_operand = at;
        break;
      case Part::kNone:
        break;
    }
    return true;
  }

  // Spaces whose addresses have 64 bits. The pair that tells a bulk copy about
  // shared memory is an address and a barrier.
  static bool Paired(SassSpace space) {
    return space == SassSpace::kGlobal || space == SassSpace::kGeneric;
  }

  bool AddRegister(const Slot& slot, int bit, bool uniform, int step = 0) {
    const int count = sass::RegisterCount(slot.count, low_, high_);
    if (count == 0) return false;
    SassOperand operand;
    operand.kind = uniform ? SassOperandKind::kUniformRegister
                           : SassOperandKind::kRegister;
    operand.index = static_cast<uint8_t>(bits(bit, uniform ? 6 : 8) + step);
    const uint8_t zero = uniform ? kSassUniformRegisterZero : kSassRegisterZero;
    operand.count = static_cast<uint8_t>(operand.index == zero ? 1 : count);
    // A group that would run into or past the zero register is none.
    if (operand.index != zero && operand.index + count > zero) return false;
    return Add(slot, operand);
  }

  bool AddPredicate(const Slot& slot, int bit, bool uniform, bool inverted) {
    SassOperand operand;
    operand.kind = uniform ? SassOperandKind::kUniformPredicate
                           : SassOperandKind::kPredicate;
    operand.index = static_cast<uint8_t>(bits(bit, 3));
    if (inverted) operand.index = static_cast<uint8_t>(7 - operand.index);
    operand.negated = !slot.write && bits(bit + 3, 1) != 0;
    return Add(slot, operand);
  }

  bool AddImmediate(const Slot& slot, uint64_t value) {
    SassOperand operand;
    operand.kind = SassOperandKind::kImmediate;
    operand.value = static_cast<int64_t>(value);
    return Add(slot, operand);
  }

  // c[bank][offset], or cx[UR][offset] with bit 91. The offset is in words
  // except where a load may want single bytes.
  bool AddConstant(const Slot& slot, bool words) {
    SassOperand operand;
    operand.kind = SassOperandKind::kConstant;
    const int count = sass::RegisterCount(slot.count, low_, high_);
    if (count == 0) return false;
    operand.count = static_cast<uint8_t>(count);
    // Unsigned below a descriptor, signed below a bank.
    const uint64_t offset = words ? bits(40, 14) << 2 : bits(38, 16);
    const bool indexed = row_->opcode == 0xb82 || row_->opcode == 0xabb;
    if (!indexed && bits(91, 1) != 0) {
      Slot descriptor;
      descriptor.kind = SlotKind::kUniform;
      descriptor.count = sass::Count::kTwo;
      descriptor.part = Part::kDescriptor;
      if (!AddRegister(descriptor, row_->opcode == 0xab9 ? 24 : 32, true)) {
        return false;
      }
      operand.bindless = true;
      operand.value = static_cast<int64_t>(offset);
    } else {
      operand.bank = static_cast<uint8_t>(bits(54, 5));
      operand.value = SignExtend(offset, 16);
    }
    if (row_->memory_count != 0) out_->memory[0].offset = operand.value;
    return Add(slot, operand);
  }

  bool AddTarget(const Slot& slot, int64_t displacement) {
    out_->has_target = true;
    out_->relative = true;
    out_->target = static_cast<int64_t>(offset_ + kSassInstructionBytes +
                                        static_cast<uint64_t>(displacement));
    if (slot.kind == SlotKind::kHere) {
      out_->target = static_cast<int64_t>(offset_);
      return true;
    }
    SassOperand operand;
    operand.kind = SassOperandKind::kTarget;
    operand.value = out_->target;
    return Add(slot, operand);
  }

  // In units of 4 bytes; sm_90 has put 8 more bits below.
  int64_t Far() const {
    if (arch_ < 90) return SignExtend(bits(34, 48), 48) * 4;
    return SignExtend(bits(16, 8) | bits(34, 48) << 8, 56) * 4;
  }

  bool FillSlot(const Slot& slot) {
    const int form = Form();
    switch (slot.kind) {
      case SlotKind::kEnd:
        return true;
      case SlotKind::kRegister:
        return AddRegister(slot, slot.bit, false);
      case SlotKind::kUniform:
        return AddRegister(slot, slot.bit, true);
      case SlotKind::kUniformNext:
        return AddRegister(slot, slot.bit, true, 1);
      case SlotKind::kPredicate:
        return AddPredicate(slot, slot.bit, false, false);
      case SlotKind::kInvertedPredicate:
        return AddPredicate(slot, slot.bit, false, true);
      case SlotKind::kUniformPredicate:
        return AddPredicate(slot, slot.bit, true, false);
      case SlotKind::kInvertedUniformPredicate:
        return AddPredicate(slot, slot.bit, true, true);
      case SlotKind::kPredicateSet:
      case SlotKind::kUniformPredicateSet: {
        SassOperand operand;
        operand.kind = slot.kind == SlotKind::kPredicateSet
                           ? SassOperandKind::kPredicateSet
                           : SassOperandKind::kUniformPredicateSet;
        operand.value =
            slot.size == 0
                ? 0x7f
                : static_cast<int64_t>(bits(slot.bit, slot.size) & 0x7f);
        return Add(slot, operand);
      }
      case SlotKind::kImmediate:
        return AddImmediate(slot, bits(slot.bit, slot.size));
      case SlotKind::kSigned:
        return AddImmediate(slot, static_cast<uint64_t>(SignExtend(
                                      bits(slot.bit, slot.size), slot.size)));
      case SlotKind::kLut:
        return AddImmediate(slot, bits(64, 3) | bits(72, 5) << 3);
      case SlotKind::kSourceB:
        if (form == 2 || form == 3 || form == 7) {
          return AddRegister(slot, 64, row_->uniform);
        }
        return FillField(slot, form);
      case SlotKind::kSourceC:
        if (form == 2 || form == 3 || form == 7) return FillField(slot, form);
        return AddRegister(slot, 64, row_->uniform);
      case SlotKind::kField:
        return FillField(slot, form);
      case SlotKind::kConstant:
        return AddConstant(slot, false);
      case SlotKind::kSpecial: {
        SassOperand operand;
        operand.kind = SassOperandKind::kSpecialRegister;
        operand.value = static_cast<int64_t>(bits(slot.bit, slot.size));
        return Add(slot, operand);
      }
      case SlotKind::kConvergence: {
        SassOperand operand;
        operand.kind = SassOperandKind::kConvergenceBarrier;
        operand.index = static_cast<uint8_t>(bits(slot.bit, slot.size));
        return Add(slot, operand);
      }
      case SlotKind::kTarget:
        return AddTarget(slot, Far());
      case SlotKind::kMeetingPlace:
        return AddTarget(slot, SignExtend(bits(34, 30), 30) * 4);
      case SlotKind::kAddressOf:
        return AddTarget(slot, SignExtend(bits(24, 58), 58));
      case SlotKind::kHere:
        return AddTarget(slot, 0);
      case SlotKind::kFarRelative:
        out_->relative = true;
        [[fallthrough]];
      case SlotKind::kFar:
        return AddImmediate(slot, static_cast<uint64_t>(Far()));
    }
    return false;
  }

  // What is at bit 32, as the form says.
  bool FillField(const Slot& slot, int form) {
    switch (form) {
      case 1:
        return AddRegister(slot, 32, row_->uniform);
      case 2:
      case 4:
        return AddImmediate(slot, bits(32, 32));
      case 3:
      case 5:
        return AddConstant(slot, true);
      case 6:
      case 7:
        return AddRegister(slot, 32, true);
      default:
        return false;
    }
  }

  const uint64_t low_;
  const uint64_t high_;
  const uint64_t offset_;
  const uint32_t arch_;
  const Row* row_ = nullptr;
  SassInstruction* out_ = nullptr;
};

SassControl DecodeControl(uint64_t high) {
  SassControl control;
  control.stall = static_cast<uint8_t>(Bits(0, high, 105, 4));
  control.yield = Bits(0, high, 109, 1) == 0;
  control.write_barrier = static_cast<uint8_t>(Bits(0, high, 110, 3));
  control.read_barrier = static_cast<uint8_t>(Bits(0, high, 113, 3));
  control.wait_mask = static_cast<uint8_t>(Bits(0, high, 116, 6));
  control.reuse = static_cast<uint8_t>(Bits(0, high, 122, 4));
  return control;
}

}  // namespace

bool SassSupports(uint32_t arch) { return arch >= 80 && arch <= 90; }

SassInstruction DecodeSass(uint64_t low, uint64_t high, uint64_t offset,
                           uint32_t arch) {
  SassInstruction blank;
  blank.opcode = static_cast<uint16_t>(low & 0xfff);
  blank.guard = static_cast<uint8_t>(Bits(low, high, 12, 3));
  blank.guard_negated = Bits(low, high, 15, 1) != 0;
  blank.control = DecodeControl(high);
  if (!SassSupports(arch)) return blank;
  SassInstruction result = blank;
  Decoder decoder(low, high, offset, arch);
  for (const sass::RowLink* link = sass::RowsOf(blank.opcode); link != nullptr;
       link = link->next) {
    if (!decoder.Matches(*link->row)) continue;
    return decoder.Fill(*link->row, &result) ? result : blank;
  }
  return blank;
}

SassInstruction DecodeSass(absl::Span<const uint8_t> text, uint64_t offset,
                           uint32_t arch) {
  uint64_t low = 0;
  uint64_t high = 0;
  if (!ReadAt(text, offset, &low) || offset > UINT64_MAX - 8 ||
      !ReadAt(text, offset + 8, &high)) {
    return {};
  }
  return DecodeSass(low, high, offset, arch);
}

}  // namespace heddle::cubin
