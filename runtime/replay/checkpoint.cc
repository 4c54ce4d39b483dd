// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

// Large pieces are cut, small ones share a block.
constexpr uint64_t kBlockBytes = uint64_t{256} << 20;
// Left free on the device for the driver's own needs (graphs, local memory).
constexpr uint64_t kReserve = uint64_t{512} << 20;
constexpr uint64_t kAlign = 256;

}  // namespace

void AppendDifferences(uint64_t address, const uint8_t* a, const uint8_t* b,
                       uint64_t size, uint64_t merge, ExtentSet& out) {
  constexpr uint64_t kChunk = 4096;
  for (uint64_t at = 0; at < size; at += kChunk) {
    const uint64_t n = std::min(kChunk, size - at);
    if (std::memcmp(a + at, b + at, n) == 0) continue;
    for (uint64_t i = at; i < at + n; ++i) {
      if (a[i] == b[i]) continue;
      const uint64_t here = address + i;
      if (!out.empty() && here - out.extents().back().end() < merge &&
          here >= out.extents().back().end()) {
        const uint64_t end = out.extents().back().end();
        out.Append({end, here + 1 - end});
      } else {
        out.Append({here, 1});
      }
    }
  }
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Create(
    const device::Driver& driver, const MemoryImage& image, Transfer& transfer,
    const ExtentSet& extents) {
  auto checkpoint = absl::WrapUnique(new Checkpoint(driver, transfer, extents));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (absl::Status s = driver.Check(
          driver.MemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo");
      !s.ok()) {
    return s;
  }
  uint64_t budget = free_bytes > kReserve ? free_bytes - kReserve : 0;
  // All on one side: a copy that is half on the host is as slow as one that
  // is there whole, and takes device memory as well.
  if (extents.bytes() + kBlockBytes > budget) budget = 0;
  absl::Status status = image.ForEachPiece(
      extents, [&](uint64_t recorded, CUdeviceptr device, uint64_t size) {
        for (uint64_t at = 0; at < size;) {
          const uint64_t n = std::min(kBlockBytes, size - at);
          if (absl::Status s =
                  checkpoint->AddPiece(recorded + at, device + at, n, &budget);
              !s.ok()) {
            return s;
          }
          at += n;
        }
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return checkpoint;
}

absl::Status Checkpoint::AddPiece(uint64_t recorded, CUdeviceptr image,
                                  uint64_t size, uint64_t* device_budget) {
  Piece piece;
  piece.recorded = recorded;
  piece.image = image;
  piece.size = size;
  const uint64_t rounded = (size + kAlign - 1) / kAlign * kAlign;
  if (*device_budget != 0 && block_left_ < rounded) {
    // Blocks are only as large as what may still come.
    uint64_t held = 0;
    for (const Piece& p : pieces_) held += p.size;
    const uint64_t left = extents_.bytes() - held;
    const uint64_t want = std::max(
        rounded, std::min(kBlockBytes, left + kAlign * (left / 4096 + 1)));
    CUdeviceptr block = 0;
    if (driver_.MemAlloc(&block, want) == CUDA_SUCCESS) {
      blocks_.push_back(block);
      block_at_ = block;
      block_left_ = want;
    } else {
      *device_budget = 0;  // fragmented: the rest goes to the host
    }
  }
  if (*device_budget != 0) {
    piece.device_copy = block_at_;
    block_at_ += rounded;
    block_left_ -= rounded;
  } else {
    piece.host_copy.reset(new (std::nothrow) uint8_t[size]);
    if (piece.host_copy == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for a copy of ", extents_.bytes() >> 20,
                       " MiB of device memory, neither there nor here"));
    }
    host_bytes_ += size;
  }
  pieces_.push_back(std::move(piece));
  return absl::OkStatus();
}

Checkpoint::~Checkpoint() {
  for (const CUdeviceptr block : blocks_) driver_.MemFree(block);
}

absl::Status Checkpoint::Save() {
  for (Piece& piece : pieces_) {
    if (piece.device_copy != 0) {
      if (absl::Status s = driver_.Check(
              driver_.MemcpyDtoDAsync(piece.device_copy, piece.image,
                                      piece.size, nullptr),
              "cuMemcpyDtoDAsync (save)");
          !s.ok()) {
        return s;
      }
      continue;
    }
    uint8_t* to = piece.host_copy.get();
    if (absl::Status s = transfer_.Download(
            piece.image, piece.size,
            [&](uint64_t offset, absl::Span<const uint8_t> bytes) {
              std::memcpy(to + offset, bytes.data(), bytes.size());
            });
        !s.ok()) {
      return s;
    }
  }
  return driver_.Check(driver_.CtxSynchronize(), "cuCtxSynchronize");
}

template <typename Visit>
absl::Status Checkpoint::ForEachPart(const ExtentSet& within,
                                     Visit visit) const {
  const std::vector<Extent>& wanted = within.extents();
  size_t i = 0;
  for (const Piece& piece : pieces_) {
    const uint64_t end = piece.recorded + piece.size;
    while (i < wanted.size() && wanted[i].end() <= piece.recorded) ++i;
    for (size_t j = i; j < wanted.size() && wanted[j].address < end; ++j) {
      const uint64_t from = std::max(wanted[j].address, piece.recorded);
      const uint64_t to = std::min(wanted[j].end(), end);
      if (absl::Status s = visit(piece, from - piece.recorded, to - from);
          !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::RestoreOnly(const ExtentSet& within) const {
  const absl::Status status = ForEachPart(
      within, [&](const Piece& piece, uint64_t offset, uint64_t size) {
        if (piece.device_copy == 0) {
          return transfer_.Upload(
              piece.image + offset,
              absl::MakeConstSpan(piece.host_copy.get() + offset, size));
        }
        return driver_.Check(
            driver_.MemcpyDtoDAsync(piece.image + offset,
                                    piece.device_copy + offset, size, nullptr),
            "cuMemcpyDtoDAsync (restore)");
      });
  if (!status.ok()) return status;
  return driver_.Check(driver_.CtxSynchronize(), "cuCtxSynchronize");
}

absl::Status Checkpoint::ComparePiece(const Piece& piece, uint64_t offset,
                                      uint64_t size, ExtentSet& changed) const {
  if (piece.device_copy != 0) {
    return transfer_.DownloadPair(
        piece.image + offset, piece.device_copy + offset, size,
        [&](uint64_t at, absl::Span<const uint8_t> now,
            absl::Span<const uint8_t> then) {
          AppendDifferences(piece.recorded + offset + at, now.data(),
                            then.data(), now.size(), kMergeBytes, changed);
        });
  }
  return transfer_.Download(piece.image + offset, size,
                            [&](uint64_t at, absl::Span<const uint8_t> now) {
                              AppendDifferences(
                                  piece.recorded + offset + at, now.data(),
                                  piece.host_copy.get() + offset + at,
                                  now.size(), kMergeBytes, changed);
                            });
}

absl::StatusOr<ExtentSet> Checkpoint::Changed(const ExtentSet& within) const {
  ExtentSet changed;
  absl::Status status = ForEachPart(
      within, [&](const Piece& piece, uint64_t offset, uint64_t size) {
        return ComparePiece(piece, offset, size, changed);
      });
  if (!status.ok()) return status;
  return changed;
}

}  // namespace heddle::replay
