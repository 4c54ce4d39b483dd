// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/transfer.h"

#include <algorithm>
#include <cstring>

#include "absl/memory/memory.h"

namespace heddle::replay {

absl::StatusOr<std::unique_ptr<Transfer>> Transfer::Create(
    const device::Driver& driver) {
  auto transfer = absl::WrapUnique(new Transfer(driver));
  if (absl::Status s = driver.Check(
          driver.StreamCreate(&transfer->stream_, CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
      !s.ok()) {
    return s;
  }
  for (int slot = 0; slot < 2; ++slot) {
    for (uint8_t*& piece : transfer->pieces_[slot]) {
      void* memory = nullptr;
      if (absl::Status s = driver.Check(
              driver.MemAllocHost(&memory, kPieceBytes), "cuMemAllocHost");
          !s.ok()) {
        return s;
      }
      piece = static_cast<uint8_t*>(memory);
    }
    if (absl::Status s = driver.Check(
            driver.EventCreate(&transfer->done_[slot], CU_EVENT_DISABLE_TIMING),
            "cuEventCreate");
        !s.ok()) {
      return s;
    }
  }
  return transfer;
}

Transfer::~Transfer() {
  if (stream_ != nullptr) driver_.StreamSynchronize(stream_);
  for (int slot = 0; slot < 2; ++slot) {
    for (uint8_t* piece : pieces_[slot]) {
      if (piece != nullptr) driver_.MemFreeHost(piece);
    }
    if (done_[slot] != nullptr) driver_.EventDestroy(done_[slot]);
  }
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
}

absl::Status Transfer::Upload(CUdeviceptr to, uint64_t size, const Fill& fill) {
  int slot = 0;
  for (uint64_t at = 0; at < size; at += kPieceBytes, slot ^= 1) {
    const uint64_t n = std::min(kPieceBytes, size - at);
    // An event that was never recorded is complete.
    if (absl::Status s = driver_.Check(driver_.EventSynchronize(done_[slot]),
                                       "cuEventSynchronize");
        !s.ok()) {
      return s;
    }
    fill(at, absl::MakeSpan(pieces_[slot][0], n));
    if (absl::Status s = driver_.Check(
            driver_.MemcpyHtoDAsync(to + at, pieces_[slot][0], n, stream_),
            "cuMemcpyHtoDAsync");
        !s.ok()) {
      return s;
    }
    if (absl::Status s = driver_.Check(
            driver_.EventRecord(done_[slot], stream_), "cuEventRecord");
        !s.ok()) {
      return s;
    }
  }
  return driver_.Check(driver_.StreamSynchronize(stream_),
                       "cuStreamSynchronize");
}

absl::Status Transfer::Upload(CUdeviceptr to, absl::Span<const uint8_t> bytes) {
  return Upload(to, bytes.size(),
                [&](uint64_t offset, absl::Span<uint8_t> out) {
                  std::memcpy(out.data(), bytes.data() + offset, out.size());
                });
}

absl::Status Transfer::Download(CUdeviceptr from, uint64_t size,
                                const Take& take) {
  return DownloadPair(from, 0, size,
                      [&](uint64_t offset, absl::Span<const uint8_t> a,
                          absl::Span<const uint8_t>) { take(offset, a); });
}

absl::Status Transfer::DownloadPair(CUdeviceptr a, CUdeviceptr b, uint64_t size,
                                    const TakePair& take) {
  const auto start = [&](uint64_t at, int slot) {
    const uint64_t n = std::min(kPieceBytes, size - at);
    CUresult result =
        driver_.MemcpyDtoHAsync(pieces_[slot][0], a + at, n, stream_);
    if (result == CUDA_SUCCESS && b != 0) {
      result = driver_.MemcpyDtoHAsync(pieces_[slot][1], b + at, n, stream_);
    }
    if (result == CUDA_SUCCESS) {
      result = driver_.EventRecord(done_[slot], stream_);
    }
    return driver_.Check(result, "cuMemcpyDtoHAsync");
  };
  if (size == 0) return absl::OkStatus();
  if (absl::Status s = start(0, 0); !s.ok()) return s;
  int slot = 0;
  for (uint64_t at = 0; at < size; at += kPieceBytes, slot ^= 1) {
    if (size - at > kPieceBytes) {
      if (absl::Status s = start(at + kPieceBytes, slot ^ 1); !s.ok()) {
        return s;
      }
    }
    if (absl::Status s = driver_.Check(driver_.EventSynchronize(done_[slot]),
                                       "cuEventSynchronize");
        !s.ok()) {
      return s;
    }
    const uint64_t n = std::min(kPieceBytes, size - at);
    take(at, absl::MakeConstSpan(pieces_[slot][0], n),
         absl::MakeConstSpan(pieces_[slot][1], b == 0 ? 0 : n));
  }
  return absl::OkStatus();
}

}  // namespace heddle::replay
