// SPDX-License-Identifier: Apache-2.0
#include "tests/sass_machine/memory.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace heddle::sass_machine {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

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
  if (found == buffers_.begin()) return AtSparse(address, size);
  --found;
  const uint64_t offset = address - found->first;
  const uint64_t room = found->second.size();
  if (offset > room || size > room - offset) return AtSparse(address, size);
  return found->second.data() + offset;
}

void Memory::AddSparse(uint64_t address, uint64_t size) {
  sparse_[address] = size;
}

uint8_t* Memory::AtSparse(uint64_t address, uint64_t size) {
  auto found = sparse_.upper_bound(address);
  if (found == sparse_.begin()) return nullptr;
  --found;
  const uint64_t offset = address - found->first;
  if (offset > found->second || size > found->second - offset) return nullptr;
  const uint64_t in_page = address % kPage;
  if (size > kPage - in_page) return nullptr;
  std::vector<uint8_t>& page = pages_[address - in_page];
  if (page.empty()) {
    page.resize(kPage);
    for (uint64_t i = 0; i < kPage; ++i) {
      page[i] = static_cast<uint8_t>((address / kPage + i * 7) % 251);
    }
  }
  return page.data() + in_page;
}

}  // namespace heddle::sass_machine
