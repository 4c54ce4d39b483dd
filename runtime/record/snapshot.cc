// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/snapshot.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/record/describe.h"
#include "runtime/record/log.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

constexpr uint64_t kStagingBytes = 32u << 20;

bool AllZero(absl::Span<const uint8_t> bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 &&
          std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Pinned when the driver gives it: several times the bandwidth.
class Staging {
 public:
  explicit Staging(const device::Driver& driver) : driver_(driver) {
    if (driver.MemAllocHost(&pinned_, kStagingBytes) != CUDA_SUCCESS) {
      pinned_ = nullptr;
      pageable_.resize(kStagingBytes);
    }
  }
  ~Staging() {
    if (pinned_ != nullptr) driver_.MemFreeHost(pinned_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  uint8_t* data() {
    return pinned_ != nullptr ? static_cast<uint8_t*>(pinned_)
                              : pageable_.data();
  }

 private:
  const device::Driver& driver_;
  void* pinned_ = nullptr;
  std::vector<uint8_t> pageable_;
};

struct HashStateDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

class SnapshotTaker {
 public:
  SnapshotTaker(Recorder& recorder, uint32_t id)
      : recorder_(recorder), id_(id), staging_(recorder.driver()) {}

  // False if the range cannot be read.
  bool Write(const SnapshotRange& range, bool exact) {
    fb::MemoryRangeT record;
    record.snapshot = id_;
    record.address = range.address;
    record.size = range.size;
    bool ok;
    if (exact) {
      ok = ReadExact(range, &record);
    } else {
      ok = ReadDescribed(range, &record);
    }
    if (ok) recorder_.writer().AppendObject(record);
    return ok;
  }

 private:
  absl::Span<const uint8_t> Read(uint64_t address, uint64_t size) {
    if (recorder_.driver().MemcpyDtoH(staging_.data(), address, size) !=
        CUDA_SUCCESS) {
      return {};
    }
    return {staging_.data(), size};
  }

  bool ReadExact(const SnapshotRange& range, fb::MemoryRangeT* record) {
    const absl::Span<const uint8_t> bytes = Read(range.address, range.size);
    if (bytes.empty()) return false;
    trace::Hash128 hash;
    if (AllZero(bytes)) {
      record->fill = fb::FillKind::kZero;
      hash = trace::HashBytes(bytes);
    } else {
      record->fill = fb::FillKind::kExact;
      hash = recorder_.writer().AppendBlob(bytes);
    }
    record->hash = std::make_unique<fb::Hash128>(hash.lo, hash.hi);
    return true;
  }

  bool ReadDescribed(const SnapshotRange& range, fb::MemoryRangeT* record) {
    std::unique_ptr<XXH3_state_t, HashStateDeleter> state(XXH3_createState());
    if (state == nullptr) return false;
    XXH3_128bits_reset(state.get());
    Describer describer;
    bool zero = true;
    for (uint64_t at = 0; at < range.size; at += kStagingBytes) {
      const uint64_t size = std::min(kStagingBytes, range.size - at);
      const absl::Span<const uint8_t> bytes = Read(range.address + at, size);
      if (bytes.empty()) return false;
      zero = zero && AllZero(bytes);
      XXH3_128bits_update(state.get(), bytes.data(), bytes.size());
      describer.Add(bytes);
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
    record->hash = std::make_unique<fb::Hash128>(hash.low64, hash.high64);
    record->fill = zero ? fb::FillKind::kZero : fb::FillKind::kDescribed;
    const Description description = describer.Result();
    record->likely = description.type;
    record->mean = description.mean;
    record->stddev = description.stddev;
    return true;
  }

  Recorder& recorder_;
  const uint32_t id_;
  Staging staging_;
};

// Pieces that fit the staging buffer, so that any amount is kept piecewise.
std::vector<SnapshotRange> SplitForStaging(
    const std::vector<SnapshotRange>& ranges) {
  std::vector<SnapshotRange> pieces;
  for (const SnapshotRange& range : ranges) {
    for (uint64_t at = 0; at < range.size; at += kStagingBytes) {
      pieces.push_back(
          {range.address + at, std::min(kStagingBytes, range.size - at)});
    }
  }
  return pieces;
}

}  // namespace

std::vector<SnapshotRange> CutAtPointers(absl::Span<const MemoryBlock> blocks,
                                         absl::Span<const uint64_t> pointers) {
  std::vector<SnapshotRange> ranges;
  for (const MemoryBlock& block : blocks) {
    uint64_t begin = block.address;
    const uint64_t end = block.address + block.size;
    if (block.size > kSmallRange) {
      for (auto it = std::upper_bound(pointers.begin(), pointers.end(), begin);
           it != pointers.end() && *it < end; ++it) {
        ranges.push_back({begin, *it - begin});
        begin = *it;
      }
    }
    ranges.push_back({begin, end - begin});
  }
  return ranges;
}

bool TakeSnapshot(Recorder& recorder, fb::SnapshotWhen when, uint32_t step) {
  static std::atomic<uint32_t> next_id{1};
  const device::Driver& driver = recorder.driver();
  const RecordOptions& options = recorder.options();
  if (options.memory == MemoryPolicy::kNone) return true;
  if (recorder.any_capture()) return false;
  if (CUresult result = driver.CtxSynchronize(); result != CUDA_SUCCESS) {
    recorder.Note(1, absl::StrCat("no memory snapshot: cuCtxSynchronize: ",
                                  driver.ErrorName(result)));
    return false;
  }
  std::vector<MemoryBlock> blocks;
  for (const MemoryBlock& block : recorder.memory().Blocks()) {
    if (block.kind != fb::MemoryKind::kHost &&
        block.kind != fb::MemoryKind::kIpc) {
      blocks.push_back(block);
    }
  }
  const bool full = options.memory == MemoryPolicy::kFull;
  std::vector<SnapshotRange> ranges =
      CutAtPointers(blocks, recorder.memory().Pointers());
  if (full) ranges = SplitForStaging(ranges);

  fb::SnapshotT snapshot;
  snapshot.stamp = recorder.StampPtr();
  snapshot.id = next_id.fetch_add(1);
  snapshot.when = when;
  snapshot.step = step;
  snapshot.policy = full ? "full" : "small";
  snapshot.ranges = static_cast<uint32_t>(ranges.size());
  recorder.writer().AppendObject(snapshot);

  const auto begin = std::chrono::steady_clock::now();
  SnapshotTaker taker(recorder, snapshot.id);
  uint64_t bytes = 0;
  size_t unreadable = 0;
  for (const SnapshotRange& range : ranges) {
    if (!taker.Write(range, full || range.size <= kSmallRange)) ++unreadable;
    bytes += range.size;
  }
  if (unreadable > 0) {
    recorder.Note(1, absl::StrCat("snapshot ", snapshot.id, ": ", unreadable,
                                  " ranges could not be read"));
  }
  Log(LogLevel::kInfo,
      absl::StrCat("memory snapshot ", snapshot.id, ": ", ranges.size(),
                   " ranges, ", bytes >> 20, " MiB in ",
                   std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::steady_clock::now() - begin)
                       .count(),
                   " ms"));
  return true;
}

}  // namespace heddle::record
