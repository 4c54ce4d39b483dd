// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_WATCHED_MEMORY_H_
#define HEDDLE_RUNTIME_REPLAY_WATCHED_MEMORY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/access/extents.h"
#include "runtime/replay/memory_image.h"
#include "runtime/replay/transfer.h"

namespace heddle::replay {

using access::Extent;
using access::ExtentSet;

// Bytes of a set of extents, in host memory. A plain value.
class HostBytes {
 public:
  HostBytes() = default;
  // Zeros.
  explicit HostBytes(ExtentSet extents);

  const ExtentSet& extents() const { return extents_; }
  // The bytes from `address` on, to the end of the extent that holds it;
  // nullptr if none does.
  uint8_t* At(uint64_t address) {
    return const_cast<uint8_t*>(std::as_const(*this).At(address));
  }
  const uint8_t* At(uint64_t address) const;

 private:
  ExtentSet extents_;
  std::vector<uint64_t> offsets_;  // by extent, in bytes_
  std::vector<uint8_t> bytes_;
};

// The bytes of `within` in which `a` and `b` differ, to the byte. Both hold all
// of `within`, no extent of which may reach from one extent of theirs into
// another. `inverted`: where `a` is not the complement of `b`.
ExtentSet Differences(const HostBytes& a, const HostBytes& b,
                      const ExtentSet& within, bool inverted = false);

// A part of device memory with a copy of it on the host, for many small runs:
// finding out what changed reads the device once and copies nothing there; what
// is put back is no more than asked for. (A Checkpoint copies everything for
// every run, and takes neighbours of what changed for changed.)
//
// Threads: one; the device is idle in every call. Errors are the driver's.
class WatchedMemory {
 public:
  // Copies `extents`, a part of the image, to the host. The arguments outlive
  // the object.
  static absl::StatusOr<WatchedMemory> Create(const MemoryImage& image,
                                              Transfer& transfer,
                                              const ExtentSet& extents);

  const ExtentSet& extents() const { return copy_.extents(); }
  const HostBytes& copy() const { return copy_; }

  // Where the device differs from the copy, to the byte.
  absl::StatusOr<ExtentSet> Changed() const;
  // What the device holds. All sets are parts of extents().
  absl::StatusOr<HostBytes> Read(const ExtentSet& within) const;
  // Makes the copy as the device is.
  absl::Status Accept(const ExtentSet& within);
  // Makes the device as the copy is, but for the bytes of `inverted`, which
  // become its complement.
  absl::Status PutBack(const ExtentSet& within,
                       const ExtentSet& inverted = {}) const;

  // `extents` with what is around them, in blocks of `block` bytes, as far as
  // it is watched. Few pieces are moved faster than many.
  ExtentSet Around(const ExtentSet& extents, uint64_t block) const {
    return extents.Rounded(block).Intersect(copy_.extents());
  }

 private:
  WatchedMemory(const MemoryImage& image, Transfer& transfer,
                const ExtentSet& extents)
      : image_(&image), transfer_(&transfer), copy_(extents) {}
  absl::Status ReadInto(const ExtentSet& within, HostBytes& bytes) const;

  const MemoryImage* image_;
  Transfer* transfer_;
  HostBytes copy_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_WATCHED_MEMORY_H_
