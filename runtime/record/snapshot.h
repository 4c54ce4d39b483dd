// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_SNAPSHOT_H_
#define HEDDLE_RUNTIME_RECORD_SNAPSHOT_H_

// Writes the content of the program's device memory into the trace.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/record/memory_map.h"

namespace heddle::record {

class Recorder;

// A piece of one block, to be kept or described as a whole.
struct SnapshotRange {
  uint64_t address = 0;
  uint64_t size = 0;
  friend bool operator==(const SnapshotRange&, const SnapshotRange&) = default;
};

// Ranges up to this size are kept exactly under MemoryPolicy::kSmall.
inline constexpr uint64_t kSmallRange = 1u << 20;

// Cuts `blocks` at those of `pointers` (sorted) that lie inside one larger than
// kSmallRange. Every byte of every block is in exactly one range, in order.
std::vector<SnapshotRange> CutAtPointers(absl::Span<const MemoryBlock> blocks,
                                         absl::Span<const uint64_t> pointers);

// Waits for the current context's device, reads its memory, writes a Snapshot
// and its MemoryRanges. Only outside captures. False if it could not be taken
// (a note in the trace says why).
bool TakeSnapshot(Recorder& recorder, fb::SnapshotWhen when, uint32_t step);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_SNAPSHOT_H_
