// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_MEMORY_H_
#define HEDDLE_TESTS_HOSTDEVICE_MEMORY_H_

// Device memory: ordinary memory of the process at fixed addresses.
//
// All of it lies in one range that starts at kBase in every process, so that an
// address that a trace recorded can be had again by another process
// (cuMemAddressReserve). cuMemAlloc and its relatives take addresses from the
// first half, reservations without a wanted address from the second.
//
// Nothing is ever zero by chance: new memory is filled with a seeded pattern,
// freed memory with another.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/hostdevice/api.h"

namespace heddle::hostdevice {

struct Context;

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer has shadow memory for few ranges of addresses.
inline constexpr uint64_t kBase = 0x7e9000000000;
inline constexpr bool kAnyAddress = false;
#else
inline constexpr uint64_t kBase = 0x6f0000000000;
inline constexpr bool kAnyAddress = true;  // can be reserved
#endif
inline constexpr uint64_t kHalf = uint64_t{64} << 30;
inline constexpr uint64_t kPageSize = uint64_t{2} << 20;  // VMM granularity
inline constexpr uint64_t kAllocAlignment = 512;
inline constexpr uint64_t kCapacity = uint64_t{8} << 30;
// Larger allocations are filled at their start and end only.
inline constexpr uint64_t kFillLimit = uint64_t{256} << 20;

enum class AllocationKind : uint8_t {
  kDevice,   // cuMemAlloc, cuMemAllocPitch, module variables
  kAsync,    // stream-ordered, from a pool
  kManaged,  // cuMemAllocManaged
  kHost,     // cuMemAllocHost, cuMemHostAlloc
  kRegistered,
  kMapped,  // cuMemMap
  kGraph,   // of a memory allocation node: lives as long as its graphs
};

struct Allocation {
  uint64_t address = 0;
  uint64_t size = 0;  // as asked for
  AllocationKind kind = AllocationKind::kDevice;
  Context* context = nullptr;
  uint64_t id = 0;  // CU_POINTER_ATTRIBUTE_BUFFER_ID
  unsigned flags = 0;
  void* pool = nullptr;      // kAsync: its MemoryPool
  bool free_queued = false;  // kAsync: a free is on its way
};

// A free range allocator: addresses only.
class RangeAllocator {
 public:
  RangeAllocator(uint64_t start, uint64_t size);
  // First fit; 0 if there is no room.
  uint64_t Take(uint64_t size, uint64_t alignment);
  bool TakeAt(uint64_t address, uint64_t size);
  void Give(uint64_t address, uint64_t size);

 private:
  std::map<uint64_t, uint64_t> free_;  // start → size
};

// Physical memory of cuMemCreate: a piece of one memory file.
struct Physical {
  uint64_t file_offset = 0;
  uint64_t size = 0;
  int references = 1;  // handle retains and mappings
  int handle_references = 1;
  bool filled = false;  // with the pattern of new memory
  CUmemAllocationProp prop{};
};

class Memory {
 public:
  explicit Memory(uint64_t seed);

  // Device memory. CUDA_ERROR_OUT_OF_MEMORY beyond kCapacity.
  CUresult Allocate(uint64_t size, AllocationKind kind, Context* context,
                    Allocation** out);
  // Poisons and gives back. `allocation` is gone afterwards.
  void Free(Allocation* allocation);

  // Memory that the host owns: the driver only keeps a note of it.
  CUresult AddHost(void* data, uint64_t size, AllocationKind kind,
                   unsigned flags, Context* context);
  // Pinned host memory, page aligned; nullptr if there is none.
  void* AllocateHost(uint64_t size);
  // For kHost frees the memory, for kRegistered only forgets it.
  void RemoveHost(Allocation* allocation);

  // The allocation that holds `address`, or nullptr.
  Allocation* Find(uint64_t address);
  // The one that starts there.
  Allocation* FindStart(uint64_t address);
  // Whether [address, address + size) lies in one allocation, or in mapped
  // pages behind one another.
  bool Contains(uint64_t address, uint64_t size);
  // Whether the address belongs to the device's range, allocated or not.
  static bool InDeviceRange(uint64_t address);

  uint64_t used() const { return used_; }
  // All allocations of a context, when it goes.
  void FreeAll(const Context* context);

  // Virtual memory management.
  CUresult Reserve(uint64_t size, uint64_t alignment, uint64_t wanted,
                   uint64_t* out);
  CUresult Unreserve(uint64_t address, uint64_t size);
  CUresult CreatePhysical(uint64_t size, const CUmemAllocationProp& prop,
                          Physical** out);
  Physical* FindPhysical(CUmemGenericAllocationHandle handle);
  void RetainHandle(Physical* physical);
  CUresult ReleaseHandle(Physical* physical);
  CUresult Map(uint64_t address, uint64_t size, uint64_t offset,
               Physical* physical, Context* context);
  CUresult Unmap(uint64_t address, uint64_t size);
  CUresult SetAccess(uint64_t address, uint64_t size, int protection);
  CUresult GetAccess(uint64_t address, int* protection);
  Physical* PhysicalAt(uint64_t address);

  // Fills `size` bytes of fresh or freed memory; see kFillLimit.
  void Fill(uint64_t address, uint64_t size);

 private:
  struct Mapping {
    uint64_t size = 0;
    uint64_t offset = 0;
    Physical* physical = nullptr;
    int protection = 0;
  };

  bool EnsureRange();
  void Drop(Physical* physical);

  const uint64_t seed_;
  uint64_t next_id_ = 1;
  uint64_t used_ = 0;
  bool range_ready_ = false;
  int file_ = -1;
  RangeAllocator heap_;
  RangeAllocator virtual_;
  RangeAllocator file_space_;
  std::map<uint64_t, std::unique_ptr<Allocation>> allocations_;
  std::map<uint64_t, uint64_t> reservations_;
  std::map<uint64_t, Mapping> mappings_;
  std::map<Physical*, std::unique_ptr<Physical>> physicals_;
};

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_MEMORY_H_
