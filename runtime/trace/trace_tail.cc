// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/trace_tail.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"
#include "runtime/trace/record_counter.h"

namespace heddle::trace {
namespace {

void Append(uint8_t* file, fb::RecordType type,
            const flatbuffers::FlatBufferBuilder& b, RecordCounter* counter) {
  uint8_t* at = file + counter->position();
  auto* header = reinterpret_cast<RecordHeader*>(at);
  const uint64_t head = MakeHead(b.GetSize(), static_cast<uint16_t>(type), 0);
  std::memcpy(at + sizeof(RecordHeader), b.GetBufferPointer(), b.GetSize());
  header->checksum = RecordChecksum(head, at + sizeof(RecordHeader));
  StoreHead(header, head);
  counter->Advance(file, counter->position() + RecordBytes(b.GetSize()));
}

// The recorder writes End itself when it can; this is for when it cannot any
// more.
void WriteEnd(uint8_t* file, const absl::Status& error,
              RecordCounter* counter) {
  const std::string reason(error.message().substr(0, 512));
  if (!error.ok()) {
    flatbuffers::FlatBufferBuilder note(1024);
    note.Finish(fb::CreateNoteDirect(
        note, nullptr, 2, absl::StrCat("recording stopped: ", reason).c_str()));
    Append(file, fb::RecordType::kNote, note, counter);
  } else if (counter->last_type() == fb::RecordType::kEnd) {
    return;
  }
  flatbuffers::FlatBufferBuilder end(1024);
  end.Finish(fb::CreateEndDirect(
      end, counter->records(),
      static_cast<uint32_t>(counter->count(fb::RecordType::kUnsupported)),
      reason.c_str()));
  Append(file, fb::RecordType::kEnd, end, counter);
}

void WriteFooter(uint8_t* file, RecordCounter* counter) {
  flatbuffers::FlatBufferBuilder builder(1024 + 8 * counter->index().size());
  const std::vector<fb::KeyValueU64> counts = counter->CountsByType();
  builder.Finish(fb::CreateFooterDirect(builder, counter->records(), &counts,
                                        &counter->index()));
  FileTrailer trailer{};
  trailer.footer_offset = counter->position();
  Append(file, fb::RecordType::kFooter, builder, counter);
  trailer.file_size = counter->position() + sizeof(trailer);
  trailer.magic = kTrailerMagic;
  trailer.checksum = HashBytes64(&trailer, offsetof(FileTrailer, checksum));
  std::memcpy(file + counter->position(), &trailer, sizeof(trailer));
  counter->Skip(sizeof(trailer));
}

}  // namespace

void WriteTail(uint8_t* file, const absl::Status& error,
               RecordCounter* counter) {
  WriteEnd(file, error, counter);
  WriteFooter(file, counter);
}

}  // namespace heddle::trace
