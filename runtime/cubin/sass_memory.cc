// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics; barriers in shared memory.

#include "runtime/cubin/sass_slots.h"

namespace heddle::cubin::sass {
namespace {

constexpr SassClass kLoad = SassClass::kLoad;
constexpr SassClass kStore = SassClass::kStore;
constexpr SassClass kAtomic = SassClass::kAtomic;
constexpr SassClass kBarrier = SassClass::kBarrier;

constexpr SassSpace kGlobal = SassSpace::kGlobal;
constexpr SassSpace kShared = SassSpace::kShared;
constexpr SassSpace kLocal = SassSpace::kLocal;
constexpr SassSpace kGeneric = SassSpace::kGeneric;
constexpr SassSpace kCluster = SassSpace::kDistributedShared;

// Addresses. [R + offset]: the register is a pair under .E. With a uniform
// register, [R.64 + UR + offset] or, with a descriptor, desc[UR][R.64 +
// offset].
constexpr Slot kBase = kRa.As(Part::kBase);
constexpr Slot kBase72 = kRa.Of(Count::kPairIf72).As(Part::kBase);
constexpr Slot kBase90 = kRa.Of(Count::kPairIf90).As(Part::kBase);
constexpr Slot kBase70 = kRa.Of(Count::kPairIf70).As(Part::kBase);
constexpr Slot kOffset = Signed(40, 24).As(Part::kOffset);
constexpr Slot kOffset32 = Signed(32, 32).As(Part::kOffset);
constexpr Slot Descriptor(uint8_t register_bit, BitTest when) {
  return Uniform(register_bit).Of(Count::kTwo).As(Part::kDescriptor).If(when);
}
constexpr Slot UniformBase(uint8_t register_bit, BitTest when) {
  return Uniform(register_bit).Of(Count::kPairIf72).As(Part::kUniform).If(when);
}
constexpr Slot kUb1 = kUb.As(Part::kUniform);
constexpr Slot kUc1 = kUc.As(Part::kUniform);

constexpr Slot Data(Slot slot, Count count) {
  return slot.Of(count).As(Part::kData);
}
constexpr Slot kLoaded = Data(kRd, Count::kSize73);
constexpr Slot kStoredB = Data(kRb, Count::kSize73);
constexpr Slot kStoredC = Data(kRc, Count::kSize73);
constexpr Slot kLoadPredicate =
    Slot{.kind = SlotKind::kInvertedPredicate, .bit = 64};

constexpr MemoryRow Sized(SassSpace space, SassMemoryKind kind, Count bytes) {
  return {.space = space, .kind = kind, .bytes = bytes};
}
constexpr MemoryRow Loads(SassSpace space) {
  return Sized(space, SassMemoryKind::kLoad, Count::kSize73);
}
constexpr MemoryRow Stores(SassSpace space) {
  return Sized(space, SassMemoryKind::kStore, Count::kSize73);
}
constexpr MemoryRow Fixed(SassSpace space, SassMemoryKind kind,
                          uint16_t bytes) {
  return {.fixed_bytes = bytes, .space = space, .kind = kind};
}

// ATOMG and ATOM: what differs is the space, and the type of the data.
constexpr Row Atom(uint16_t opcode, const char* mnemonic, SassSpace space,
                   Count type) {
  const Slot result = kRd.Of(type);
  if ((opcode >> 9) == 4) {
    return Exact(opcode, mnemonic, kAtomic,
                 {kPu, result, Descriptor(64, Set(71)), kBase70,
                  UniformBase(64, Clear(71)), kOffset, Data(kRb, type)})
        .When({Set(91)})
        .Touches(Sized(space, SassMemoryKind::kAtomic, type));
  }
  return Exact(opcode, mnemonic, kAtomic,
               {kPu, result, kBase72, kOffset, Data(kRb, type)})
      .When({Clear(91)})
      .Touches(Sized(space, SassMemoryKind::kAtomic, type));
}
// Compare and swap: [address], expected, new value.
constexpr Row CompareAndSwap(uint16_t opcode, const char* mnemonic,
                             SassSpace space) {
  const Count type = Count::kInteger73;
  return Exact(opcode, mnemonic, kAtomic,
               {kPu, kRd.Of(type), kBase72, kOffset, kRb.Of(type),
                Data(kRc, type)})
      .When({Clear(91)})
      .Touches(Sized(space, SassMemoryKind::kAtomic, type));
}
constexpr Row Reduction(uint16_t opcode, Count type, bool uniform,
                        const char* mnemonic = "REDG") {
  if (uniform) {
    return Exact(opcode, mnemonic, kAtomic,
                 {Descriptor(64, Set(71)), kBase90, UniformBase(64, Clear(71)),
                  kOffset, Data(kRb, type)})
        .When({Set(91)})
        .Touches(Sized(kGlobal, SassMemoryKind::kReduction, type));
  }
  return Exact(opcode, mnemonic, kAtomic, {kBase72, kOffset, Data(kRb, type)})
      .When({Clear(91)})
      .Touches(Sized(kGlobal, SassMemoryKind::kReduction, type));
}

// Texels by index, one dimension, no level of detail, the components in `mask`.
// Where they lie is in the texture's header.
constexpr Row Texels(Count components, int mask) {
  return Exact(
             0xf66, "TLD", kLoad,
             {kPu, Register(64, true), Data(kRd, components), kRa, kRb,
              Uniform(40).Of(Count::kTwo), Immediate(46, 8), Immediate(72, 4)})
      .When({Clear(60), Clear(61), Clear(62), Clear(63), Clear(80), Set(87),
             Clear(88), Set(91)})
      .Only(72, 8, uint64_t{1} << mask)
      .Touches(Unsized(kGlobal, SassMemoryKind::kLoad));
}

constexpr Row kRows[] = {
    Exact(0x381, "LDG", kLoad, {kPu, kLoaded, kBase72, kOffset, kLoadPredicate})
        .When({Clear(91)})
        .Touches(Loads(kGlobal)),
    Exact(0x981, "LDG", kLoad,
          {kPu, kLoaded, Descriptor(32, Set(76)), kBase90,
           UniformBase(32, Clear(76)), kOffset, kLoadPredicate})
        .When({Set(91)})
        .Touches(Loads(kGlobal)),
    Exact(0x980, "LD", kLoad, {kLoaded, kBase72, kOffset32, kLoadPredicate})
        .When({Clear(91)})
        .Touches(Loads(kGeneric)),
    Exact(0x980, "LD", kLoad,
          {kLoaded, Descriptor(32, Set(76)), kBase90,
           UniformBase(32, Clear(76)), kOffset, kLoadPredicate})
        .When({Set(91)})
        .Touches(Loads(kGeneric)),
    Exact(0x385, "ST", kStore, {kBase72, kOffset32, kStoredC})
        .When({Clear(91)})
        .Touches(Stores(kGeneric)),
    Exact(0x985, "ST", kStore,
          {Descriptor(64, Set(76)), kBase90, UniformBase(64, Clear(76)),
           kOffset, kStoredB})
        .When({Set(91)})
        .Touches(Stores(kGeneric)),
    Exact(0x386, "STG", kStore, {kBase72, kOffset, kStoredB})
        .When({Clear(91)})
        .Touches(Stores(kGlobal)),
    Exact(0x986, "STG", kStore,
          {Descriptor(64, Set(76)), kBase90, UniformBase(64, Clear(76)),
           kOffset, kStoredB})
        .When({Set(91)})
        .Touches(Stores(kGlobal)),

    Exact(0x983, "LDL", kLoad, {kLoaded, kBase, kUb1.If(Set(91)), kOffset})
        .When({Clear(76)})
        .Touches(Loads(kLocal)),
    Exact(0x387, "STL", kStore, {kBase, kOffset, kStoredB})
        .When({Clear(91)})
        .Touches(Stores(kLocal)),
    Exact(0x987, "STL", kStore, {kBase, kUc1, kOffset, kStoredB})
        .When({Set(91), Clear(76)})
        .Touches(Stores(kLocal)),
    Exact(0x984, "LDS", kLoad, {kLoaded, kBase, kUb1.If(Set(91)), kOffset})
        .Touches(Loads(kShared))
        .Scaled(),
    Exact(0x388, "STS", kStore, {kBase, kOffset, kStoredB})
        .When({Clear(91)})
        .Touches(Stores(kShared))
        .Scaled(),
    Exact(0x988, "STS", kStore, {kBase, kUc1, kOffset, kStoredB})
        .When({Set(91)})
        .Touches(Stores(kShared))
        .Scaled(),
    // Matrices of 8 rows of 16 bytes; each thread gives the address of a row.
    Exact(0x83b, "LDSM", kLoad,
          {Data(kRd, Count::kMatrices72), kBase, kUb1.If(Set(91)), kOffset})
        .Touches(Fixed(kShared, SassMemoryKind::kLoad, 16)),
    Exact(0x844, "STSM", kStore,
          {kBase, kUc1.If(Set(91)), kOffset, Data(kRb, Count::kMatrices72)})
        .Touches(Fixed(kShared, SassMemoryKind::kStore, 16)),

    // Asynchronous copy from global to shared memory.
    Exact(0x3ae, "LDGSTS", kStore,
          {Register(16).As(Part::kBase, 0), Signed(44, 20).As(Part::kOffset, 0),
           kRa.Of(Count::kPairIf72).As(Part::kBase, 1),
           Signed(32, 12).As(Part::kOffset, 1), kPp})
        .When({Clear(91)})
        .Touches(Stores(kShared), Loads(kGlobal)),
    Exact(0xdae, "LDGSTS", kStore,
          {Register(16).As(Part::kBase, 0), kUc.As(Part::kUniform, 0),
           Signed(44, 20).As(Part::kOffset, 0),
           kRa.Of(Count::kPairIf70).As(Part::kBase, 1),
           Signed(32, 12).As(Part::kOffset, 1), kPp})
        .When({Set(91), Clear(76)})
        .Touches(Stores(kShared), Loads(kGlobal)),
    Exact(0xdae, "LDGSTS", kStore,
          {Register(16).As(Part::kBase, 0), kUc.As(Part::kUniform, 0),
           Signed(44, 20).As(Part::kOffset, 0),
           Slot{.kind = SlotKind::kUniformNext, .bit = 64}.As(Part::kDescriptor,
                                                              1),
           kRa.Of(Count::kPairIf70).As(Part::kBase, 1),
           Signed(32, 12).As(Part::kOffset, 1), kPp})
        .When({Set(91), Set(76)})
        .Touches(Stores(kShared), Loads(kGlobal)),
    Exact(0xfae, "LDGSTS", kStore,
          {Register(16).As(Part::kBase, 0), Signed(44, 20).As(Part::kOffset, 0),
           kUc.Of(Count::kTwo).As(Part::kDescriptor, 1).If(Set(76)),
           kRa.Of(Count::kPairIf70).As(Part::kBase, 1),
           kUc.Of(Count::kPairIf72).As(Part::kUniform, 1).If(Clear(76)),
           Signed(32, 12).As(Part::kOffset, 1), kPp})
        .When({Set(91)})
        .Touches(Stores(kShared), Loads(kGlobal)),

    Atom(0x38a, "ATOM", kGeneric, Count::kMixed73).Arch(80, 89),
    Atom(0x98a, "ATOM", kGeneric, Count::kMixed73).Arch(80, 89),
    Atom(0x3a8, "ATOMG", kGlobal, Count::kMixed73).Arch(80, 89),
    Atom(0x9a8, "ATOMG", kGlobal, Count::kMixed73).Arch(80, 89),
    Atom(0x38a, "ATOM", kGeneric, Count::kInteger73).Arch(90, 90),
    Atom(0x98a, "ATOM", kGeneric, Count::kInteger73).Arch(90, 90),
    Atom(0x3a2, "ATOM", kGeneric, Count::kFloat73),
    Atom(0x9a2, "ATOM", kGeneric, Count::kFloat73),
    Atom(0x3a8, "ATOMG", kGlobal, Count::kInteger73).Arch(90, 90),
    Atom(0x9a8, "ATOMG", kGlobal, Count::kInteger73).Arch(90, 90),
    Atom(0x3a3, "ATOMG", kGlobal, Count::kFloat73),
    Atom(0x9a3, "ATOMG", kGlobal, Count::kFloat73),
    CompareAndSwap(0x38b, "ATOM", kGeneric),
    CompareAndSwap(0x3a9, "ATOMG", kGlobal),
    Reduction(0x98e, Count::kMixed73, false, "RED").Arch(80, 89),
    Reduction(0x98e, Count::kMixed73, true, "RED").Arch(80, 89),
    Reduction(0x98e, Count::kInteger73, false).Arch(90, 90),
    Reduction(0x98e, Count::kInteger73, true).Arch(90, 90),
    Reduction(0x9a6, Count::kFloat73, false),
    Reduction(0x9a6, Count::kFloat73, true),
    Exact(0x38c, "ATOMS", kAtomic,
          {kRd.Of(Count::kInteger73), kBase, kOffset,
           Data(kRb, Count::kInteger73)})
        .When({Clear(91)})
        .Touches(Sized(kShared, SassMemoryKind::kAtomic, Count::kInteger73))
        .Scaled(),
    Exact(0x98c, "ATOMS", kAtomic,
          {kRd.Of(Count::kInteger73), kBase, kUc1, kOffset,
           Data(kRb, Count::kInteger73)})
        .When({Set(91)})
        .Touches(Sized(kShared, SassMemoryKind::kAtomic, Count::kInteger73))
        .Scaled(),
    Exact(0x38d, "ATOMS", kAtomic,
          {kRd.Of(Count::kInteger73), kBase, kOffset, kRb.Of(Count::kInteger73),
           Data(kRc, Count::kInteger73)})
        .When({Clear(91)})
        .Touches(Sized(kShared, SassMemoryKind::kAtomic, Count::kInteger73))
        .Scaled(),
    Exact(0xdbd, "STAS", kStore,
          {kBase90, kUc1.Of(Count::kTwo), kOffset, kStoredB})
        .When({Set(91)})
        .Touches(Stores(kCluster)),
    Exact(0xdbe, "REDAS", kAtomic,
          {kRa.Of(Count::kPairIf72).As(Part::kBase), kUc1.Of(Count::kTwo),
           kOffset, Data(kRb, Count::kInteger73)})
        .When({Set(91)})
        .Touches(
            Sized(kCluster, SassMemoryKind::kReduction, Count::kInteger73)),
    Texels(Count::kOne, 1),
    Texels(Count::kTwo, 3),
    // Which space a generic address is in; no memory is touched.
    Exact(0x3aa, "QSPC", SassClass::kOther, {kPu, kRd, kBase72, kOffset})
        .When({Clear(91)}),
    Exact(0x9aa, "QSPC", SassClass::kOther,
          {kPu, kRd, Descriptor(32, Set(76)), kBase90,
           UniformBase(32, Clear(76)), kOffset})
        .When({Set(91)}),
    // Cache control: of all lines, or of one.
    Exact(0x98f, "CCTL", SassClass::kOther).When({Set(89), Clear(87)}),
    Exact(0x98f, "CCTL", SassClass::kOther, {kBase72, kOffset32})
        .When({Clear(89), Clear(91)}),
    Exact(0x98f, "CCTL", SassClass::kOther, {kBase72, kOffset32})
        .When({Set(89), Set(87), Clear(91)}),

    // Memory barriers in shared memory.
    Exact(0x5a7, "SYNCS", kBarrier, {kPu, kBase, kUc1, kOffset, kRb})
        .When({Set(91)})
        .Touches(Fixed(kShared, SassMemoryKind::kLoad, 8)),
    Exact(0x9a7, "SYNCS", kBarrier,
          {kRd.Of(Count::kTwo), kBase, kUc1, kOffset, kRb})
        .When({Set(91)})
        .Touches(Fixed(kShared, SassMemoryKind::kAtomic, 8)),
    UniformExact(0x5b2, "SYNCS", kBarrier,
                 {kUd.Of(Count::kTwo), kUa.As(Part::kBase), kOffset,
                  Data(kUb, Count::kTwo)})
        .When({Set(91)})
        .Touches(Fixed(kShared, SassMemoryKind::kAtomic, 8)),
    UniformExact(0x9b2, "SYNCS", kBarrier,
                 {Data(kUd, Count::kTwo), kUa.As(Part::kBase), kOffset})
        .When({Set(91)})
        .Touches(Fixed(kShared, SassMemoryKind::kLoad, 8)),
    Exact(0x5b1, "SYNCS", kBarrier,
          {Data(kRd, Count::kTwo), kBase, kUc1, kOffset})
        .When({Set(91)})
        .Touches(Fixed(kShared, SassMemoryKind::kLoad, 8)),
    Exact(0x9b1, "SYNCS", kBarrier, {kBase, kUc1, kOffset}).When({Set(91)}),
    Exact(0x9b1, "SYNCS", kBarrier).When({Clear(91)}),
    Exact(0x9b0, "ARRIVES", kBarrier, {kBase, kUc1, kOffset})
        .When({Set(91)})
        .Touches(Fixed(kShared, SassMemoryKind::kReduction, 8)),

    // Constant memory.
    Exact(0xb82, "LDC", kLoad,
          {kLoaded,
           kRa.As(Part::kBase),
           {.kind = SlotKind::kConstant, .count = Count::kSize73}})
        .When({Clear(91)})
        .Touches(Loads(SassSpace::kConstant)),
    UniformExact(0xab9, "ULDC", kLoad,
                 {Data(kUd, Count::kSize73),
                  {.kind = SlotKind::kConstant, .count = Count::kSize73}})
        .Touches(Loads(SassSpace::kConstant)),
    UniformExact(0xabb, "ULDC", kLoad,
                 {Data(kUd, Count::kSize73),
                  kUa.As(Part::kBase),
                  {.kind = SlotKind::kConstant, .count = Count::kSize73}})
        .When({Set(91)})
        .Touches(Loads(SassSpace::kConstant)),

};

}  // namespace

absl::Span<const Row> MemoryRows() { return kRows; }

}  // namespace heddle::cubin::sass
