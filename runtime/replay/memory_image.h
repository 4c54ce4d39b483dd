// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_MEMORY_IMAGE_H_
#define HEDDLE_RUNTIME_REPLAY_MEMORY_IMAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/access/extents.h"
#include "runtime/device/driver.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

using access::Extent;
using access::ExtentSet;

// Device memory at the addresses that the recorded program had.
//
// Allocations become mappings of whole pages (usually 2 MiB) at fixed virtual
// addresses; allocations that share a page share a mapping. Module variables,
// which live where the loader puts them, are further segments under their
// recorded addresses. A current context is needed throughout.
class MemoryImage {
 public:
  struct Segment {
    uint64_t recorded = 0;
    CUdeviceptr device = 0;  // the same, but for module variables
    uint64_t size = 0;
    bool variable = false;
  };

  // Create it before anything else allocates in the context, so that as few
  // addresses as possible are taken. The memory is not initialized.
  //
  // Mapping the addresses in the host's address space to keep them free until
  // now would do the opposite: the driver regards what it finds mapped when it
  // is initialized as taken for good (seen with driver 580), and gives every
  // other address that is asked for.
  // Errors: Aborted (an address is taken in this process; running again may
  // help, as address layouts are random), ResourceExhausted (does not fit).
  static absl::StatusOr<std::unique_ptr<MemoryImage>> Create(
      const device::Driver& driver, CUdevice device, const Program& program);
  ~MemoryImage();
  MemoryImage(const MemoryImage&) = delete;
  MemoryImage& operator=(const MemoryImage&) = delete;

  void AddVariable(uint64_t recorded, CUdeviceptr device, uint64_t size);

  // Sorted by recorded address, disjoint.
  const std::vector<Segment>& segments() const { return segments_; }
  // All bytes of all segments.
  ExtentSet extents() const;
  uint64_t bytes() const;

  // Where [address, address + size) lies. OutOfRange unless one segment holds
  // it whole.
  absl::StatusOr<CUdeviceptr> Translate(uint64_t address, uint64_t size) const;
  // "0x7f… + 16 (of an allocation of 4096 bytes)"; for messages.
  std::string Describe(uint64_t address) const;

  // Calls `visit(recorded, device, size)` for the parts of `extents` that lie
  // in segments, in order; stops at the first error.
  absl::Status ForEachPiece(
      const ExtentSet& extents,
      const std::function<absl::Status(uint64_t recorded, CUdeviceptr device,
                                       uint64_t size)>& visit) const;

  // All memory but module variables, which the loader has initialized.
  absl::Status Zero();

 private:
  MemoryImage(const device::Driver& driver, const Program& program)
      : driver_(driver), program_(program) {}
  absl::Status Reserve(uint64_t granularity);
  absl::Status Map(CUdevice device, uint64_t granularity);
  absl::Status MapPiece(const CUmemAllocationProp& properties,
                        CUdeviceptr address, uint64_t size);

  const device::Driver& driver_;
  const Program& program_;
  std::vector<Extent> reserved_;
  std::vector<Extent> mappings_;
  std::vector<Segment> segments_;
};

// Page runs that cover all allocations, merged where they touch.
// Errors: InvalidArgument (sizes that no address space holds).
absl::StatusOr<std::vector<Extent>> PageRuns(
    const std::vector<Allocation>& allocations, uint64_t page);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_MEMORY_IMAGE_H_
