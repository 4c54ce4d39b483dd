// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/blob_writer.h"

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/types/span.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"
#include "runtime/trace/writer.h"

namespace heddle::trace {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

Hash128 BlobWriter::Append(Writer& writer, absl::Span<const uint8_t> bytes) {
  const Hash128 hash = HashBytes(bytes);
  if (!writer.ok()) return hash;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!known_.insert(hash).second) return hash;
  }
  std::unique_ptr<ZSTD_CCtx, FreeContext> context;
  std::unique_ptr<uint8_t[]> packed;
  if (level_ != 0) {
    context.reset(ZSTD_createCCtx());
    packed.reset(
        new uint8_t[std::min<uint64_t>(bytes.size(), kBlobPieceBytes)]);
  }

  const fb::Hash128 fb_hash(hash.lo, hash.hi);
  uint64_t offset = 0;
  do {
    const absl::Span<const uint8_t> piece =
        bytes.subspan(offset, kBlobPieceBytes);
    flatbuffers::FlatBufferBuilder builder(piece.size() + 256);
    fb::Codec codec = fb::Codec::kRaw;
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> data;
    // Into one byte less than the raw piece has: what does not fit there is
    // not smaller.
    if (context != nullptr && piece.size() > 1) {
      const size_t size =
          ZSTD_compressCCtx(context.get(), packed.get(), piece.size() - 1,
                            piece.data(), piece.size(), level_);
      if (ZSTD_isError(size) == 0) {
        codec = fb::Codec::kZstd;
        data = builder.CreateVector(packed.get(), size);
      }
    }
    if (codec == fb::Codec::kRaw) {
      data = builder.CreateVector(piece.data(), piece.size());
    }
    builder.Finish(fb::CreateBlob(builder, &fb_hash, bytes.size(), offset,
                                  piece.size(), codec, data));
    if (!writer.Append(fb::RecordType::kBlob,
                       absl::MakeConstSpan(builder.GetBufferPointer(),
                                           builder.GetSize()))) {
      return hash;
    }
    offset += piece.size();
  } while (offset < bytes.size());
  return hash;
}

}  // namespace heddle::trace
