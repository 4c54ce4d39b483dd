// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/packed.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/trace/format.h"

namespace heddle::trace {
namespace {

// A step of a program may be megabytes away from the one before, which it is
// compressed against.
constexpr int kWindowLog = 25;

UnpackedBlock Fault(std::string error) {
  UnpackedBlock block;
  block.error = std::move(error);
  return block;
}

// Cuts `size` bytes of content into records; false if they are not records.
bool Cut(const uint8_t* content, uint64_t size, uint32_t count,
         std::vector<Record>* records) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t head = 0;
    if (size - at < sizeof(head)) return false;
    std::memcpy(&head, content + at, sizeof(head));
    at += sizeof(head);
    const uint32_t length = HeadLength(head);
    const uint64_t padded = RoundUp(length, kRecordAlignment);
    const auto type = static_cast<fb::RecordType>(HeadType(head));
    if (padded > size - at || HeadFlags(head) != 0 ||
        type == fb::RecordType::kNone || type == fb::RecordType::kPad ||
        type == fb::RecordType::kFooter || type == fb::RecordType::kPacked) {
      return false;
    }
    records->push_back(
        Record{type, 0, 0, absl::MakeConstSpan(content + at, length)});
    at += padded;
  }
  return at == size;
}

}  // namespace

void PackedBlock::Add(fb::RecordType type, absl::Span<const uint8_t> payload) {
  const uint64_t head = MakeHead(static_cast<uint32_t>(payload.size()),
                                 static_cast<uint16_t>(type), 0);
  const size_t at = content_.size();
  content_.resize(at + sizeof(head) +
                  RoundUp(payload.size(), kRecordAlignment));
  std::memcpy(content_.data() + at, &head, sizeof(head));
  if (!payload.empty()) {
    std::memcpy(content_.data() + at + sizeof(head), payload.data(),
                payload.size());
  }
  ++records_;
}

flatbuffers::DetachedBuffer PackedBlock::Finish(int level) {
  std::vector<uint8_t> compressed(ZSTD_compressBound(content_.size()));
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, kWindowLog);
  ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1);
  const size_t size =
      ZSTD_compress2(context, compressed.data(), compressed.size(),
                     content_.data(), content_.size());
  ZSTD_freeCCtx(context);
  const bool raw = ZSTD_isError(size) != 0 || size >= content_.size();
  const std::vector<uint8_t>& stored = raw ? content_ : compressed;
  const size_t stored_size = raw ? content_.size() : size;
  flatbuffers::FlatBufferBuilder builder(stored_size + 256);
  const auto data = builder.CreateVector(stored.data(), stored_size);
  builder.Finish(fb::CreatePacked(builder, records_, content_.size(),
                                  raw ? fb::Codec::kRaw : fb::Codec::kZstd,
                                  data));
  content_.clear();
  records_ = 0;
  return builder.Release();
}

UnpackedBlock Unpack(absl::Span<const uint8_t> payload) {
  flatbuffers::Verifier verifier(payload.data(), payload.size());
  if (!verifier.VerifyBuffer<fb::Packed>(nullptr)) {
    return Fault("is not a well-formed table");
  }
  const auto* packed = flatbuffers::GetRoot<fb::Packed>(payload.data());
  const flatbuffers::Vector<uint8_t>* data = packed->data();
  const uint64_t size = packed->size();
  if (data == nullptr || size == 0 || size > kMaxPackedBytes ||
      size % kRecordAlignment != 0) {
    return Fault("has a size that no block can have");
  }
  UnpackedBlock block;
  // Words, so that the payloads are aligned. Not cleared: all is written.
  block.content.reset(new (std::nothrow) uint64_t[size / sizeof(uint64_t)]);
  if (block.content == nullptr) return Fault("does not fit into memory");
  auto* content = reinterpret_cast<uint8_t*>(block.content.get());
  if (packed->codec() == fb::Codec::kRaw) {
    if (data->size() != size) return Fault("has a size that its data has not");
    std::memcpy(content, data->data(), size);
  } else if (packed->codec() == fb::Codec::kZstd) {
    if (ZSTD_getFrameContentSize(data->data(), data->size()) != size) {
      return Fault("has a size that its data has not");
    }
    const size_t got =
        ZSTD_decompress(content, size, data->data(), data->size());
    if (ZSTD_isError(got) != 0 || got != size) return Fault("does not unpack");
  } else {
    return Fault("has a codec that version 1 does not define");
  }
  if (!Cut(content, size, packed->records(), &block.records)) {
    return Fault("does not hold whole records");
  }
  return block;
}

}  // namespace heddle::trace
