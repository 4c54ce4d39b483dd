// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/hostdevice/random.h"

namespace heddle::hostdevice {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// The host reads and writes host allocations directly; they have their own
// addresses.
uint64_t HostAllocationSize(uint64_t size) { return RoundUp(size, 4096); }

}  // namespace

RangeAllocator::RangeAllocator(uint64_t start, uint64_t size) {
  free_[start] = size;
}

uint64_t RangeAllocator::Take(uint64_t size, uint64_t alignment) {
  for (const auto& [start, free_size] : free_) {
    const uint64_t at = RoundUp(start, alignment);
    if (at - start <= free_size && size <= free_size - (at - start)) {
      return TakeAt(at, size) ? at : 0;
    }
  }
  return 0;
}

bool RangeAllocator::TakeAt(uint64_t address, uint64_t size) {
  auto it = free_.upper_bound(address);
  if (it == free_.begin()) return false;
  --it;
  const auto [start, free_size] = *it;
  if (address - start > free_size || size > free_size - (address - start)) {
    return false;
  }
  free_.erase(it);
  if (address > start) free_[start] = address - start;
  const uint64_t end = address + size;
  if (start + free_size > end) free_[end] = start + free_size - end;
  return true;
}

void RangeAllocator::Give(uint64_t address, uint64_t size) {
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      previous->second += size;
      return;
    }
  }
  free_[address] = size;
}

// Offset 0 of the memory file is left out: 0 means "no room" to the allocator.
Memory::Memory(uint64_t seed)
    : seed_(seed),
      heap_(kBase, kHalf),
      virtual_(kBase + kHalf, kHalf),
      file_space_(kPageSize, uint64_t{1} << 40) {}

bool Memory::EnsureRange() {
  if (range_ready_) return true;
  void* got = mmap(
      Pointer(kBase), 2 * kHalf, PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != Pointer(kBase)) {
    if (got != MAP_FAILED) munmap(got, 2 * kHalf);
    std::fprintf(stderr,
                 "heddle host device: the address range 0x%llx + %llu GiB is "
                 "taken in this process\n",
                 static_cast<unsigned long long>(kBase),
                 static_cast<unsigned long long>(2 * kHalf >> 30));
    return false;
  }
  range_ready_ = true;
  return true;
}

bool Memory::InDeviceRange(uint64_t address) {
  return address >= kBase && address < kBase + 2 * kHalf;
}

void Memory::Fill(uint64_t address, uint64_t size) {
  const uint64_t salt = seed_ ^ address * 31 ^ next_id_++ << 20;
  if (size <= kFillLimit) {
    FillUndefined(Pointer(address), size, salt);
    return;
  }
  FillUndefined(Pointer(address), kPageSize, salt);
  FillUndefined(Pointer(address + size - kPageSize), kPageSize, salt + 1);
}

CUresult Memory::Allocate(uint64_t size, AllocationKind kind, Context* context,
                          Allocation** out) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!EnsureRange()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (size > kCapacity || used_ + size > kCapacity) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const uint64_t held = RoundUp(size, kAllocAlignment);
  // Small allocations share pages, large ones have theirs, as on a device.
  const uint64_t address =
      heap_.Take(held, size >= kPageSize ? kPageSize : kAllocAlignment);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  // Pages may be in use by a neighbour already; making them accessible again
  // changes nothing.
  const uint64_t first = address / 4096 * 4096;
  const uint64_t last = RoundUp(address + held, 4096);
  if (mprotect(Pointer(first), last - first, PROT_READ | PROT_WRITE) != 0) {
    heap_.Give(address, held);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto allocation = std::make_unique<Allocation>();
  allocation->address = address;
  allocation->size = size;
  allocation->kind = kind;
  allocation->context = context;
  allocation->id = next_id_++;
  used_ += size;
  Fill(address, size);
  *out = allocation.get();
  allocations_[address] = std::move(allocation);
  return CUDA_SUCCESS;
}

void Memory::Free(Allocation* allocation) {
  const uint64_t address = allocation->address;
  const uint64_t size = allocation->size;
  allocations_.erase(address);
  used_ -= size;
  Fill(address, size);
  if (size >= kFillLimit) {
    // Give the pages back to the system, all but the filled ones.
    madvise(Pointer(address + kPageSize), (size - 2 * kPageSize) / 4096 * 4096,
            MADV_DONTNEED);
  }
  heap_.Give(address, RoundUp(size, kAllocAlignment));
}

void* Memory::AllocateHost(uint64_t size) {
  void* data = mmap(nullptr, HostAllocationSize(size), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  if (size <= kFillLimit) FillUndefined(data, size, seed_ ^ next_id_);
  return data;
}

CUresult Memory::AddHost(void* data, uint64_t size, AllocationKind kind,
                         unsigned flags, Context* context) {
  const auto address = reinterpret_cast<uint64_t>(data);
  if (Find(address) != nullptr || Find(address + size - 1) != nullptr) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  auto allocation = std::make_unique<Allocation>();
  allocation->address = address;
  allocation->size = size;
  allocation->kind = kind;
  allocation->flags = flags;
  allocation->context = context;
  allocation->id = next_id_++;
  allocations_[address] = std::move(allocation);
  return CUDA_SUCCESS;
}

void Memory::RemoveHost(Allocation* allocation) {
  const uint64_t address = allocation->address;
  const uint64_t size = allocation->size;
  const bool owned = allocation->kind == AllocationKind::kHost;
  allocations_.erase(address);
  if (owned) munmap(Pointer(address), HostAllocationSize(size));
}

Allocation* Memory::Find(uint64_t address) {
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  --it;
  Allocation* allocation = it->second.get();
  return address - allocation->address < allocation->size ? allocation
                                                          : nullptr;
}

Allocation* Memory::FindStart(uint64_t address) {
  auto it = allocations_.find(address);
  return it == allocations_.end() ? nullptr : it->second.get();
}

bool Memory::Contains(uint64_t address, uint64_t size) {
  while (true) {
    const Allocation* allocation = Find(address);
    if (allocation == nullptr) return false;
    const uint64_t rest = allocation->address + allocation->size - address;
    if (size <= rest) return true;
    // Only mappings continue in the next one.
    if (allocation->kind != AllocationKind::kMapped) return false;
    address += rest;
    size -= rest;
  }
}

void Memory::FreeAll(const Context* context) {
  std::vector<Allocation*> owned;
  for (const auto& [address, allocation] : allocations_) {
    if (allocation->context == context &&
        allocation->kind != AllocationKind::kMapped) {
      owned.push_back(allocation.get());
    }
  }
  for (Allocation* allocation : owned) {
    if (allocation->kind == AllocationKind::kHost ||
        allocation->kind == AllocationKind::kRegistered) {
      RemoveHost(allocation);
    } else {
      Free(allocation);
    }
  }
}

}  // namespace heddle::hostdevice
