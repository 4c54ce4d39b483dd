// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/live_memory.h"

#include "absl/strings/str_cat.h"

namespace heddle::replay {

absl::Status LiveMemory::Add(const fb::Alloc& alloc) {
  if (alloc.address() == 0 || alloc.size() == 0) return absl::OkStatus();
  if (alloc.size() > ~uint64_t{0} - alloc.address()) {
    return absl::InvalidArgumentError(
        absl::StrCat("allocation of ", alloc.size(), " bytes at 0x",
                     absl::Hex(alloc.address()), " wraps around"));
  }
  blocks_[alloc.address()] =
      Block{alloc.size(), alloc.kind(), alloc.device_address()};
  return absl::OkStatus();
}

void LiveMemory::Remove(const fb::Free& free) {
  if (blocks_.erase(free.address()) != 0) return;
  // Unmapping of a range of mappings. A size of 0 matches nothing.
  auto it = blocks_.lower_bound(free.address());
  while (it != blocks_.end() && it->first - free.address() < free.size()) {
    it = blocks_.erase(it);
  }
}

std::map<uint64_t, LiveMemory::Block>::const_iterator LiveMemory::Find(
    uint64_t address) const {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return blocks_.end();
  --it;
  return address - it->first < it->second.size ? it : blocks_.end();
}

bool LiveMemory::IsDevice(uint64_t address) const {
  const auto it = Find(address);
  return it != blocks_.end() && it->second.kind != fb::MemoryKind::kHost;
}

bool LiveMemory::IsHost(uint64_t address) const {
  const auto it = Find(address);
  return it != blocks_.end() && it->second.kind == fb::MemoryKind::kHost;
}

}  // namespace heddle::replay
