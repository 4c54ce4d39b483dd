// SPDX-License-Identifier: Apache-2.0
// Control flow, barriers, what crosses between register files, and products of
// warpgroups.

#include "runtime/cubin/sass_slots.h"

namespace heddle::cubin::sass {
namespace {

constexpr SassClass kControl = SassClass::kControlFlow;
constexpr SassClass kBarrier = SassClass::kBarrier;
constexpr SassClass kOther = SassClass::kOther;
constexpr SassClass kTensor = SassClass::kTensor;

constexpr Slot kRa2 = kRa.Of(Count::kTwo);
constexpr Slot kHere = Plain(SlotKind::kHere);
constexpr Slot kFar = Plain(SlotKind::kFar).As(Part::kOffset);
constexpr Slot kFarRelative = Plain(SlotKind::kFarRelative).As(Part::kOffset);
constexpr Slot kBarrierNumber = Immediate(54, 4);
constexpr Slot kBarrierThreads = Immediate(42, 12);

constexpr Row kRows[] = {
    Exact(0x918, "NOP", SassClass::kNop),
    Exact(0x82d, "PREEXIT", SassClass::kDependentLaunch),
    Exact(0x82e, "ACQBULK", SassClass::kDependentLaunch),

    Exact(0x947, "BRA", kControl, {kPp, kTarget})
        .When({Clear(32), Clear(33), Clear(91)})
        .Flow(SassFlow::kBranch),
    // .U: all threads of the warp go the same way.
    Exact(0x947, "BRA", kControl, {kPp, kTarget})
        .When({Set(32), Clear(33), Clear(91)})
        .Flow(SassFlow::kBranch),
    // The same, by a uniform predicate.
    Exact(0x547, "BRA", kControl, {kPp, UniformPredicate(24), kTarget})
        .When({Set(32), Clear(33), Set(91)})
        .Flow(SassFlow::kBranch),
    // Where the threads of a warp, by mask, are not together.
    Exact(0x947, "BRA", kControl, {kPp, kUa, kTarget})
        .When({Clear(32), Set(33), Set(91)})
        .Flow(SassFlow::kBranch),
    Exact(0x947, "BRA", kControl, {kPp, kUa, kTarget})
        .When({Set(32), Set(33), Set(91)})
        .Flow(SassFlow::kBranch),
    Exact(0x949, "BRX", kControl, {kPp, kRa2, kFarRelative})
        .When({Clear(91)})
        .Flow(SassFlow::kIndirectBranch),
    Exact(0x94c, "JMX", kControl, {kPp, kRa2, kFar})
        .When({Clear(91)})
        .Flow(SassFlow::kIndirectBranch),
    Exact(0x958, "BRXU", kControl, {kPp, kUa.Of(Count::kTwo), kFarRelative})
        .When({Set(91)})
        .Flow(SassFlow::kIndirectBranch),
    Exact(0x959, "JMXU", kControl, {kPp, kUa.Of(Count::kTwo), kFar})
        .When({Set(91)})
        .Flow(SassFlow::kIndirectBranch),
    Exact(0x944, "CALL", kControl, {kPp, kTarget})
        .When({Clear(91)})
        .Flow(SassFlow::kCall),
    Exact(0x344, "CALL", kControl, {kPp, kRa2, kTarget})
        .When({Clear(91)})
        .Flow(SassFlow::kIndirectCall),
    // To an absolute address, which relocation or the loader fills in.
    Exact(0x943, "CALL", kControl, {kPp, kFar})
        .When({Clear(91)})
        .Flow(SassFlow::kIndirectCall),
    Exact(0x343, "CALL", kControl, {kPp, kRa2, kFar})
        .When({Clear(91)})
        .Flow(SassFlow::kIndirectCall),
    Exact(0x950, "RET", kControl, {kPp, kRa2, kTarget})
        .When({Clear(85), Clear(91)})
        .Flow(SassFlow::kReturn),
    Exact(0x950, "RET", kControl, {kPp, kRa2, kFar})
        .When({Set(85), Clear(91)})
        .Flow(SassFlow::kReturn),
    Exact(0x94d, "EXIT", kControl, {kPp}).Flow(SassFlow::kExit),
    Exact(0x95b, "KILL", kControl, {kPp}).Flow(SassFlow::kExit),
    Exact(0x95c, "BPT", kControl, {Immediate(34, 3).As(Part::kOffset)})
        .Flow(SassFlow::kTrap),
    Exact(0x945, "BSSY", kControl,
          {kPp, Convergence(16, 4, true), Plain(SlotKind::kMeetingPlace)})
        .When({Clear(91)})
        .Flow(SassFlow::kMeetingPoint),
    Exact(0x941, "BSYNC", kControl, {kPp, Convergence(16, 4)})
        .Flow(SassFlow::kMeet),
    Exact(0x942, "BREAK", kControl, {kPp, Convergence(16, 4)}),
    Exact(0x948, "WARPSYNC", kControl, {kPp, kImm32})
        .When({Clear(86)})
        .Arch(80, 89),
    Exact(0x948, "WARPSYNC", kControl, {kPp}).When({Clear(86)}).Arch(90, 90),
    Exact(0x948, "WARPSYNC", kControl, {kPp, kTarget})
        .When({Set(86)})
        .Arch(90, 90)
        .Flow(SassFlow::kMeetingPoint),
    Exact(0x348, "WARPSYNC", kControl, {kPp, kRa}).When({Clear(86)}),
    Exact(0x348, "WARPSYNC", kControl, {kPp, kRa, kTarget})
        .When({Set(86)})
        .Flow(SassFlow::kMeetingPoint),
    Exact(0x91b, "ENDCOLLECTIVE", kControl, {kPp}).Flow(SassFlow::kReturn),
    Exact(0x946, "YIELD", kControl, {kPp}),
    Exact(0x95d, "NANOSLEEP", kOther, {kPp, kImm32})
        .When({Clear(83), Clear(91)}),
    Exact(0x35d, "NANOSLEEP", kOther, {kPp, kRb}).When({Clear(83), Clear(91)}),
    Exact(0x94e, "LEPC", SassClass::kMove,
          {kRd.Of(Count::kTwo), Plain(SlotKind::kAddressOf)}),
    Exact(0x34e, "LEPC", SassClass::kMove, {kRd.Of(Count::kTwo), kHere}),

    // Barriers of a block: the number and how many threads, each an immediate
    // or a register. RED returns a vote in the predicates that B2R reads.
    Exact(0xb1d, "BAR", kBarrier, {kBarrierNumber, kBarrierThreads})
        .When({Clear(78), Clear(91)}),
    Exact(0xb1d, "BAR", kBarrier, {kBarrierNumber, kBarrierThreads, kPp})
        .When({Clear(77), Set(78), Clear(79), Clear(91)}),
    Exact(0x51d, "BAR", kBarrier, {kRb, kBarrierThreads})
        .When({Clear(78), Clear(79), Clear(91)}),
    Exact(0x51d, "BAR", kBarrier, {kRb, kBarrierThreads, kPp})
        .When({Clear(77), Set(78), Clear(79), Clear(91)}),
    Exact(0x31d, "BAR", kBarrier, {kRb, kRb})
        .When({Clear(78), Clear(79), Clear(91)}),
    Exact(0x31d, "BAR", kBarrier, {kRb, kRb, kPp})
        .When({Clear(77), Set(78), Clear(79), Clear(91)}),
    Exact(0x91d, "BAR", kBarrier, {kBarrierNumber, kRb})
        .When({Clear(78), Clear(79), Clear(91)}),
    Exact(0x91d, "BAR", kBarrier, {kBarrierNumber, kRb, kPp})
        .When({Clear(77), Set(78), Clear(79), Clear(91)}),
    Exact(0x31c, "B2R", kBarrier, {kRd, kPu}).When({Clear(77), Set(78)}),
    Exact(0x91a, "DEPBAR", kBarrier, {Immediate(38, 6).If(Set(47))}),
    Exact(0x9af, "LDGDEPBAR", kBarrier),
    Exact(0x992, "MEMBAR", kBarrier),
    Exact(0x9ab, "ERRBAR", kBarrier),
    Exact(0x5ab, "CGAERRBAR", kBarrier),
    Exact(0x3c6, "FENCE", kBarrier),
    Exact(0x9c7, "UCGABAR_ARV", kBarrier),
    Exact(0xdc7, "UCGABAR_WAIT", kBarrier),
    Exact(0x9c5, "WARPGROUP", kBarrier, {Immediate(72, 3)}).When({Set(80)}),
    Exact(0x9c5, "WARPGROUP", kBarrier).When({Clear(80)}),
    Exact(0x9c8, "USETMAXREG", kOther, {kUpu, Immediate(32, 10)})
        .When({Clear(72), Set(73)}),
    Exact(0x9c8, "USETMAXREG", kOther, {Immediate(32, 10)})
        .When({Set(72), Clear(73)}),
    Exact(0x9c9, "USETSHMSZ", kOther, {Immediate(32, 20)}).When({Clear(72)}),
    Exact(0x9c9, "USETSHMSZ", kOther).When({Set(72)}),

    // Special registers, and between register files.
    Exact(0x919, "S2R", SassClass::kSpecialRegister, {kRd, kSpecial}),
    UniformExact(0x9c3, "S2UR", SassClass::kSpecialRegister, {kUd, kSpecial}),
    Exact(0x805, "CS2R", SassClass::kSpecialRegister,
          {kRd.Of(Count::kPairIf80), kSpecial}),
    Exact(0x2ca, "R2UR", SassClass::kMove, {kPu, kUd, kRa}).When({Clear(91)}),
    Exact(0x3c2, "R2UR", SassClass::kMove, {kPu, kUd, kRa})
        .When({Clear(91)})
        .Arch(80, 89),
    Exact(0x806, "VOTE", kOther, {kRd, kPu, kPp}).When({Clear(91)}),
    Exact(0x886, "VOTEU", kOther, {kUd, kUpu, kPp}).When({Clear(91)}),
    Exact(0x82f, "ELECT", kOther, {kPu, kUd, kPp}).When({Clear(91)}),
    Exact(0x3c4, "REDUX", kOther, {kUd, kRa}).When({Clear(91)}),
    Exact(0x3a1, "MATCH", kOther,
          {kPu.If(Clear(79)), kRd, kRa.Of(Count::kPairIf73)})
        .When({Clear(91)}),
    Exact(0x389, "SHFL", kOther, {kPu, kRd, kRa, kRb, kRc}).When({Clear(91)}),
    Exact(0x589, "SHFL", kOther, {kPu, kRd, kRa, kRb, Immediate(40, 13)})
        .When({Clear(91)}),
    Exact(0x989, "SHFL", kOther, {kPu, kRd, kRa, Immediate(53, 5), kRc})
        .When({Clear(91)}),
    Exact(0xf89, "SHFL", kOther,
          {kPu, kRd, kRa, Immediate(53, 5), Immediate(40, 13)})
        .When({Clear(91)}),
    Exact(0x355, "BMOV", kOther, {kRd, Convergence(24, 5)}).When({Clear(91)}),
    Exact(0x356, "BMOV", kOther, {Convergence(24, 5, true), kRb})
        .When({Clear(91)}),

    // Products of warpgroups: matrices by descriptors in uniform registers (the
    // first may be in registers), accumulators in registers.
    Exact(0x9f0, "HGMMA", kTensor,
          {kRd.Of(Count::kHgmma), kUa.Of(Count::kFour), kRc.Of(Count::kHgmma),
           kMatrixPredicate})
        .When({Clear(73), Set(91)}),
    Exact(0xdf0, "HGMMA", kTensor,
          {kRd.Of(Count::kHgmma), kRa.Of(Count::kFour), kUb.Of(Count::kFour),
           kRc.Of(Count::kHgmma), kMatrixPredicate})
        .When({Clear(73), Set(91)}),
    Exact(0x9f1, "IGMMA", kTensor,
          {kRd.Of(Count::kIgmma), kUa.Of(Count::kFour), kRc.Of(Count::kIgmma),
           kMatrixPredicate})
        .When({Clear(73), Set(91)}),
    Exact(0xdf1, "IGMMA", kTensor,
          {kRd.Of(Count::kIgmma), kRa.Of(Count::kFour), kUb.Of(Count::kFour),
           kRc.Of(Count::kIgmma), kMatrixPredicate})
        .When({Clear(73), Set(91)}),
    Exact(0x9f2, "BGMMA", kTensor,
          {kRd.Of(Count::kBgmma), kUa.Of(Count::kFour), kRc.Of(Count::kBgmma),
           kMatrixPredicate})
        .When({Clear(73), Set(91)}),
    Exact(0xdf2, "BGMMA", kTensor,
          {kRd.Of(Count::kBgmma), kRa.Of(Count::kFour), kUb.Of(Count::kFour),
           kRc.Of(Count::kBgmma), kMatrixPredicate})
        .When({Clear(73), Set(91)}),
    Exact(0x9f3, "QGMMA", kTensor,
          {kRd.Of(Count::kQgmma), kUa.Of(Count::kFour), kRc.Of(Count::kQgmma),
           kMatrixPredicate})
        .When({Clear(73), Set(91)}),
    Exact(0xdf3, "QGMMA", kTensor,
          {kRd.Of(Count::kQgmma), kRa.Of(Count::kFour), kUb.Of(Count::kFour),
           kRc.Of(Count::kQgmma), kMatrixPredicate})
        .When({Clear(73), Set(91)}),
};

}  // namespace

absl::Span<const Row> ControlRows() { return kRows; }

}  // namespace heddle::cubin::sass
