// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_FORMAT_H_
#define HEDDLE_RUNTIME_TRACE_FORMAT_H_

// The bytes of a trace file around its payloads. traces/FORMAT.md says the
// same in words; the two must agree. All integers are little-endian and of
// fixed width, all structs are padded by hand.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace heddle::trace {

static_assert(std::endian::native == std::endian::little,
              "trace files are little-endian and are mapped, not converted");

// As in PNG: the first byte catches transfers that clear the eighth bit, the
// line ends catch those that translate text, 0x1a stops `type` on Windows.
inline constexpr std::array<uint8_t, 8> kFileMagic = {0x89, 'H',  'T',  'R',
                                                      '\r', '\n', 0x1a, '\n'};
inline constexpr std::array<uint8_t, 8> kTrailerMagic = {'H', 'T', 'R',  'E',
                                                         'N', 'D', '\r', '\n'};

struct FileHeader {
  std::array<uint8_t, 8> magic;
  uint32_t version;
  uint32_t min_reader_version;
  std::array<uint8_t, 16> uuid;
  uint32_t pid;
  int32_t rank;
  uint64_t start_unix_ns;
  uint64_t reserved;  // 0
  uint64_t checksum;  // XXH3-64 of all bytes before it
};
static_assert(sizeof(FileHeader) == 64);
static_assert(offsetof(FileHeader, checksum) == 56);

// Before every payload. `head` is one word so that a writer can store it last
// and at once: a record is there when its head is not zero.
struct RecordHeader {
  uint64_t head;      // length | type << 32 | flags << 48
  uint64_t checksum;  // RecordChecksum
};
static_assert(sizeof(RecordHeader) == 16);

// The last bytes of a cleanly closed file, right behind the footer record.
struct FileTrailer {
  uint64_t footer_offset;  // of the footer's record header
  uint64_t file_size;      // with this trailer
  std::array<uint8_t, 8> magic;
  uint64_t checksum;  // XXH3-64 of all bytes before it
};
static_assert(sizeof(FileTrailer) == 32);
static_assert(offsetof(FileTrailer, checksum) == 24);

static_assert(std::is_trivially_copyable_v<FileHeader> &&
              std::is_trivially_copyable_v<RecordHeader> &&
              std::is_trivially_copyable_v<FileTrailer>);

inline constexpr uint64_t kRecordAlignment = 8;
// FlatBuffers cannot be larger than 2 GiB; half of that is a sane limit.
inline constexpr uint32_t kMaxPayloadBytes = 1u << 30;
// Blobs are cut into pieces of this many uncompressed bytes.
inline constexpr uint64_t kBlobPieceBytes = 4u << 20;
// Footer.index has the offset of every record whose index is a multiple.
inline constexpr uint64_t kIndexInterval = 1024;

constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Bytes that a record takes in the file.
constexpr uint64_t RecordBytes(uint64_t payload_bytes) {
  return sizeof(RecordHeader) + RoundUp(payload_bytes, kRecordAlignment);
}

constexpr uint64_t MakeHead(uint32_t length, uint16_t type, uint16_t flags) {
  return length | (uint64_t{type} << 32) | (uint64_t{flags} << 48);
}
constexpr uint32_t HeadLength(uint64_t head) {
  return static_cast<uint32_t>(head);
}
constexpr uint16_t HeadType(uint64_t head) {
  return static_cast<uint16_t>(head >> 32);
}
constexpr uint16_t HeadFlags(uint64_t head) {
  return static_cast<uint16_t>(head >> 48);
}

// The head of the record at `record`, a multiple of kRecordAlignment; behind it
// comes what was stored before it.
inline uint64_t LoadHead(const uint8_t* record) {
  // C++20 has no atomic_ref of a constant; a load of 8 bytes writes nothing.
  auto* header = reinterpret_cast<RecordHeader*>(const_cast<uint8_t*>(record));
  return std::atomic_ref<uint64_t>(header->head)
      .load(std::memory_order_acquire);
}

// Makes a record visible: what was stored before comes before it.
inline void StoreHead(RecordHeader* header, uint64_t head) {
  std::atomic_ref<uint64_t>(header->head)
      .store(head, std::memory_order_release);
}

// XXH3-64 of `size` bytes.
uint64_t HashBytes64(const void* bytes, size_t size);

// XXH3-64 of a payload with the padding behind it, seeded with the record's
// head, so that it covers length, type and flags too.
uint64_t RecordChecksum(uint64_t head, const uint8_t* payload);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_FORMAT_H_
