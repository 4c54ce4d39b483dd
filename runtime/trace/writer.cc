// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/blob_writer.h"
#include "runtime/trace/file_header.h"
#include "runtime/trace/fork_guard.h"
#include "runtime/trace/format.h"
#include "runtime/trace/helper_thread.h"
#include "runtime/trace/mapped_file.h"
#include "runtime/trace/record_counter.h"
#include "runtime/trace/trace_tail.h"

namespace heddle::trace {
namespace {

// Set in the write position when nothing more may be reserved. Far above every
// position, so that one comparison tells.
constexpr uint64_t kClosedBit = uint64_t{1} << 62;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

constexpr uint64_t kMinChunkBytes = 64 << 10;
constexpr uint64_t kMinMaxBytes = 16 << 10;
// Each time the position crosses a multiple of this, page faults are taken
// ahead and records counted behind, in pieces of as much.
constexpr uint64_t kStepBytes = 256 << 10;
// How far ahead at most: tens of milliseconds of the fastest program seen
// (eight threads that do nothing but launch, 150 MB/s).
constexpr uint64_t kAheadBytes = 4 << 20;
// How long Close waits for a thread between Reserve and Commit.
constexpr std::chrono::seconds kCloseTimeout{2};

class WriterImpl final : public Writer {
 public:
  WriterImpl(std::string path, const WriterOptions& options,
             std::unique_ptr<MappedFile> file)
      : base_(file->data()),
        limit_(guard_.word()),
        path_(std::move(path)),
        chunk_bytes_(
            RoundUp(std::max(options.chunk_bytes, kMinChunkBytes), PageSize())),
        max_bytes_(options.max_bytes == 0
                       ? file->capacity()
                       : std::min(options.max_bytes, file->capacity())),
        file_(std::move(file)),
        blobs_(options.compression_level),
        helper_([this] { WorkAhead(/*in_helper=*/true); }) {}

  ~WriterImpl() override { Close().IgnoreError(); }

  absl::Status Start(const WriterOptions& options) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status status = GrowTo(sizeof(FileHeader)); !status.ok()) {
      return status;
    }
    const FileHeader header = options.source.has_value()
                                  ? MakeFileHeader(*options.source)
                                  : MakeFileHeader(options.rank);
    std::memcpy(base_, &header, sizeof(header));
    populated_ = std::min(2 * kStepBytes, file_->size());
    file_->Populate(0, populated_);
    return absl::OkStatus();
  }

  bool Append(fb::RecordType type, absl::Span<const uint8_t> payload) override {
    if (payload.size() > kMaxPayloadBytes) {
      RefuseSize(payload.size());
      return false;
    }
    PrepareAppend();
    const auto size = static_cast<uint32_t>(payload.size());
    const uint64_t head = MakeHead(size, static_cast<uint16_t>(type), 0);
    // Read from the source if it needs no padding: it is in the cache, while a
    // load of what was just stored to a new line would wait for that line.
    const bool is_padded = size % kRecordAlignment == 0 && size != 0;
    uint64_t checksum = 0;
    if (is_padded) checksum = RecordChecksum(head, payload.data());
    uint8_t* to = Reserve(size);
    if (to == nullptr) return false;
    if (size != 0) std::memcpy(to, payload.data(), size);
    if (!is_padded) checksum = RecordChecksum(head, to);
    Publish(to, head, checksum);
    return true;
  }

  void PrepareAppend() override {
#if defined(__x86_64__)
    // __builtin_prefetch asks for a line to read, which another core may keep.
    asm volatile("prefetchw %0" : : "m"(next_));
#else
    __builtin_prefetch(&next_, /*rw=*/1);
#endif
  }

  uint8_t* Reserve(uint32_t size) override {
    if (size > kMaxPayloadBytes) {
      RefuseSize(size);
      return nullptr;
    }
    const uint64_t bytes = RecordBytes(size);
    const uint64_t begin = next_.fetch_add(bytes, std::memory_order_relaxed);
    if (begin + bytes > limit_.load(std::memory_order_acquire) &&
        !MakeRoom(begin, begin + bytes)) {
      return nullptr;
    }
    return base_ + begin + sizeof(RecordHeader);
  }

  void Commit(uint8_t* payload, fb::RecordType type, uint32_t size) override {
    const uint64_t head = MakeHead(size, static_cast<uint16_t>(type), 0);
    Publish(payload, head, RecordChecksum(head, payload));
  }

  Hash128 AppendBlob(absl::Span<const uint8_t> bytes) override {
    if (guard_.InForkedChild()) Abandon();
    try {
      return blobs_.Append(*this, bytes);
    } catch (const std::bad_alloc&) {  // of buffers or of the set of hashes
      TurnOffOnce(absl::ResourceExhaustedError(
          absl::StrCat("no memory to compress ", bytes.size(), " bytes")));
      return HashBytes(bytes);
    }
  }

  bool ok() const override {
    return !off_.load(std::memory_order_acquire) && !guard_.InForkedChild();
  }

  absl::Status error() const override {
    if (abandoned_.load(std::memory_order_acquire) || guard_.InForkedChild()) {
      return absl::FailedPreconditionError(path_ +
                                           " belongs to the parent process");
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_;
  }

  uint64_t bytes_written() const override {
    const uint64_t final_size = final_size_.load(std::memory_order_acquire);
    if (final_size != 0) return final_size;
    const uint64_t next = next_.load(std::memory_order_relaxed);
    return std::min(next & (kClosedBit - 1),
                    limit_.load(std::memory_order_relaxed));
  }

  const std::string& path() const override { return path_; }

  absl::Status Close() override;

  void Abandon() override {
    // The mutex may be held by a thread that did not survive the fork.
    abandoned_.store(true, std::memory_order_release);
    off_.store(true, std::memory_order_release);
    next_.fetch_or(kClosedBit, std::memory_order_relaxed);
    helper_.Stop();
    file_->Abandon();
  }

 private:
  // Makes the record whose payload lies at `payload` visible.
  void Publish(uint8_t* payload, uint64_t head, uint64_t checksum) {
    auto* header =
        reinterpret_cast<RecordHeader*>(payload - sizeof(RecordHeader));
    header->checksum = checksum;
    const uint64_t begin =
        static_cast<uint64_t>(payload - base_) - sizeof(RecordHeader);
    const uint64_t end = begin + RecordBytes(HeadLength(head));
    StoreHead(header, head);
    // From here on Close may unmap the file: `header` must not be touched.
    if (begin / kStepBytes != end / kStepBytes && !helper_.Wake()) {
      WorkAhead(/*in_helper=*/false);
    }
  }

  // The end of what records may use when the file has `size` bytes.
  uint64_t UsableBytes(uint64_t size) const {
    size = std::min(size, max_bytes_);
    const uint64_t tail = TailBytes(size);
    return size > tail ? (size - tail) / kRecordAlignment * kRecordAlignment
                       : 0;
  }

  // Grows the file by whole chunks until records may use `end` bytes. Needs
  // the mutex.
  absl::Status GrowTo(uint64_t end) {
    if (end <= limit_.load(std::memory_order_relaxed)) return absl::OkStatus();
    if (end > UsableBytes(max_bytes_)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path_, " reached its limit of ", max_bytes_,
                       " bytes; raise it or record less"));
    }
    // Twice the tail: what is added grows it a little.
    const uint64_t least =
        RoundUp(std::min(end + 2 * TailBytes(end), max_bytes_), PageSize());
    const uint64_t wanted =
        std::min(std::max(least, file_->size() + chunk_bytes_),
                 RoundUp(max_bytes_, PageSize()));
    absl::Status status = file_->Grow(wanted);
    // The last of a disk may hold this record if not a whole chunk.
    if (!status.ok() && least < wanted) status = file_->Grow(least);
    if (!status.ok()) return status;
    limit_.store(UsableBytes(file_->size()), std::memory_order_release);
    return absl::OkStatus();
  }

  // For a record that begins at `begin` and does not fit.
  bool MakeRoom(uint64_t begin, uint64_t end) {
    if (begin >= kClosedBit) return false;
    if (guard_.InForkedChild()) {
      Abandon();
      return false;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (end <= limit_.load(std::memory_order_relaxed)) return true;
    if (error_.ok()) {
      absl::Status status = GrowTo(end);
      if (status.ok()) return true;
      TurnOff(std::move(status));
    }
    dropped_from_ = std::min(dropped_from_, begin);
    return false;
  }

  void RefuseSize(uint64_t size) {
    TurnOffOnce(absl::InvalidArgumentError(
        absl::StrCat("a record of ", size, " bytes does not fit into ", path_,
                     ": the most is ", kMaxPayloadBytes)));
  }

  void TurnOffOnce(absl::Status status) {
    if (guard_.InForkedChild()) return Abandon();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_.ok() && !closing_) TurnOff(std::move(status));
  }

  // Needs the mutex.
  void TurnOff(absl::Status status) {
    error_ = std::move(status);
    off_.store(true, std::memory_order_release);
    const uint64_t next = next_.fetch_or(kClosedBit, std::memory_order_relaxed);
    if (next < kClosedBit) closed_at_ = next;
  }

  // Work that is better done now and then than at every record. Without the
  // helper, the thread that came across does a little of it, unless another one
  // is at it.
  void WorkAhead(bool in_helper) {
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    if (in_helper) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return;
    }
    while (!closing_ && error_.ok()) {
      const uint64_t next = next_.load(std::memory_order_relaxed);
      if (next >= kClosedBit) return;
      GrowAhead(next);
      populated_ = std::max(populated_, next / PageSize() * PageSize());
      const uint64_t ahead = in_helper ? std::clamp(RoundUp(next, kStepBytes),
                                                    kStepBytes, kAheadBytes)
                                       : kStepBytes;
      const uint64_t end =
          std::min(RoundUp(next, kStepBytes) + ahead, file_->size());
      if (end <= populated_) {
        CountBehind(next);
        return;
      }
      const uint64_t piece = std::min(populated_ + kStepBytes, end);
      file_->Populate(populated_, piece);
      populated_ = piece;
      if (!in_helper) {
        CountBehind(next);
        return;
      }
      // A thread that has run out of room need not wait for all of it.
      lock.unlock();
      lock.lock();
    }
  }

  // The next chunk is made before it is needed. If that fails, the thread that
  // needs it will say so. Needs the mutex.
  void GrowAhead(uint64_t next) {
    if (next + chunk_bytes_ / 2 <= limit_.load(std::memory_order_relaxed)) {
      return;
    }
    GrowTo(std::min(next + chunk_bytes_ / 2, UsableBytes(max_bytes_)))
        .IgnoreError();
  }

  // Needs the mutex.
  void CountBehind(uint64_t next) {
    counter_.Advance(base_, std::min(next, limit_.load()));
    if (counter_.position() <= released_ + 2 * chunk_bytes_) return;
    const uint64_t until =
        (counter_.position() - chunk_bytes_) / PageSize() * PageSize();
    file_->Release(released_, until);
    released_ = until;
  }

  // Counts records up to the end of what was reserved, waiting for threads
  // that are about to commit. Returns false if one did not.
  bool WaitForRecords(std::unique_lock<std::mutex>& lock) {
    const auto deadline = std::chrono::steady_clock::now() + kCloseTimeout;
    while (true) {
      counter_.Advance(base_, std::min(closed_at_, dropped_from_));
      if (counter_.position() >= std::min(closed_at_, dropped_from_)) {
        return true;
      }
      if (std::chrono::steady_clock::now() > deadline) return false;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    }
  }

  // What Append reads comes first, beside the virtual table.
  uint8_t* const base_;
  const ForkGuard guard_;
  // Records may use the file up to here. Read by all, written seldom, and 0 in
  // a forked child: it then comes to MakeRoom.
  std::atomic<uint64_t>& limit_;
  const std::string path_;
  const uint64_t chunk_bytes_;
  const uint64_t max_bytes_;

  // Where the next record goes; the one word that all appending threads
  // share, so on a cache line of its own.
  alignas(64) std::atomic<uint64_t> next_{sizeof(FileHeader)};
  alignas(64) std::atomic<bool> off_{false};
  std::atomic<bool> abandoned_{false};
  std::atomic<uint64_t> final_size_{0};

  alignas(64) mutable std::mutex mutex_;  // guards all below
  std::unique_ptr<MappedFile> file_;
  absl::Status error_;
  bool closing_ = false;
  absl::Status close_status_;
  // What was reserved when the writer closed or turned off ends here, ...
  uint64_t closed_at_ = kNever;
  // ... and what was written at the first reservation that got no room: all
  // behind it got none either, for room only grows from the front.
  uint64_t dropped_from_ = kNever;
  RecordCounter counter_{sizeof(FileHeader)};
  uint64_t populated_ = 0;
  uint64_t released_ = 0;

  BlobWriter blobs_;
  // Last, so that it ends before what it works on.
  HelperThread helper_;
};

absl::Status WriterImpl::Close() {
  if (guard_.InForkedChild()) Abandon();
  if (abandoned_.load(std::memory_order_acquire)) return absl::OkStatus();
  helper_.Stop();
  std::unique_lock<std::mutex> lock(mutex_);
  if (closing_) return close_status_;
  if (error_.ok()) {
    closed_at_ = next_.fetch_or(kClosedBit, std::memory_order_relaxed);
    // Gives room to all that was reserved.
    absl::Status status = GrowTo(closed_at_);
    if (!status.ok()) TurnOff(std::move(status));
  }
  closing_ = true;
  if (!WaitForRecords(lock)) {
    // The thread may be alive and slow: its memory must stay mapped.
    close_status_ = absl::UnavailableError(absl::StrCat(
        path_, ": a thread did not finish the record at offset ",
        counter_.position(), "; the trace ends there, without a footer"));
    final_size_.store(file_->size(), std::memory_order_release);
    file_->Finish(file_->size(), /*unmap=*/false).IgnoreError();
    return close_status_;
  }
  WriteTail(base_, error_, &counter_);
  final_size_.store(counter_.position(), std::memory_order_release);
  close_status_ = file_->Finish(counter_.position(), /*unmap=*/true);
  return close_status_;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Writer>> Writer::Create(
    const std::string& path, const WriterOptions& options) {
  if (options.max_bytes != 0 && options.max_bytes < kMinMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_bytes is ", options.max_bytes, ", the least is ", kMinMaxBytes));
  }
  absl::StatusOr<std::unique_ptr<MappedFile>> file =
      MappedFile::Create(path, options.max_bytes);
  if (!file.ok()) return file.status();
  auto writer = std::make_unique<WriterImpl>(path, options, *std::move(file));
  if (absl::Status status = writer->Start(options); !status.ok()) {
    writer->Abandon();
    unlink(path.c_str());
    return status;
  }
  return writer;
}

}  // namespace heddle::trace
