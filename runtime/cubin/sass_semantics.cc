// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/sass_semantics.h"

#include <cstdint>
#include <initializer_list>

#include "runtime/cubin/sass_table.h"

namespace heddle::cubin {
namespace {

SassSpecial Special(int64_t number) {
  switch (number) {
    case 0:
      return SassSpecial::kLane;
    case 32:
      return SassSpecial::kPackedTid;
    case 33:
      return SassSpecial::kTidX;
    case 34:
      return SassSpecial::kTidY;
    case 35:
      return SassSpecial::kTidZ;
    case 37:
      return SassSpecial::kCtaidX;
    case 38:
      return SassSpecial::kCtaidY;
    case 39:
      return SassSpecial::kCtaidZ;
    case 255:
      return SassSpecial::kZero;
    default:
      return SassSpecial::kOther;
  }
}

// Where a source of an arithmetic instruction can be; see sass_table.h.
enum class Place { kA, kB, kC, kV };

// Operands come in the order of the decoder's rows: every case below names the
// columns of its row, and the modifier bits that were checked. Any other
// modifier bit makes the instruction opaque.
class Interpreter {
 public:
  Interpreter(uint64_t low, uint64_t high, const SassInstruction& decoded)
      : low_(low), high_(high), decoded_(decoded) {}

  SassOperation Run() {
    if (!decoded_.known()) return SassOperation();
    // cx[UR][offset]: nobody knows where that is.
    for (const SassOperand& operand : decoded_.operands()) {
      if (operand.bindless) return SassOperation();
    }
    if (!Interpret()) return SassOperation();
    return result_;
  }

 private:
  bool Bit(int bit) const { return sass::Bits(low_, high_, bit, 1) != 0; }
  uint64_t Bits(int bit, int size) const {
    return sass::Bits(low_, high_, bit, size);
  }
  int Form() const { return static_cast<int>(Bits(9, 3)); }
  // Whether the word at bit 32 is the third source, not the second.
  bool FieldIsC() const { return Form() == 2 || Form() == 3 || Form() == 7; }
  bool FieldIsImmediate() const { return Form() == 2 || Form() == 4; }

  // Whether no modifier bits but these are set, of 72 to 80 and 92 to 104, and
  // no bits of the field at 32 but its operand's.
  bool Plain(std::initializer_list<int> modifiers, bool field_modifier) const {
    uint64_t allowed = 0;
    for (const int bit : modifiers) allowed |= uint64_t{1} << (bit - 64);
    constexpr uint64_t kModifiers = uint64_t{0x1ff} << 8 | uint64_t{0x1fff}
                                                               << 28;
    if ((high_ & kModifiers & ~allowed) != 0) return false;
    if (FieldIsImmediate()) return true;
    if (Bit(63) && !field_modifier) return false;
    if (Form() == 3 || Form() == 5) return Bits(59, 4) == 0;
    return Bits(40, 23) == 0;
  }

  const SassOperand& Operand(int at) const {
    return decoded_.operand[static_cast<size_t>(at)];
  }

  // Source `at` of the result from the decoded operand `from`.
  bool Source(size_t at, int from) {
    if (from >= decoded_.operand_count) return false;
    const SassOperand& operand = Operand(from);
    SassSource& source = result_.source[at];
    source.index = operand.index;
    source.words = operand.count;
    switch (operand.kind) {
      case SassOperandKind::kRegister:
        source.kind = operand.index == kSassRegisterZero
                          ? SassSource::Kind::kZero
                          : SassSource::Kind::kRegister;
        return true;
      case SassOperandKind::kUniformRegister:
        source.kind = operand.index == kSassUniformRegisterZero
                          ? SassSource::Kind::kZero
                          : SassSource::Kind::kUniform;
        return true;
      case SassOperandKind::kImmediate:
        source.kind = SassSource::Kind::kImmediate;
        source.value = operand.value;
        return true;
      case SassOperandKind::kConstant:
        source.kind = SassSource::Kind::kConstant;
        source.bank = operand.bank;
        source.value = operand.value;
        return true;
      default:
        return false;
    }
  }
  // The same with the bits that negate it, or invert it under `extended`:
  // those belong to places in the instruction, not to sources.
  bool Negatable(size_t at, int from, Place place) {
    if (!Source(at, from)) return false;
    const bool in_field = place == Place::kV ||
                          (place == Place::kB && !FieldIsC()) ||
                          (place == Place::kC && FieldIsC());
    if (place == Place::kA) {
      result_.source[at].negate = Bit(72);
    } else if (in_field) {
      result_.source[at].negate = !FieldIsImmediate() && Bit(63);
    } else {
      result_.source[at].negate = Bit(75);
    }
    return true;
  }

  static bool IsPredicate(const SassOperand& operand) {
    return operand.kind == SassOperandKind::kPredicate ||
           operand.kind == SassOperandKind::kUniformPredicate;
  }
  bool ReadsPredicate(size_t at, int from) {
    if (from >= decoded_.operand_count || !IsPredicate(Operand(from))) {
      return false;
    }
    SassPredicateUse& use = result_.source_predicate[at];
    use.index = Operand(from).index;
    use.negated = Operand(from).negated;
    use.uniform = Operand(from).kind == SassOperandKind::kUniformPredicate;
    return true;
  }
  bool WritesPredicate(size_t at, int from) {
    SassPredicateUse& use = result_.destination_predicate[at];
    use.index = Operand(from).index;
    use.uniform = Operand(from).kind == SassOperandKind::kUniformPredicate;
    return IsPredicate(Operand(from));
  }
  void Writes(int from) {
    result_.uniform = Operand(from).kind == SassOperandKind::kUniformRegister;
    result_.destination = Operand(from).index;
    result_.destination_words = Operand(from).count;
  }
  // The destination has two words, even where it is RZ and counts as one.
  void WritesPair(int from) {
    Writes(from);
    result_.destination_words = 2;
  }

  bool NoPredicate(size_t at) const {
    return result_.destination_predicate[at].index == kSassPredicateTrue;
  }

  bool Interpret();
  bool Move();
  bool HalfConstant();
  bool ExtendImmediates();
  bool Add();
  bool MultiplyAdd();
  bool MultiplyLong(SassOp op);
  bool ShiftAdd();
  bool Logic();
  bool LogicPredicate();
  bool Funnel();
  bool Compare();
  bool MinMax();
  bool MinMaxOfThree(SassOp op);
  bool Two(SassOp op, std::initializer_list<int> modifiers);
  bool One(SassOp op, std::initializer_list<int> modifiers, bool inverts);
  bool FindLeading();
  bool PredicateSet(SassOp op, int destination, int source);
  bool ReadSpecial();
  bool ReadConstant();

  const uint64_t low_;
  const uint64_t high_;
  const SassInstruction& decoded_;
  SassOperation result_;
};

// MOV: Rd, V; the lanes of bits 72 to 75 all set. UMOV: Rd, imm or URb.
bool Interpreter::Move() {
  result_.op = SassOp::kMove;
  Writes(0);
  const uint64_t lanes = (decoded_.opcode & 0x1ff) == 0x002 ? 0xf : 0;
  if (Bits(72, 4) != lanes) return false;
  return Plain({72, 73, 74, 75}, false) && Source(0, 1);
}

// HFMA2 Rd, -RZ, RZ, immediate: how the compiler makes a constant in this unit.
// -0 * 0 + x is x for both halves, except that it need not keep the bits of a
// value that is not a number.
bool Interpreter::HalfConstant() {
  const auto is_nan = [](uint64_t half) { return (half & 0x7fff) > 0x7c00; };
  result_.op = SassOp::kMove;
  Writes(0);
  return Form() == 2 && Bits(24, 8) == kSassRegisterZero &&
         Bits(64, 8) == kSassRegisterZero && Bits(72, 15) == 1 &&
         Bits(92, 13) == 0 && !is_nan(Bits(32, 16)) && !is_nan(Bits(48, 16)) &&
         Source(0, 3);
}

// Immediates of operations on 64 bits are signed (cuBLASLt's kernels count
// addresses down with them).
bool Interpreter::ExtendImmediates() {
  if (result_.destination_words == 1) return true;
  for (SassSource& source : result_.source) {
    if (source.kind == SassSource::Kind::kImmediate) {
      source.value = static_cast<int32_t>(static_cast<uint32_t>(source.value));
    }
  }
  return true;
}

// IADD3: Rd, Pu, Pv, Ra, B, C; .X: Pp, Pq.
bool Interpreter::Add() {
  result_.op = SassOp::kAdd;
  result_.extended = Bit(74);
  Writes(0);
  if ((decoded_.opcode & 0x1ff) == 0x097) {
    // UIADD3.64: carries were not seen in use.
    WritesPair(0);
    if (result_.extended) return false;
  }
  const bool read =
      !result_.extended || (ReadsPredicate(0, 6) && ReadsPredicate(1, 7));
  // Bits 77 to 80 are the second carry.
  return read && Plain({72, 74, 75, 77, 78, 79, 80}, true) &&
         WritesPredicate(0, 1) && WritesPredicate(1, 2) &&
         Negatable(0, 3, Place::kA) && Negatable(1, 4, Place::kB) &&
         Negatable(2, 5, Place::kC) && ExtendImmediates() &&
         (result_.destination_words == 1 || (NoPredicate(0) && NoPredicate(1)));
}

// IMAD: Rd, Ra, B, C; .X: Pp. Multiplications by 0 and 1 are how the compiler
// moves and adds in this unit.
bool Interpreter::MultiplyAdd() {
  result_.op = SassOp::kMultiplyAdd;
  result_.is_signed = Bit(73);
  result_.extended = Bit(74);
  Writes(0);
  const bool c_in_field = FieldIsC();
  if (!(c_in_field ? Plain({73, 74}, true) : Plain({73, 74, 75}, false)) ||
      !Source(0, 1) || !Source(1, 2) || !Negatable(2, 3, Place::kC) ||
      (result_.extended && !ReadsPredicate(0, 4))) {
    return false;
  }
  const SassSource& a = result_.source[0];
  const SassSource& b = result_.source[1];
  const bool none =
      a.kind == SassSource::Kind::kZero || b.kind == SassSource::Kind::kZero;
  const bool once = b.kind == SassSource::Kind::kImmediate && b.value == 1;
  if (none && !result_.extended) {
    result_.op = SassOp::kMove;
    result_.source = {result_.source[2]};
  } else if (none || once) {
    result_.op = SassOp::kAdd;
    result_.source = {none ? SassSource() : a, result_.source[2]};
    // The second carry: none.
    result_.source_predicate[1].negated = true;
  }
  return true;
}

// IMAD.WIDE, IMAD.HI: Rd, Pu, Ra, B, C (two words); .X: Pp.
bool Interpreter::MultiplyLong(SassOp op) {
  result_.op = op;
  const bool wide = op == SassOp::kMultiplyWide;
  // IMAD.HI says .U32 by default.
  result_.is_signed = Bit(73);
  result_.extended = Bit(74);
  if (wide) {
    WritesPair(0);
  } else {
    Writes(0);
    if (result_.extended) return false;
  }
  const bool c_in_field = FieldIsC();
  if (!(c_in_field ? Plain({73, 74}, true) : Plain({73, 74, 75}, false)) ||
      !WritesPredicate(0, 1) || !Source(0, 2) || !Source(1, 3) ||
      !Negatable(2, 4, Place::kC) ||
      (result_.extended && !ReadsPredicate(0, 5))) {
    return false;
  }
  // How 32 bits would be extended was not seen.
  return result_.source[2].kind != SassSource::Kind::kImmediate;
}

// LEA: Rd, Pu, Ra, B, C if .HI but not .SX32, shift; .X: Pp.
bool Interpreter::ShiftAdd() {
  const bool high = Bit(80);
  result_.op = high ? SassOp::kShiftAddHigh : SassOp::kShiftAdd;
  result_.sign_fill = Bit(73);
  result_.extended = Bit(74);
  result_.shift = static_cast<uint8_t>(Bits(75, 5));
  Writes(0);
  int at = 4;
  if (!Plain({72, 73, 74, 75, 76, 77, 78, 79, 80}, true) ||
      !WritesPredicate(0, 1) || !Negatable(0, 2, Place::kA)) {
    return false;
  }
  if (!Source(1, 3)) return false;
  result_.source[1].negate = !FieldIsImmediate() && Bit(63);
  if (high && !result_.sign_fill && !Source(2, at++)) return false;
  ++at;  // the shift
  if (result_.extended && !ReadsPredicate(0, at)) return false;
  // What was not seen in use: a carry into a low word, a negated high word.
  if (!high) return !result_.extended && !result_.sign_fill;
  return !result_.source[0].negate;
}

// LOP3: Pu, Rd, Ra, B, C, table, Pp.
bool Interpreter::Logic() {
  result_.op = SassOp::kLogic3;
  result_.lut = static_cast<uint8_t>(Bits(72, 8));
  result_.combine = Bit(80) ? SassCombine::kAnd : SassCombine::kOr;
  Writes(1);
  return Plain({72, 73, 74, 75, 76, 77, 78, 79, 80}, false) &&
         WritesPredicate(0, 0) && Source(0, 2) && Source(1, 3) &&
         Source(2, 4) && ReadsPredicate(0, 6);
}

// PLOP3: Pu, Pv, Pp, Pq, Pr, tables of Pu and Pv.
bool Interpreter::LogicPredicate() {
  result_.op = SassOp::kLogic3Predicate;
  result_.lut = static_cast<uint8_t>(Bits(64, 3) | Bits(72, 5) << 3);
  result_.lut2 = static_cast<uint8_t>(Bits(16, 8));
  return Bits(92, 13) == 0 && Bits(24, 32) == 0 && Bits(56, 8) == 0 &&
         WritesPredicate(0, 0) && WritesPredicate(1, 1) &&
         ReadsPredicate(0, 2) && ReadsPredicate(1, 3) && ReadsPredicate(2, 4);
}

// SHF: Rd, Ra, B, C.
bool Interpreter::Funnel() {
  result_.op = SassOp::kFunnelShift;
  result_.is_signed = !Bit(73);
  result_.shift_wide = !Bit(74);
  result_.shift_wrap = Bit(75);
  result_.shift_right = Bit(76);
  result_.shift_high = Bit(80);
  Writes(0);
  return Plain({73, 74, 75, 76, 80}, false) && Source(0, 1) && Source(1, 2) &&
         Source(2, 3);
}

// ISETP: Pu, Pv, Ra, V, Pp; .EX: Pr.
bool Interpreter::Compare() {
  result_.op = SassOp::kCompare;
  result_.extended = Bit(72);
  result_.is_signed = Bit(73);
  result_.compare = static_cast<SassCompare>(Bits(76, 3));
  if (Bits(74, 2) == 3) return false;
  result_.combine = static_cast<SassCombine>(Bits(74, 2));
  return Plain({72, 73, 74, 75, 76, 77, 78}, false) && WritesPredicate(0, 0) &&
         WritesPredicate(1, 1) && Source(0, 2) && Source(1, 3) &&
         ReadsPredicate(0, 4) && (!result_.extended || ReadsPredicate(1, 5));
}

// IMNMX, VIMNMX: Rd, Ra, V, Pp.
bool Interpreter::MinMax() {
  const int is_signed = (decoded_.opcode & 0x1ff) == 0x017 ? 73 : 72;
  result_.op = SassOp::kMinMax;
  result_.is_signed = Bit(is_signed);
  Writes(0);
  return Plain({is_signed}, false) && Source(0, 1) && Source(1, 2) &&
         ReadsPredicate(0, 3);
}

// VIMNMX3, VIADDMNMX: Rd, Ra, B, C, Pp.
bool Interpreter::MinMaxOfThree(SassOp op) {
  result_.op = op;
  result_.is_signed = Bit(72);
  Writes(0);
  if (!Source(0, 1) || !Source(1, 2) || !Source(2, 3) ||
      !ReadsPredicate(0, 4)) {
    return false;
  }
  if (op == SassOp::kMinMax3) return Plain({72}, false);
  return (FieldIsC() ? Plain({72, 75}, false) : Plain({72}, true)) &&
         Negatable(1, 2, Place::kB);
}

// Rd, Ra, V.
bool Interpreter::Two(SassOp op, std::initializer_list<int> modifiers) {
  result_.op = op;
  result_.is_signed = Bit(73);
  result_.shift_wrap = Bit(75);
  Writes(0);
  return Plain(modifiers, false) && Source(0, 1) && Source(1, 2);
}

// Rd, V.
bool Interpreter::One(SassOp op, std::initializer_list<int> modifiers,
                      bool inverts) {
  result_.op = op;
  Writes(0);
  if (!Plain(modifiers, inverts) || !Source(0, 1)) return false;
  result_.source[0].invert = inverts && !FieldIsImmediate() && Bit(63);
  return true;
}

// FLO: Rd, Pu, V.
bool Interpreter::FindLeading() {
  result_.op = SassOp::kFindLeadingOne;
  result_.is_signed = Bit(73);
  result_.shift_count = Bit(74);
  Writes(0);
  if (!Plain({73, 74}, true) || !WritesPredicate(0, 1) || !NoPredicate(0) ||
      !Source(0, 2)) {
    return false;
  }
  result_.source[0].invert = !FieldIsImmediate() && Bit(63);
  return true;
}

// P2R: Rd, set, Ra, mask. R2P: set, Ra, mask.
bool Interpreter::PredicateSet(SassOp op, int destination, int source) {
  result_.op = op;
  result_.shift = static_cast<uint8_t>(8 * Bits(76, 2));
  if (destination >= 0) Writes(destination);
  result_.uniform = decoded_.guard_uniform;
  if (!FieldIsImmediate() || !Plain({76, 77}, false) || !Source(0, source) ||
      !Source(1, source + 1)) {
    return false;
  }
  return (result_.source[1].value & ~int64_t{0x7f}) == 0;
}

// S2R, S2UR, CS2R: Rd, SR.
bool Interpreter::ReadSpecial() {
  const int64_t number = Operand(1).value;
  Writes(0);
  // A pair, also where it is RZ.
  if (decoded_.opcode == 0x805) result_.destination_words = Bit(80) ? 2 : 1;
  result_.special = Special(number);
  if (result_.special == SassSpecial::kZero) {
    result_.op = SassOp::kMove;
    result_.source[0].words = result_.destination_words;
    return true;
  }
  result_.op = SassOp::kReadSpecial;
  return true;
}

// LDC: Rd, Ra, constant. ULDC: URd, constant, or URd, URa, constant.
bool Interpreter::ReadConstant() {
  result_.op = SassOp::kReadConstant;
  Writes(0);
  const int at = decoded_.operand_count - 1;
  const SassOperand& constant = Operand(at);
  if (constant.kind != SassOperandKind::kConstant ||
      decoded_.memory_count != 1 || at > 2 || Bits(76, 5) != 0 ||
      Bits(92, 13) != 0) {
    return false;
  }
  if (at == 2 && !Source(0, 1)) return false;
  result_.constant_bank = constant.bank;
  result_.constant_offset = static_cast<int32_t>(constant.value);
  result_.constant_bytes = static_cast<uint8_t>(decoded_.memory[0].bytes);
  result_.destination_words = static_cast<uint8_t>(
      decoded_.memory[0].bytes <= 4 ? 1 : decoded_.memory[0].bytes / 4);
  // Codes 1 and 3 are .S8 and .S16.
  result_.is_signed = Bits(73, 3) == 1 || Bits(73, 3) == 3;
  return true;
}

bool Interpreter::Interpret() {
  switch (decoded_.opcode & 0x1ff) {
    case 0x002:  // MOV
    case 0x082:  // UMOV
      return Move();
    case 0x003:  // P2R
    case 0x083:  // UP2UR
      return PredicateSet(SassOp::kPredicatesToRegister, 0, 2);
    case 0x004:  // R2P
    case 0x084:  // UR2UP
      return PredicateSet(SassOp::kRegisterToPredicates, -1, 1);
    case 0x007:  // SEL
    case 0x008:  // FSEL, without modifiers a move of bits
    case 0x087:  // USEL
      return Two(SassOp::kSelect, {}) && ReadsPredicate(0, 3);
    case 0x00c:  // ISETP
    case 0x08c:  // UISETP
      return Compare();
    case 0x00f:  // VIMNMX3
      return MinMaxOfThree(SassOp::kMinMax3);
    case 0x010:  // IADD3
    case 0x090:  // UIADD3
    case 0x097:  // UIADD3.64
      return Add();
    case 0x011:  // LEA
    case 0x091:  // ULEA
      return ShiftAdd();
    case 0x012:  // LOP3
    case 0x092:  // ULOP3
      return Logic();
    case 0x013:  // IABS
      return One(SassOp::kAbsolute, {}, false);
    case 0x016:  // PRMT
    case 0x096:  // UPRMT
      result_.op = SassOp::kPermute;
      result_.permute_mode = static_cast<uint8_t>(Bits(72, 3));
      Writes(0);
      // Modes of UPRMT have no names.
      return (result_.permute_mode == 0 || !decoded_.guard_uniform) &&
             result_.permute_mode < 7 && Plain({72, 73, 74}, false) &&
             Source(0, 1) && Source(1, 2) && Source(2, 3);
    case 0x017:  // IMNMX
    case 0x048:  // VIMNMX
      return MinMax();
    case 0x019:  // SHF
    case 0x099:  // USHF
      return Funnel();
    case 0x01a:  // SGXT
    case 0x09a:  // USGXT
      return Two(SassOp::kSignExtend, {73, 75});
    case 0x01b:  // BMSK
    case 0x09b:  // UBMSK
      return Two(SassOp::kBitMask, {75});
    case 0x01c:  // PLOP3
    case 0x09c:  // UPLOP3
      return LogicPredicate();
    case 0x024:  // IMAD
    case 0x0a4:  // UIMAD
      return MultiplyAdd();
    case 0x025:  // IMAD.WIDE
    case 0x0a5:  // UIMAD.WIDE
      return MultiplyLong(SassOp::kMultiplyWide);
    case 0x027:  // IMAD.HI
      return MultiplyLong(SassOp::kMultiplyHigh);
    case 0x031:  // HFMA2
    case 0x035:  // HFMA2.MMA
      return HalfConstant();
    case 0x036:  // VIADD: Rd, Ra, V
      result_.op = SassOp::kAdd;
      Writes(0);
      return Plain({}, true) && Source(0, 1) && Negatable(1, 2, Place::kV);
    case 0x046:  // VIADDMNMX
      return MinMaxOfThree(SassOp::kAddMinMax);
    case 0x0bd:  // UFLO
    case 0x100:  // FLO
      return FindLeading();
    case 0x0be:  // UBREV
    case 0x101:  // BREV
      return One(SassOp::kReverseBits, {}, false);
    case 0x0bf:  // UPOPC
    case 0x109:  // POPC
      return One(SassOp::kPopulation, {}, true);
    case 0x0b9:  // ULDC
    case 0x0bb:
    case 0x182:  // LDC
      return ReadConstant();
    case 0x0ca:  // R2UR: Pu, URd, Ra
    case 0x1c2:
      result_.op = SassOp::kMove;
      Writes(1);
      return Bits(72, 9) == 0 && Bits(32, 32) == 0 && Bits(92, 13) == 0 &&
             WritesPredicate(0, 0) && NoPredicate(0) && Source(0, 2);
    case 0x005:  // CS2R
    case 0x119:  // S2R
    case 0x1c3:  // S2UR
      return ReadSpecial();
    default:
      return false;
  }
}

}  // namespace

SassOperation InterpretSass(uint64_t low, uint64_t high,
                            const SassInstruction& decoded) {
  return Interpreter(low, high, decoded).Run();
}

}  // namespace heddle::cubin
