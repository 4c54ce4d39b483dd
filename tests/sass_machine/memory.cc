// SPDX-License-Identifier: Apache-2.0
#include "tests/sass_machine/memory.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace heddle::sass_machine {

void Memory::Add(uint64_t address, std::vector<uint8_t> content) {
  const uint64_t size = content.size();
  const auto next = buffers_.lower_bound(address);
  bool overlaps = next != buffers_.end() && next->first - address < size;
  if (next != buffers_.end() && next->first == address) overlaps = true;
  if (next != buffers_.begin()) {
    const auto before = std::prev(next);
    overlaps |= address - before->first < before->second.size();
  }
  if (overlaps || address + size < address) {
    std::fprintf(stderr, "sass_machine: buffers overlap at 0x%llx\n",
                 static_cast<unsigned long long>(address));
    std::abort();
  }
  buffers_[address] = std::move(content);
}

uint8_t* Memory::At(uint64_t address, uint64_t size) {
  auto found = buffers_.upper_bound(address);
  if (found == buffers_.begin()) return nullptr;
  --found;
  const uint64_t offset = address - found->first;
  const uint64_t room = found->second.size();
  if (offset > room || size > room - offset) return nullptr;
  return found->second.data() + offset;
}

}  // namespace heddle::sass_machine
