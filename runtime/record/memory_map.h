// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_MEMORY_MAP_H_
#define HEDDLE_RUNTIME_RECORD_MEMORY_MAP_H_

// The program's live allocations, and the pointers into them that its launches
// carry. A snapshot cuts large allocations (a caching allocator's blocks) at
// those pointers, so that small tensors inside are kept exactly.

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "heddle/trace.h"

namespace heddle::record {

struct MemoryBlock {
  uint64_t address = 0;
  uint64_t size = 0;
  fb::MemoryKind kind = fb::MemoryKind::kDevice;
};

class MemoryMap {
 public:
  void Add(const MemoryBlock& block);
  // The size of the block that began at `address`, 0 if there was none.
  uint64_t Remove(uint64_t address);

  std::vector<MemoryBlock> Blocks() const;
  // Whether a block of device memory contains `address`.
  bool Contains(uint64_t address) const;

  // Collecting pointers costs a compare per parameter word while it is on.
  bool collects_pointers() const {
    return collect_.load(std::memory_order_relaxed);
  }
  void set_collects_pointers(bool on) {
    collect_.store(on, std::memory_order_relaxed);
  }
  // Every 8-byte aligned word of a parameter block that could be an address.
  void CollectPointers(absl::Span<const uint8_t> params);
  // Sorted, without duplicates.
  std::vector<uint64_t> Pointers() const;

 private:
  void CollectPointer(uint64_t value);

  mutable std::mutex mutex_;
  std::map<uint64_t, MemoryBlock> blocks_;
  absl::flat_hash_set<uint64_t> pointers_;
  std::atomic<bool> collect_{false};
  // Hull of all blocks ever added: most words fail this test.
  std::atomic<uint64_t> lowest_{UINT64_MAX};
  std::atomic<uint64_t> highest_{0};
};

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_MEMORY_MAP_H_
