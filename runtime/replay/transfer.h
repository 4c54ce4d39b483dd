// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_TRANSFER_H_
#define HEDDLE_RUNTIME_REPLAY_TRANSFER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/driver.h"

namespace heddle::replay {

// Moves large amounts of data between host and device through two pinned
// pieces, one in flight while the other is filled or read. One thread.
class Transfer {
 public:
  static constexpr uint64_t kPieceBytes = uint64_t{16} << 20;

  static absl::StatusOr<std::unique_ptr<Transfer>> Create(
      const device::Driver& driver);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // `fill(offset, piece)` writes the bytes of [offset, offset + piece.size());
  // pieces start at multiples of kPieceBytes. Returns when all has arrived.
  using Fill = std::function<void(uint64_t offset, absl::Span<uint8_t> piece)>;
  absl::Status Upload(CUdeviceptr to, uint64_t size, const Fill& fill);
  absl::Status Upload(CUdeviceptr to, absl::Span<const uint8_t> bytes);

  // `take(offset, piece)` reads the bytes of consecutive pieces.
  using Take =
      std::function<void(uint64_t offset, absl::Span<const uint8_t> piece)>;
  absl::Status Download(CUdeviceptr from, uint64_t size, const Take& take);

  // The same pieces of two ranges of device memory together.
  using TakePair =
      std::function<void(uint64_t offset, absl::Span<const uint8_t> a,
                         absl::Span<const uint8_t> b)>;
  absl::Status DownloadPair(CUdeviceptr a, CUdeviceptr b, uint64_t size,
                            const TakePair& take);

 private:
  explicit Transfer(const device::Driver& driver) : driver_(driver) {}

  const device::Driver& driver_;
  CUstream stream_ = nullptr;
  // Two slots of two pieces each; uploads and single downloads use the first
  // piece of a slot.
  uint8_t* pieces_[2][2] = {};
  CUevent done_[2] = {};
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_TRANSFER_H_
