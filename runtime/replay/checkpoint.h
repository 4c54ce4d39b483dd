// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_CHECKPOINT_H_
#define HEDDLE_RUNTIME_REPLAY_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/access/extents.h"
#include "runtime/device/driver.h"
#include "runtime/replay/memory_image.h"
#include "runtime/replay/transfer.h"

namespace heddle::replay {

using access::Extent;
using access::ExtentSet;

// A copy of a part of a memory image: on the device where it fits (a restore
// then runs at memory bandwidth), else on the host. The device must be idle in
// every call; the calls return when they are done.
class Checkpoint {
 public:
  // For the bytes `extents` of `image`; takes the memory, saves nothing yet.
  // `image`, `transfer` and `driver` outlive the checkpoint.
  // Errors: ResourceExhausted when neither side has room.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Create(
      const device::Driver& driver, const MemoryImage& image,
      Transfer& transfer, const ExtentSet& extents);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  absl::Status Save();
  absl::Status Restore() const { return RestoreOnly(extents_); }
  absl::Status RestoreOnly(const ExtentSet& within) const;
  // The bytes of `within` that are now other than those saved. Neighbours less
  // than kMergeBytes apart are reported as one extent.
  static constexpr uint64_t kMergeBytes = 16;
  absl::StatusOr<ExtentSet> Changed(const ExtentSet& within) const;
  absl::StatusOr<ExtentSet> Changed() const { return Changed(extents_); }

  bool on_device() const { return host_bytes_ == 0; }
  const ExtentSet& extents() const { return extents_; }

 private:
  struct Piece {
    uint64_t recorded = 0;
    CUdeviceptr image = 0;
    uint64_t size = 0;
    CUdeviceptr device_copy = 0;
    std::unique_ptr<uint8_t[]> host_copy;
  };

  Checkpoint(const device::Driver& driver, Transfer& transfer,
             const ExtentSet& extents)
      : driver_(driver), transfer_(transfer), extents_(extents) {}
  absl::Status AddPiece(uint64_t recorded, CUdeviceptr image, uint64_t size,
                        uint64_t* device_budget);
  // Calls `visit(piece, offset, size)` for the parts of `within` saved here.
  template <typename Visit>
  absl::Status ForEachPart(const ExtentSet& within, Visit visit) const;
  absl::Status ComparePiece(const Piece& piece, uint64_t offset, uint64_t size,
                            ExtentSet& changed) const;

  const device::Driver& driver_;
  Transfer& transfer_;
  ExtentSet extents_;
  std::vector<Piece> pieces_;
  std::vector<CUdeviceptr> blocks_;  // device memory that pieces share
  CUdeviceptr block_at_ = 0;
  uint64_t block_left_ = 0;
  uint64_t host_bytes_ = 0;
};

// Appends the extents in which `a` and `b` (of one size, at `address`) differ.
void AppendDifferences(uint64_t address, const uint8_t* a, const uint8_t* b,
                       uint64_t size, uint64_t merge, ExtentSet& out);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_CHECKPOINT_H_
