// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/blob_store.h"

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"

namespace heddle::trace {
namespace {

// Whether the pieces, sorted, cover the blob once and without a gap.
bool Tile(const std::vector<const fb::Blob*>& pieces) {
  uint64_t offset = 0;
  for (const fb::Blob* piece : pieces) {
    if (piece->size() != pieces.front()->size() || piece->offset() != offset ||
        piece->piece_size() > kBlobPieceBytes) {
      return false;
    }
    offset += piece->piece_size();
  }
  return offset == pieces.front()->size();
}

// Appends the uncompressed bytes of `piece`, or returns why it cannot.
const char* Unpack(const fb::Blob& piece, std::vector<uint8_t>& out) {
  const flatbuffers::Vector<uint8_t>* data = piece.data();
  const size_t packed = data == nullptr ? 0 : data->size();
  const size_t size = piece.piece_size();
  if (piece.codec() == fb::Codec::kRaw) {
    if (packed != size) return "its size is wrong";
    if (size != 0) out.insert(out.end(), data->begin(), data->end());
    return nullptr;
  }
  if (piece.codec() != fb::Codec::kZstd) return "its codec is not known";
  if (data == nullptr ||
      ZSTD_getFrameContentSize(data->data(), packed) != size) {
    return "its size is wrong";
  }
  const size_t begin = out.size();
  out.resize(begin + size);
  const size_t got =
      ZSTD_decompress(out.data() + begin, size, data->data(), packed);
  if (ZSTD_isError(got) != 0) return ZSTD_getErrorName(got);
  return got == size ? nullptr : "its size is wrong";
}

}  // namespace

void BlobStore::Add(const fb::Blob& piece) {
  if (piece.hash() == nullptr) return;  // of no use to anyone
  blobs_[Hash128{piece.hash()->lo(), piece.hash()->hi()}].pieces.push_back(
      &piece);
}

void BlobStore::Finish() {
  for (auto& [hash, entry] : blobs_) {
    std::vector<const fb::Blob*>& pieces = entry.pieces;
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const fb::Blob* a, const fb::Blob* b) {
                       return a->offset() < b->offset();
                     });
    // Traces that were joined may have a piece twice.
    pieces.erase(std::unique(pieces.begin(), pieces.end(),
                             [](const fb::Blob* a, const fb::Blob* b) {
                               return a->offset() == b->offset() &&
                                      a->piece_size() == b->piece_size();
                             }),
                 pieces.end());
    entry.complete = Tile(pieces);
  }
}

bool BlobStore::Has(const Hash128& hash) const {
  const auto it = blobs_.find(hash);
  return it != blobs_.end() && it->second.complete;
}

absl::StatusOr<std::vector<uint8_t>> BlobStore::Read(
    const Hash128& hash) const {
  const auto it = blobs_.find(hash);
  if (it == blobs_.end()) {
    return absl::NotFoundError(
        absl::StrCat("the trace does not hold blob ", hash.ToHex()));
  }
  if (!it->second.complete) {
    return absl::NotFoundError(
        absl::StrCat("the trace holds only a part of blob ", hash.ToHex()));
  }
  std::vector<uint8_t> bytes;
  try {
    // Pieces are unpacked one after the other, so that a false size asks for
    // no more memory than the data before it has paid for. One that fits into
    // a piece or is stored raw is small enough to believe.
    for (const fb::Blob* piece : it->second.pieces) {
      if (const char* error = Unpack(*piece, bytes); error != nullptr) {
        return absl::DataLossError(absl::StrCat("blob ", hash.ToHex(),
                                                ", piece at byte ",
                                                piece->offset(), ": ", error));
      }
    }
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for blob ", hash.ToHex(), " of ",
                     it->second.pieces.front()->size(), " bytes"));
  }
  if (HashBytes(bytes) != hash) {
    return absl::DataLossError(absl::StrCat("the bytes of blob ", hash.ToHex(),
                                            " do not match their hash"));
  }
  return bytes;
}

}  // namespace heddle::trace
