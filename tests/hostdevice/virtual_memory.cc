// SPDX-License-Identifier: Apache-2.0
// Reservations, physical memory and mappings. All physical memory lies in one
// memory file, so that a handle can be mapped at several addresses at once.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "tests/hostdevice/memory.h"

namespace heddle::hostdevice {
namespace {

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

bool Aligned(uint64_t value) { return value % kPageSize == 0; }

bool MakeInaccessible(uint64_t address, uint64_t size) {
  return mmap(Pointer(address), size, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
              0) != MAP_FAILED;
}

}  // namespace

CUresult Memory::Reserve(uint64_t size, uint64_t alignment, uint64_t wanted,
                         uint64_t* out) {
  if (size == 0 || !Aligned(size)) return CUDA_ERROR_INVALID_VALUE;
  if (!Aligned(wanted) || (alignment & (alignment - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!EnsureRange()) return CUDA_ERROR_OUT_OF_MEMORY;
  alignment = std::max(alignment, kPageSize);
  uint64_t address = 0;
  if (wanted != 0) {
    if (heap_.TakeAt(wanted, size) || virtual_.TakeAt(wanted, size)) {
      address = wanted;
    } else if (kAnyAddress && !InDeviceRange(wanted) &&
               !InDeviceRange(wanted + size - 1)) {
      // An address that another device gave out, for a trace recorded there.
      void* got = mmap(
          Pointer(wanted), size, PROT_NONE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
          0);
      if (got == Pointer(wanted)) {
        address = wanted;
      } else if (got != MAP_FAILED) {
        munmap(got, size);
      }
    }
  }
  // The wanted address is a hint: the driver answers with another one.
  if (address == 0) address = virtual_.Take(size, alignment);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations_[address] = size;
  *out = address;
  return CUDA_SUCCESS;
}

CUresult Memory::Unreserve(uint64_t address, uint64_t size) {
  auto it = reservations_.find(address);
  if (it == reservations_.end() || it->second != size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto mapped = mappings_.lower_bound(address);
  if (mapped != mappings_.end() && mapped->first < address + size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reservations_.erase(it);
  if (address >= kBase && address < kBase + kHalf) {
    heap_.Give(address, size);
  } else if (InDeviceRange(address)) {
    virtual_.Give(address, size);
  } else {
    munmap(Pointer(address), size);
  }
  return CUDA_SUCCESS;
}

CUresult Memory::CreatePhysical(uint64_t size, const CUmemAllocationProp& prop,
                                Physical** out) {
  if (size == 0 || !Aligned(size)) return CUDA_ERROR_INVALID_VALUE;
  if (used_ + size > kCapacity) return CUDA_ERROR_OUT_OF_MEMORY;
  if (file_ < 0) {
    file_ = memfd_create("heddle-hostdevice", MFD_CLOEXEC);
    // Sparse: pages exist when they are written.
    if (file_ < 0 || ftruncate(file_, int64_t{1} << 41) != 0) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  const uint64_t offset = file_space_.Take(size, kPageSize);
  if (offset == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  auto physical = std::make_unique<Physical>();
  physical->file_offset = offset;
  physical->size = size;
  physical->prop = prop;
  used_ += size;
  *out = physical.get();
  physicals_[physical.get()] = std::move(physical);
  return CUDA_SUCCESS;
}

Physical* Memory::FindPhysical(CUmemGenericAllocationHandle handle) {
  auto it = physicals_.find(reinterpret_cast<Physical*>(handle));
  if (it == physicals_.end() || it->second->handle_references == 0) {
    return nullptr;
  }
  return it->second.get();
}

void Memory::RetainHandle(Physical* physical) {
  ++physical->handle_references;
  ++physical->references;
}

CUresult Memory::ReleaseHandle(Physical* physical) {
  --physical->handle_references;
  Drop(physical);
  return CUDA_SUCCESS;
}

void Memory::Drop(Physical* physical) {
  if (--physical->references > 0) return;
  used_ -= physical->size;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(physical->file_offset),
            static_cast<off_t>(physical->size));
  file_space_.Give(physical->file_offset, physical->size);
  physicals_.erase(physical);
}

CUresult Memory::Map(uint64_t address, uint64_t size, uint64_t offset,
                     Physical* physical, Context* context) {
  if (size == 0 || !Aligned(address) || !Aligned(size) || !Aligned(offset) ||
      offset > physical->size || size > physical->size - offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto reservation = reservations_.upper_bound(address);
  if (reservation == reservations_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --reservation;
  const uint64_t at = address - reservation->first;
  if (at > reservation->second || size > reservation->second - at) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (next != mappings_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second.size > address) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  // New memory is undefined, not zero. Filled once: a second mapping of the
  // handle must see what was written through the first one.
  const bool fill = !physical->filled && size <= kFillLimit;
  if (mmap(Pointer(address), size, fill ? PROT_READ | PROT_WRITE : PROT_NONE,
           MAP_SHARED | MAP_FIXED, file_,
           static_cast<off_t>(physical->file_offset + offset)) == MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (fill) {
    Fill(address, size);
    mprotect(Pointer(address), size, PROT_NONE);
  }
  physical->filled = true;
  ++physical->references;
  mappings_[address] = {size, offset, physical, 0};
  auto allocation = std::make_unique<Allocation>();
  allocation->address = address;
  allocation->size = size;
  allocation->kind = AllocationKind::kMapped;
  allocation->context = context;
  allocation->id = next_id_++;
  allocations_[address] = std::move(allocation);
  return CUDA_SUCCESS;
}

CUresult Memory::Unmap(uint64_t address, uint64_t size) {
  // The range must be a union of whole mappings.
  auto first = mappings_.find(address);
  auto last = first;
  uint64_t covered = 0;
  while (last != mappings_.end() && last->first == address + covered &&
         covered < size) {
    covered += last->second.size;
    ++last;
  }
  if (covered != size || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!MakeInaccessible(address, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  for (auto it = first; it != last; ++it) {
    allocations_.erase(it->first);
    Drop(it->second.physical);
  }
  mappings_.erase(first, last);
  return CUDA_SUCCESS;
}

CUresult Memory::SetAccess(uint64_t address, uint64_t size, int protection) {
  uint64_t covered = 0;
  for (auto it = mappings_.find(address);
       it != mappings_.end() && it->first == address + covered &&
       covered < size;
       ++it) {
    covered += it->second.size;
  }
  if (covered != size || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (mprotect(Pointer(address), size, protection) != 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (auto it = mappings_.find(address);
       it != mappings_.end() && it->first < address + size; ++it) {
    it->second.protection = protection;
  }
  return CUDA_SUCCESS;
}

CUresult Memory::GetAccess(uint64_t address, int* protection) {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --it;
  if (address - it->first >= it->second.size) return CUDA_ERROR_INVALID_VALUE;
  *protection = it->second.protection;
  return CUDA_SUCCESS;
}

Physical* Memory::PhysicalAt(uint64_t address) {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return nullptr;
  --it;
  return address - it->first < it->second.size ? it->second.physical : nullptr;
}

}  // namespace heddle::hostdevice
