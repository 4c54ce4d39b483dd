// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/memory_map.h"

#include <algorithm>
#include <cstring>

namespace heddle::record {
namespace {

// Addresses that this thread has collected already. A step repeats the same
// few hundred pointers, so nearly every word ends here.
struct Filter {
  uint64_t seen[1024] = {};
};
thread_local Filter t_filter;

size_t Slot(uint64_t value) {
  return (value * 0x9E3779B97F4A7C15u) >> (64 - 10);
}

bool HasDeviceContent(fb::MemoryKind kind) {
  return kind != fb::MemoryKind::kHost && kind != fb::MemoryKind::kIpc;
}

}  // namespace

void MemoryMap::Add(const MemoryBlock& block) {
  if (block.address == 0 || block.size == 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_[block.address] = block;
  lowest_ = std::min(lowest_.load(), block.address);
  highest_ = std::max(highest_.load(), block.address + block.size);
}

uint64_t MemoryMap::Remove(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return 0;
  const uint64_t size = it->second.size;
  blocks_.erase(it);
  return size;
}

std::vector<MemoryBlock> MemoryMap::Blocks() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<MemoryBlock> blocks;
  blocks.reserve(blocks_.size());
  for (const auto& [address, block] : blocks_) blocks.push_back(block);
  return blocks;
}

bool MemoryMap::Contains(uint64_t address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return false;
  --it;
  return address - it->first < it->second.size &&
         HasDeviceContent(it->second.kind);
}

void MemoryMap::CollectPointers(absl::Span<const uint8_t> params) {
  const uint64_t lowest = lowest_.load(std::memory_order_relaxed);
  const uint64_t highest = highest_.load(std::memory_order_relaxed);
  for (size_t at = 0; at + 8 <= params.size(); at += 8) {
    uint64_t value;
    std::memcpy(&value, params.data() + at, sizeof(value));
    if (value < lowest || value >= highest) continue;
    uint64_t& seen = t_filter.seen[Slot(value)];
    if (seen == value) continue;
    seen = value;
    CollectPointer(value);
  }
}

void MemoryMap::CollectPointer(uint64_t value) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Bounded: past this many cuts, more of them do not make a snapshot better.
  constexpr size_t kMaxPointers = 1u << 20;
  if (pointers_.size() < kMaxPointers) pointers_.insert(value);
}

std::vector<uint64_t> MemoryMap::Pointers() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> sorted(pointers_.begin(), pointers_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace heddle::record
