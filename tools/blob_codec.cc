// SPDX-License-Identifier: Apache-2.0
#include "tools/blob_codec.h"

#include <zstd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/trace/format.h"

namespace heddle::tools {
namespace {

absl::Status Damaged(const fb::Blob& piece, const char* why) {
  const trace::Hash128 hash =
      piece.hash() == nullptr
          ? trace::Hash128{}
          : trace::Hash128{piece.hash()->lo(), piece.hash()->hi()};
  return absl::DataLossError(
      absl::StrCat("blob ", hash.ToHex(), " is damaged: ", why));
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> PieceBytes(const fb::Blob& piece) {
  const auto* data = piece.data();
  const size_t stored = data == nullptr ? 0 : data->size();
  if (piece.piece_size() > trace::kBlobPieceBytes) {
    return Damaged(piece, "its size is wrong");
  }
  std::vector<uint8_t> bytes(piece.piece_size());
  if (piece.codec() == fb::Codec::kRaw) {
    if (stored != bytes.size()) return Damaged(piece, "its size is wrong");
    if (stored != 0) bytes.assign(data->begin(), data->end());
    return bytes;
  }
  if (piece.codec() != fb::Codec::kZstd || data == nullptr) {
    return Damaged(piece, "its codec is not known");
  }
  const size_t got =
      ZSTD_decompress(bytes.data(), bytes.size(), data->data(), stored);
  if (ZSTD_isError(got) != 0 || got != bytes.size()) {
    return Damaged(piece, "it does not unpack");
  }
  return bytes;
}

flatbuffers::DetachedBuffer EncodePiece(const fb::Blob& piece,
                                        const std::vector<uint8_t>& bytes,
                                        int level) {
  std::vector<uint8_t> compressed;
  if (level > 0) {
    compressed.resize(ZSTD_compressBound(bytes.size()));
    const size_t size = ZSTD_compress(compressed.data(), compressed.size(),
                                      bytes.data(), bytes.size(), level);
    compressed.resize(ZSTD_isError(size) != 0 ? bytes.size() : size);
  }
  const bool raw = level <= 0 || compressed.size() >= bytes.size();
  const std::vector<uint8_t>& stored = raw ? bytes : compressed;
  flatbuffers::FlatBufferBuilder builder(stored.size() + 256);
  const auto data = builder.CreateVector(stored);
  builder.Finish(fb::CreateBlob(
      builder, piece.hash(), piece.size(), piece.offset(), piece.piece_size(),
      raw ? fb::Codec::kRaw : fb::Codec::kZstd, data));
  return builder.Release();
}

}  // namespace heddle::tools
