// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/watched_memory.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/replay/checkpoint.h"

namespace heddle::replay {
namespace {

constexpr uint64_t kExact = 0;  // AppendDifferences: no gap is bridged

}  // namespace

HostBytes::HostBytes(ExtentSet extents) : extents_(std::move(extents)) {
  uint64_t at = 0;
  offsets_.reserve(extents_.extents().size());
  for (const Extent& extent : extents_.extents()) {
    offsets_.push_back(at);
    at += extent.size;
  }
  bytes_.resize(at);
}

const uint8_t* HostBytes::At(uint64_t address) const {
  const std::vector<Extent>& all = extents_.extents();
  auto it = std::upper_bound(all.begin(), all.end(), address,
                             [](uint64_t value, const Extent& extent) {
                               return value < extent.address;
                             });
  if (it == all.begin()) return nullptr;
  --it;
  if (address >= it->end()) return nullptr;
  return bytes_.data() + offsets_[static_cast<size_t>(it - all.begin())] +
         (address - it->address);
}

ExtentSet Differences(const HostBytes& a, const HostBytes& b,
                      const ExtentSet& within, bool inverted) {
  ExtentSet result;
  std::vector<uint8_t> complement;
  for (const Extent& extent : within.extents()) {
    const uint8_t* left = a.At(extent.address);
    const uint8_t* right = b.At(extent.address);
    if (inverted) {
      complement.resize(extent.size);
      std::transform(right, right + extent.size, complement.begin(),
                     [](uint8_t byte) { return static_cast<uint8_t>(~byte); });
      right = complement.data();
    }
    AppendDifferences(extent.address, left, right, extent.size, kExact, result);
  }
  return result;
}

absl::StatusOr<WatchedMemory> WatchedMemory::Create(const MemoryImage& image,
                                                    Transfer& transfer,
                                                    const ExtentSet& extents) {
  WatchedMemory memory(image, transfer, extents);
  if (absl::Status s = memory.Accept(extents); !s.ok()) return s;
  return memory;
}

absl::StatusOr<ExtentSet> WatchedMemory::Changed() const {
  ExtentSet changed;
  const absl::Status status = image_->ForEachPiece(
      copy_.extents(),
      [&](uint64_t recorded, CUdeviceptr device, uint64_t size) {
        const uint8_t* then = copy_.At(recorded);
        return transfer_->Download(
            device, size, [&](uint64_t at, absl::Span<const uint8_t> now) {
              AppendDifferences(recorded + at, now.data(), then + at,
                                now.size(), kExact, changed);
            });
      });
  if (!status.ok()) return status;
  return changed;
}

absl::Status WatchedMemory::ReadInto(const ExtentSet& within,
                                     HostBytes& bytes) const {
  return image_->ForEachPiece(
      within, [&](uint64_t recorded, CUdeviceptr device, uint64_t size) {
        uint8_t* to = bytes.At(recorded);
        return transfer_->Download(
            device, size, [&](uint64_t at, absl::Span<const uint8_t> now) {
              std::memcpy(to + at, now.data(), now.size());
            });
      });
}

absl::StatusOr<HostBytes> WatchedMemory::Read(const ExtentSet& within) const {
  HostBytes bytes(within);
  if (absl::Status s = ReadInto(within, bytes); !s.ok()) return s;
  return bytes;
}

absl::Status WatchedMemory::Accept(const ExtentSet& within) {
  return ReadInto(within, copy_);
}

absl::Status WatchedMemory::PutBack(const ExtentSet& within,
                                    const ExtentSet& inverted) const {
  const std::vector<Extent>& turned = inverted.extents();
  size_t i = 0;
  return image_->ForEachPiece(within, [&](uint64_t recorded, CUdeviceptr device,
                                          uint64_t size) {
    const uint8_t* from = copy_.At(recorded);
    return transfer_->Upload(
        device, size, [&](uint64_t at, absl::Span<uint8_t> piece) {
          std::memcpy(piece.data(), from + at, piece.size());
          const uint64_t begin = recorded + at;
          const uint64_t end = begin + piece.size();
          while (i < turned.size() && turned[i].end() <= begin) ++i;
          for (size_t j = i; j < turned.size() && turned[j].address < end;
               ++j) {
            const uint64_t first = std::max(turned[j].address, begin);
            const uint64_t last = std::min(turned[j].end(), end);
            for (uint64_t byte = first; byte < last; ++byte) {
              piece[byte - begin] = static_cast<uint8_t>(~piece[byte - begin]);
            }
          }
        });
  });
}

}  // namespace heddle::replay
