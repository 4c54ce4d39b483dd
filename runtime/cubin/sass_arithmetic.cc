// SPDX-License-Identifier: Apache-2.0
// Arithmetic, conversions and matrix products: everything whose sources come in
// forms, and the uniform datapath's copies of it.

#include "runtime/cubin/sass_slots.h"

namespace heddle::cubin::sass {
namespace {

constexpr SassClass kI = SassClass::kInteger;
constexpr SassClass kF = SassClass::kFloat;
constexpr SassClass kT = SassClass::kTensor;
constexpr SassClass kX = SassClass::kConversion;

constexpr Slot kRd2 = kRd.Of(Count::kTwo);
constexpr Slot kRa2 = kRa.Of(Count::kTwo);
constexpr Slot kB2 = kB.Of(Count::kTwo);
constexpr Slot kC2 = kC.Of(Count::kTwo);
constexpr Slot kV2 = kV.Of(Count::kTwo);
constexpr Slot kPpX = kPp.If(Set(74));  // carry in
constexpr Slot kPqX = kPq.If(Set(74));
constexpr Slot kUppX = kUpp.If(Set(74));
constexpr Slot kUpqX = kUpq.If(Set(74));

constexpr Row kRows[] = {
    Arith(0x002, kFormsB, "MOV", SassClass::kMove, {kRd, kV}),
    Arith(0x003, 1 << 1, "P2R", SassClass::kPredicate,
          {kRd, AnyPredicate(false), kRa, kRb}),
    Arith(0x003, 1 << 4, "P2R", SassClass::kPredicate,
          {kRd, PredicateSet(SlotKind::kPredicateSet, false), kRa, kImm32}),
    Arith(0x004, 1 << 1, "R2P", SassClass::kPredicate,
          {AnyPredicate(true), kRa, kRb}),
    Arith(0x004, 1 << 4, "R2P", SassClass::kPredicate,
          {PredicateSet(SlotKind::kPredicateSet, true), kRa, kImm32}),
    Arith(0x007, kFormsB, "SEL", kI, {kRd, kRa, kV, kPp}),
    Arith(0x008, kFormsB, "FSEL", kF, {kRd, kRa, kV, kPp}),
    Arith(0x009, kFormsB, "FMNMX", kF, {kRd, kRa, kV, kPp}).When({Clear(65)}),
    Arith(0x00a, kFormsB, "FSET", kF, {kRd, kRa, kV, kPp}),
    Arith(0x00b, kFormsB, "FSETP", kF, {kPu, kPv, kRa, kV, kPp}),
    Arith(0x00c, kFormsB, "ISETP", kI,
          {kPu, kPv, kRa, kV, kPp, kPr.If(Set(72))}),
    Arith(0x00f, kFormsAll, "VIMNMX3", kI, {kRd, kRa, kB, kC, kPp}),
    Arith(0x010, kFormsB, "IADD3", kI,
          {kRd, kPu, kPv, kRa, kB, kC, kPpX, kPqX}),
    Arith(
        0x011, kFormsB, "LEA", kI,
        {kRd, kPu, kRa, kB, kC.If(Set(80), Clear(73)), Immediate(75, 5), kPpX}),
    // A constant high part; ptxas writes RZ for 0, cuBLASLt's generator does not.
    Arith(0x011, 1 << 2, "LEA", kI,
          {kRd, kPu, kRa, kB, kC, Immediate(75, 5), kPpX})
        .When({Set(80), Clear(73)}),
    Arith(0x012, kFormsB, "LOP3", kI,
          {kPu, kRd, kRa, kB, kC, Immediate(72, 8), kPp}),
    Arith(0x013, kFormsB, "IABS", kI, {kRd, kV}),
    Arith(0x014, kFormsAll, "VABSDIFF", kI, {kRd, kPu, kRa, kB, kC}),
    Arith(0x015, kFormsAll, "VABSDIFF4", kI, {kRd, kPu, kRa, kB, kC}),
    Arith(0x016, kFormsAll, "PRMT", kI, {kRd, kRa, kB, kC}),
    Arith(0x017, kFormsB, "IMNMX", kI, {kRd, kRa, kV, kPp}),
    Arith(0x019, kFormsAll, "SHF", kI, {kRd, kRa, kB, kC}),
    Arith(0x01a, kFormsB, "SGXT", kI, {kRd, kRa, kV}),
    Arith(0x01b, kFormsB, "BMSK", kI, {kRd, kRa, kV}),
    Arith(0x01c, 1 << 4, "PLOP3", SassClass::kPredicate,
          {kPu, kPv, kPp, kPq, kPr.If(Clear(67)), kUpr.If(Set(67)),
           Plain(SlotKind::kLut), Immediate(16, 8)}),
    Arith(0x020, kFormsB, "FMUL", kF, {kRd, kRa, kV}),
    Arith(0x021, kFormsC, "FADD", kF, {kRd, kRa, kV}),
    Arith(0x023, kFormsAll, "FFMA", kF, {kRd, kRa, kB, kC}),
    Arith(0x024, kFormsAll, "IMAD", kI, {kRd, kRa, kB, kC, kPpX}),
    Arith(0x025, kFormsAll, "IMAD", kI, {kRd2, kPu, kRa, kB, kC2, kPpX}),
    Arith(0x026, kFormsAll, "IDP", kI, {kRd, kRa, kB, kC}),
    Arith(0x027, kFormsAll, "IMAD", kI, {kRd, kPu, kRa, kB, kC2, kPpX}),
    Arith(0x028, kFormsB, "DMUL", kF, {kRd2, kRa2, kV2}),
    Arith(0x029, kFormsC, "DADD", kF, {kRd2, kRa2, kC2}),
    Arith(0x02a, kFormsC, "DSETP", kF, {kPu, kPv, kRa2, kV2, kPp}),
    Arith(0x02b, kFormsAll, "DFMA", kF, {kRd2, kRa2, kB2, kC2}),
    Arith(0x030, kFormsC, "HADD2", kF, {kRd, kRa, kV}),
    Arith(0x031, kFormsAll, "HFMA2", kF, {kRd, kRa, kB, kC, kPp.If(Set(79))}),
    Arith(0x032, kFormsB, "HMUL2", kF, {kRd, kRa, kV}),
    Arith(0x033, kFormsC, "HSET2", kF, {kRd, kRa, kV, kPp}),
    Arith(0x034, kFormsC, "HSETP2", kF, {kPu, kPv, kRa, kV, kPp}),
    Arith(0x035, kFormsAll, "HFMA2", kF, {kRd, kRa, kB, kC, kPp.If(Set(79))}),
    Arith(0x036, kFormsB, "VIADD", kI, {kRd, kRa, kV}),
    Arith(0x038, kFormsB, "I2I", kX, {kRd, kV}),
    Arith(0x039, kFormsAll, "I2IP", kX, {kRd, kRa, kB, kC}),
    Arith(0x03a, 1 << 1, "MOVM", kT, {kRd, kRa}).When({Clear(78), Clear(79)}),
    Arith(0x03a, 1 << 1, "MOVM", kT, {kRd2, kRa}).When({Set(78), Clear(79)}),
    Arith(0x03a, 1 << 1, "MOVM", kT, {kRd2, kRa}).When({Clear(78), Set(79)}),
    // F2FP: two values packed, merged with a third operand, or only one.
    Arith(0x03e, kFormsB, "F2FP", kX, {kRd, kRa, kB})
        .When({Clear(78), Clear(88), Clear(89), Clear(90)}),
    Arith(0x03e, kFormsB, "F2FP", kX, {kRd, kRa, kB, kC})
        .When({Set(78), Set(87), Clear(88), Clear(89), Set(90)})
        .Arch(89, 90),
    Arith(0x03e, kFormsB, "F2FP", kX, {kRd, kB})
        .When({Set(76), Set(78), Set(86), Clear(87), Set(89), Clear(90)}),
    Arith(0x03e, kFormsB, "F2FP", kX, {kRd, kB})
        .When({Clear(78), Clear(86), Clear(87), Clear(88), Set(89), Clear(90)}),
    Arith(0x040, kFormsB, "HMNMX2", kF, {kRd, kRa, kV, kPp}).When({Clear(65)}),
    Arith(0x043, kFormsAll, "F2IP", kX, {kRd, kRa, kB, kC}),
    Arith(0x045, kFormsB, "I2FP", kX, {kRd, kV}),
    Arith(0x046, kFormsAll, "VIADDMNMX", kI, {kRd, kRa, kB, kC, kPp}),
    Arith(0x047, kFormsAll, "VHMNMX", kF, {kRd, kRa, kB, kC, kPp}),
    // Two predicates of later chips must be off.
    Arith(0x048, kFormsB, "VIMNMX", kI, {kRd, kRa, kV, kPp})
        .Only(81, 6, uint64_t{1} << 63),

    // Matrix products of a warp; bits 87 to 90 hold a predicate of the uniform
    // datapath.
    Arith(0x037, 1 << 1, "IMMA", kT,
          {kRd.Of(Count::kImmaC), kRa.Of(Count::kImmaA), kRb.Of(Count::kImmaB),
           kRc.Of(Count::kImmaC), kMatrixPredicate})
        .When({Clear(72)}),
    Arith(0x03c, 1 << 1, "HMMA", kT,
          {kRd.Of(Count::kHmmaC), kRa.Of(Count::kHmmaA), kRb.Of(Count::kHmmaB),
           kRc.Of(Count::kHmmaC), kMatrixPredicate})
        .When({Clear(73)}),
    Arith(0x03d, 1 << 1, "BMMA", kT,
          {kRd.Of(Count::kBmmaC), kRa.Of(Count::kBmmaA), kRb.Of(Count::kBmmaB),
           kRc.Of(Count::kBmmaC), kMatrixPredicate}),
    Arith(0x03f, 1 << 1, "DMMA", kT,
          {kRd.Of(Count::kDmmaC), kRa.Of(Count::kDmmaA), kRb.Of(Count::kDmmaB),
           kRc.Of(Count::kDmmaC), kMatrixPredicate}),
    Exact(0x27a, "QMMA", kT,
          {kRd.Of(Count::kFour), kRa.Of(Count::kFour), kRb.Of(Count::kTwo),
           kRc.Of(Count::kFour), kMatrixPredicate})
        .When({Set(75), Clear(76)})
        .Arch(89, 89),

    // Conversions. 64-bit values take two registers.
    Arith(0x100, kFormsB, "FLO", kI, {kRd, kPu, kV}),
    Arith(0x101, kFormsB, "BREV", kI, {kRd, kV}),
    Arith(0x102, kFormsB, "FCHK", kF, {kPu, kRa, kV}),
    Arith(0x104, kFormsB, "F2F", kX, {kRd, kV}),
    Arith(0x105, kFormsB, "F2I", kX, {kRd, kV}),
    Arith(0x106, kFormsB, "I2F", kX, {kRd, kV}),
    Arith(0x107, kFormsB, "FRND", kX, {kRd, kV}),
    Arith(0x108, kFormsB, "MUFU", kF, {kRd, kV}),
    Arith(0x109, kFormsB, "POPC", kI, {kRd, kV}),
    Arith(0x110, kFormsB, "F2F", kX,
          {kRd.Of(Count::kType75), kV.Of(Count::kType84)}),
    Arith(0x111, kFormsB, "F2I", kX,
          {kRd.Of(Count::kInteger75), kV.Of(Count::kType84)}),
    Arith(0x112, kFormsB, "I2F", kX,
          {kRd.Of(Count::kType75), kV.Of(Count::kInteger84)}),
    Arith(0x113, kFormsB, "FRND", kX,
          {kRd.Of(Count::kType75), kV.Of(Count::kType84)}),

    // The uniform datapath.
    UniformExact(0x882, "UMOV", SassClass::kUniform, {kUd, kImm32})
        .When({Clear(91)}),
    UniformExact(0xc82, "UMOV", SassClass::kUniform, {kUd, kUb})
        .When({Set(91)}),
    UniformArith(0x083, 1 << 4, "UP2UR",
                 {kUd, PredicateSet(SlotKind::kUniformPredicateSet, false), kUa,
                  kImm32}),
    UniformArith(
        0x084, 1 << 4, "UR2UP",
        {PredicateSet(SlotKind::kUniformPredicateSet, true), kUa, kImm32}),
    UniformArith(0x087, kFormsUniform, "USEL", {kUd, kUa, kV, kUpp}),
    UniformArith(0x08c, kFormsUniform, "UISETP",
                 {kUpu, kUpv, kUa, kV, kUpp, kUpr.If(Set(72))}),
    UniformArith(0x090, kFormsUniform, "UIADD3",
                 {kUd, kUpu, kUpv, kUa, kB, kC, kUppX, kUpqX}),
    UniformArith(0x091, kFormsUniform, "ULEA",
                 {kUd, kUpu, kUa, kB, kC.If(Set(80), Clear(73)),
                  Immediate(75, 5), kUppX}),
    UniformArith(0x092, kFormsUniform, "ULOP3",
                 {kUpu, kUd, kUa, kB, kC, Immediate(72, 8), kUpp}),
    UniformArith(0x096, kFormsUniform, "UPRMT", {kUd, kUa, kB, kC}),
    UniformArith(0x097, kFormsUniform, "UIADD3",
                 {kUd.Of(Count::kTwo), kUpu, kUpv, kUa.Of(Count::kTwo), kB2,
                  kC2, kUppX, kUpqX}),
    UniformArith(0x099, kFormsUniform3, "USHF", {kUd, kUa, kB, kC}),
    UniformArith(0x09a, kFormsUniform, "USGXT", {kUd, kUa, kV}),
    UniformArith(0x09b, kFormsUniform, "UBMSK", {kUd, kUa, kV}),
    UniformExact(
        0x89c, "UPLOP3", SassClass::kUniform,
        {kUpu, kUpv, kUpp, kUpq, kUpr, Plain(SlotKind::kLut), Immediate(16, 8)})
        .When({Clear(91)}),
    UniformArith(0x0a4, kFormsUniform3, "UIMAD", {kUd, kUa, kB, kC, kUppX}),
    UniformArith(0x0a5, kFormsUniform, "UIMAD",
                 {kUd.Of(Count::kTwo), kUpu, kUa, kB, kC2, kUppX}),
    UniformArith(0x0bd, kFormsUniform, "UFLO", {kUd, kUpu, kV}),
    UniformArith(0x0be, kFormsUniform, "UBREV", {kUd, kV}),
    UniformArith(0x0bf, kFormsUniform, "UPOPC", {kUd, kV}),
};

}  // namespace

absl::Span<const Row> ArithmeticRows() { return kRows; }

}  // namespace heddle::cubin::sass
