// SPDX-License-Identifier: Apache-2.0
// Copies, reductions and prefetches by the tensor memory accelerator.

#include "runtime/cubin/sass_slots.h"

namespace heddle::cubin::sass {
namespace {

constexpr SassClass kBulk = SassClass::kBulk;
constexpr SassSpace kGlobal = SassSpace::kGlobal;
constexpr SassSpace kShared = SassSpace::kShared;
constexpr SassSpace kCluster = SassSpace::kDistributedShared;

// Tensor copies. The uniform registers at bit 32 hold shared-memory addresses
// and coordinates, those at bit 24 the address of the tensor map.
constexpr Slot kTensorMap = kUa.Of(Count::kTwo).As(Part::kBase, 1);
constexpr Slot kPolicy = Uniform(40).Of(Count::kTwo).If(Set(76));
constexpr Slot Box(Count count, uint8_t access) {
  return kUb.Of(count).As(Part::kBase, access);
}

constexpr Row kRows[] = {
    // Tensor copies: load, store, reduce, prefetch.
    UniformExact(0x3b4, "UTMALDG", kBulk,
                 {Box(Count::kTensorRank2, 0), kTensorMap, kUc, kPolicy})
        .When({Set(91)})
        .Touches(Unsized(kCluster, SassMemoryKind::kStore),
                 Unsized(kGlobal, SassMemoryKind::kLoad)),
    UniformExact(0x5b4, "UTMALDG", kBulk,
                 {Box(Count::kTensorRank2, 0), kTensorMap, kPolicy})
        .When({Set(91)})
        .Touches(Unsized(kCluster, SassMemoryKind::kStore),
                 Unsized(kGlobal, SassMemoryKind::kLoad)),
    UniformExact(
        0x3b5, "UTMASTG", kBulk,
        {Box(Count::kTensorRank1, 1), kTensorMap.As(Part::kBase, 0), kPolicy})
        .When({Set(91)})
        .Touches(Unsized(kGlobal, SassMemoryKind::kStore),
                 Unsized(kShared, SassMemoryKind::kLoad)),
    UniformExact(
        0x3b6, "UTMAREDG", kBulk,
        {Box(Count::kTensorRank1, 1), kTensorMap.As(Part::kBase, 0), kPolicy})
        .When({Set(91)})
        .Touches(Unsized(kGlobal, SassMemoryKind::kReduction),
                 Unsized(kShared, SassMemoryKind::kLoad)),
    UniformExact(0x3b8, "UTMAPF", kBulk,
                 {kUb.Of(Count::kTensorRank), kTensorMap.As(Part::kBase, 0),
                  kUc, kPolicy})
        .When({Set(91)})
        .Touches(Unsized(kGlobal, SassMemoryKind::kPrefetch)),
    UniformExact(
        0x5b8, "UTMAPF", kBulk,
        {kUb.Of(Count::kTensorRank), kTensorMap.As(Part::kBase, 0), kPolicy})
        .When({Set(91)})
        .Touches(Unsized(kGlobal, SassMemoryKind::kPrefetch)),
    // Bulk copies: [destination], [source], size in units of 16 bytes. Bit 73
    // says that the destination, bit 74 that the source is shared memory.
    UniformExact(0x3ba, "UBLKCP", kBulk,
                 {Box(Count::kTwo, 0), kUa.Of(Count::kTwo).As(Part::kBase, 1),
                  kUc, kPolicy})
        .When({Set(91), Set(73), Clear(74)})
        .Touches(Unsized(kCluster, SassMemoryKind::kStore),
                 Unsized(kGlobal, SassMemoryKind::kLoad)),
    UniformExact(0x3ba, "UBLKCP", kBulk,
                 {Box(Count::kTwo, 0), kUa.As(Part::kBase, 1), kUc, kPolicy})
        .When({Set(91), Clear(73), Set(74)})
        .Touches(Unsized(kGlobal, SassMemoryKind::kStore),
                 Unsized(kShared, SassMemoryKind::kLoad)),
    UniformExact(0x3ba, "UBLKCP", kBulk,
                 {Box(Count::kTwo, 0), kUa.As(Part::kBase, 1), kUc, kPolicy})
        .When({Set(91), Set(73), Set(74)})
        .Touches(Unsized(kCluster, SassMemoryKind::kStore),
                 Unsized(kShared, SassMemoryKind::kLoad)),
    UniformExact(0x3bb, "UBLKRED", kBulk,
                 {Box(Count::kTwo, 0), kUa.As(Part::kBase, 1), kUc, kPolicy})
        .When({Set(91), Set(73), Set(74)})
        .Touches(Unsized(kCluster, SassMemoryKind::kReduction),
                 Unsized(kShared, SassMemoryKind::kLoad)),
    UniformExact(0x3bb, "UBLKRED", kBulk,
                 {Box(Count::kTwo, 0), kUa.As(Part::kBase, 1), kUc, kPolicy})
        .When({Set(91), Clear(73), Set(74)})
        .Touches(Unsized(kGlobal, SassMemoryKind::kReduction),
                 Unsized(kShared, SassMemoryKind::kLoad)),
    UniformExact(0x3bc, "UBLKPF", kBulk,
                 {kUa.Of(Count::kTwo).As(Part::kBase, 0), kUc, kPolicy})
        .When({Set(91)})
        .Touches(Unsized(kGlobal, SassMemoryKind::kPrefetch)),
    // Caches of tensor maps.
    UniformExact(0x9b9, "UTMACCTL", kBulk,
                 {kUa.Of(Count::kTwo).As(Part::kBase, 0)})
        .When({Set(91)}),
    UniformExact(0x9b9, "UTMACCTL", kBulk).When({Clear(91)}),
    UniformExact(0x9b7, "UTMACMDFLUSH", kBulk),
};

}  // namespace

absl::Span<const Row> BulkRows() { return kRows; }

}  // namespace heddle::cubin::sass
