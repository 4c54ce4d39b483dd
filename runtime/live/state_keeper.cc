// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/state_keeper.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

extern "C" {
// device/chunks.cu, embedded by the build.
extern const unsigned char heddle_live_chunks_image[];
}

namespace heddle::live {
namespace {

constexpr uint64_t kMaxBlocks = 4096;
constexpr unsigned kThreads = 256;

uint64_t Chunks(uint64_t bytes) {
  return (bytes + StateKeeper::kChunkBytes - 1) / StateKeeper::kChunkBytes;
}

uint64_t AlignUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// Of a host range.
uint8_t* HostBytes(const MemoryRange& range) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the program allocated it.
  return reinterpret_cast<uint8_t*>(range.address);
}

}  // namespace

#define HEDDLE_RETURN_IF_ERROR(expression)                    \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

absl::StatusOr<ChunkKernels> ChunkKernels::Load(const device::Driver& driver) {
  ChunkKernels kernels;
  HEDDLE_RETURN_IF_ERROR(driver.Check(
      driver.ModuleLoadData(&kernels.module, heddle_live_chunks_image),
      "cuModuleLoadData(heddle's kernels)"));
  const struct {
    const char* name;
    CUfunction* to;
  } functions[] = {{"heddle_compare_chunks", &kernels.compare},
                   {"heddle_gather_chunks", &kernels.gather},
                   {"heddle_compare_gathered", &kernels.compare_gathered}};
  for (const auto& function : functions) {
    HEDDLE_RETURN_IF_ERROR(driver.Check(
        driver.ModuleGetFunction(function.to, kernels.module, function.name),
        absl::StrCat("cuModuleGetFunction(", function.name, ")")));
  }
  return kernels;
}

absl::StatusOr<std::unique_ptr<StateKeeper>> StateKeeper::Save(
    const device::Driver& driver, const ChunkKernels& kernels,
    const std::vector<MemoryRange>& ranges, uint64_t limit, CUstream stream) {
  auto keeper = absl::WrapUnique(new StateKeeper(driver, kernels, stream));
  uint64_t total = 0;
  for (const MemoryRange& range : ranges) {
    if (range.host) continue;
    total += AlignUp(range.size, 512);
    keeper->max_chunks_ = std::max(keeper->max_chunks_, Chunks(range.size));
  }
  if (total > limit) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the graph may reach ", total >> 20,
        " MiB, more than can be kept aside (", limit >> 20, " MiB)"));
  }
  CUdeviceptr buffer = 0;
  if (total > 0) {
    HEDDLE_RETURN_IF_ERROR(
        driver.Check(driver.MemAlloc(&buffer, total),
                     absl::StrCat("cuMemAlloc(", total >> 20, " MiB)")));
    keeper->owned_.push_back(buffer);
    HEDDLE_RETURN_IF_ERROR(
        driver.Check(driver.MemAlloc(&keeper->flags_, keeper->max_chunks_ * 4),
                     "cuMemAlloc(flags)"));
    keeper->owned_.push_back(keeper->flags_);
  }
  for (const MemoryRange& range : ranges) {
    Part part;
    part.range = range;
    keeper->bytes_ += range.size;
    if (range.host) {
      const uint8_t* from = HostBytes(range);
      part.host_saved.assign(from, from + range.size);
    } else {
      part.saved = buffer;
      buffer += AlignUp(range.size, 512);
      HEDDLE_RETURN_IF_ERROR(driver.Check(
          driver.MemcpyDtoDAsync(part.saved, range.address, range.size, stream),
          absl::StrCat("cuMemcpyDtoDAsync(", absl::Hex(range.address), ", ",
                       range.size, ")")));
    }
    keeper->parts_.push_back(std::move(part));
  }
  HEDDLE_RETURN_IF_ERROR(keeper->Synchronize());
  return keeper;
}

StateKeeper::~StateKeeper() {
  for (const CUdeviceptr memory : owned_) driver_.MemFree(memory);
}

absl::Status StateKeeper::Launch(CUfunction function, uint64_t blocks,
                                 void** params) {
  return driver_.Check(
      driver_.LaunchKernel(
          function,
          static_cast<unsigned>(std::clamp<uint64_t>(blocks, 1, kMaxBlocks)), 1,
          1, kThreads, 1, 1, 0, stream_, params, nullptr),
      "cuLaunchKernel(heddle's kernels)");
}

absl::Status StateKeeper::Synchronize() {
  return driver_.Check(driver_.StreamSynchronize(stream_),
                       "cuStreamSynchronize");
}

absl::StatusOr<std::vector<uint64_t>> StateKeeper::Changed(const Part& part) {
  const uint64_t chunks = Chunks(part.range.size);
  HEDDLE_RETURN_IF_ERROR(driver_.Check(
      driver_.MemsetD32Async(flags_, 0, chunks, stream_), "cuMemsetD32Async"));
  CUdeviceptr saved = part.saved;
  CUdeviceptr now = part.range.address;
  uint64_t bytes = part.range.size;
  uint32_t chunk_bytes = kChunkBytes;
  void* params[] = {&saved, &now, &bytes, &chunk_bytes, &flags_};
  HEDDLE_RETURN_IF_ERROR(Launch(kernels_.compare, chunks, params));
  HEDDLE_RETURN_IF_ERROR(Synchronize());
  std::vector<uint32_t> flags(chunks);
  HEDDLE_RETURN_IF_ERROR(driver_.Check(
      driver_.MemcpyDtoH(flags.data(), flags_, chunks * 4), "cuMemcpyDtoH"));
  std::vector<uint64_t> changed;
  for (uint64_t i = 0; i < chunks; ++i) {
    if (flags[i] != 0) changed.push_back(i);
  }
  return changed;
}

absl::Status StateKeeper::KeepResult() {
  for (Part& part : parts_) {
    if (part.range.host) {
      const uint8_t* now = HostBytes(part.range);
      part.host_result.assign(now, now + part.range.size);
      part.host_changed = part.host_result != part.host_saved;
      continue;
    }
    absl::StatusOr<std::vector<uint64_t>> changed = Changed(part);
    if (!changed.ok()) return changed.status();
    part.written = *std::move(changed);
    part.skip.assign(part.written.size(), false);
    if (part.written.empty()) continue;
    uint64_t count = part.written.size();
    HEDDLE_RETURN_IF_ERROR(driver_.Check(
        driver_.MemAlloc(&part.indices, count * 8), "cuMemAlloc(indices)"));
    owned_.push_back(part.indices);
    HEDDLE_RETURN_IF_ERROR(
        driver_.Check(driver_.MemAlloc(&part.result, count * kChunkBytes),
                      "cuMemAlloc(result)"));
    owned_.push_back(part.result);
    // In the stream of the kernel: a plain copy may arrive after it has begun.
    HEDDLE_RETURN_IF_ERROR(
        driver_.Check(driver_.MemcpyHtoDAsync(part.indices, part.written.data(),
                                              count * 8, stream_),
                      "cuMemcpyHtoDAsync"));
    CUdeviceptr now = part.range.address;
    uint64_t bytes = part.range.size;
    uint32_t chunk_bytes = kChunkBytes;
    void* params[] = {&now,   &part.result, &part.indices,
                      &count, &chunk_bytes, &bytes};
    HEDDLE_RETURN_IF_ERROR(Launch(kernels_.gather, count, params));
  }
  HEDDLE_RETURN_IF_ERROR(Synchronize());
  has_result_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> StateKeeper::Mismatches(
    const Part& part) {
  std::vector<uint64_t> positions;
  uint64_t count = part.written.size();
  if (count == 0) return positions;
  HEDDLE_RETURN_IF_ERROR(driver_.Check(
      driver_.MemsetD32Async(flags_, 0, count, stream_), "cuMemsetD32Async"));
  CUdeviceptr result = part.result;
  CUdeviceptr now = part.range.address;
  CUdeviceptr indices = part.indices;
  uint64_t bytes = part.range.size;
  uint32_t chunk_bytes = kChunkBytes;
  void* params[] = {&result,      &now,   &indices, &count,
                    &chunk_bytes, &bytes, &flags_};
  HEDDLE_RETURN_IF_ERROR(Launch(kernels_.compare_gathered, count, params));
  HEDDLE_RETURN_IF_ERROR(Synchronize());
  std::vector<uint32_t> flags(count);
  HEDDLE_RETURN_IF_ERROR(driver_.Check(
      driver_.MemcpyDtoH(flags.data(), flags_, count * 4), "cuMemcpyDtoH"));
  for (uint64_t k = 0; k < count; ++k) {
    if (flags[k] != 0) positions.push_back(k);
  }
  return positions;
}

template <typename Found>
absl::Status StateKeeper::Compare(Found found) {
  for (Part& part : parts_) {
    if (part.range.host) {
      if (std::memcmp(HostBytes(part.range), part.host_result.data(),
                      part.range.size) != 0) {
        found(part, 0, -1);
      }
      continue;
    }
    absl::StatusOr<std::vector<uint64_t>> positions = Mismatches(part);
    if (!positions.ok()) return positions.status();
    for (const uint64_t k : *positions) {
      found(part, part.written[k], static_cast<int64_t>(k));
    }
    // What the expected run left alone must not have been written either.
    absl::StatusOr<std::vector<uint64_t>> changed = Changed(part);
    if (!changed.ok()) return changed.status();
    std::vector<uint64_t> stray;
    std::set_difference(changed->begin(), changed->end(), part.written.begin(),
                        part.written.end(), std::back_inserter(stray));
    for (const uint64_t chunk : stray) found(part, chunk, -1);
  }
  return absl::OkStatus();
}

absl::Status StateKeeper::FindUnrepeatable() {
  return Compare([&](Part& part, uint64_t chunk, int64_t position) {
    if (part.range.host) {
      unrepeatable_ += part.host_unrepeatable ? 0 : 1;
      part.host_unrepeatable = true;
    } else if (position >= 0) {
      const auto at = static_cast<size_t>(position);
      unrepeatable_ += part.skip[at] ? 0 : 1;
      part.skip[at] = true;
    } else if (part.loose.insert(chunk).second) {
      ++unrepeatable_;
      part.stray.insert(chunk);
    }
  });
}

absl::StatusOr<bool> StateKeeper::EqualsResult(std::string* difference) {
  uint64_t count = 0;
  differences_.clear();
  HEDDLE_RETURN_IF_ERROR(
      Compare([&](Part& part, uint64_t chunk, int64_t position) {
        if (part.range.host) {
          if (part.host_unrepeatable) return;
        } else if (position >= 0) {
          if (part.skip[static_cast<size_t>(position)]) return;
        } else {
          part.stray.insert(chunk);
          if (part.loose.contains(chunk)) return;
        }
        differences_.insert(part.range.address + chunk * kChunkBytes);
        if (count++ == 0) {
          *difference = absl::StrCat(
              "0x", absl::Hex(part.range.address + chunk * kChunkBytes), " (",
              chunk * kChunkBytes, " bytes into an allocation of ",
              part.range.size, ")");
        }
      }));
  if (count == 0) return true;
  absl::StrAppend(difference, ", ", count, " chunks of ", kChunkBytes / 1024,
                  " KiB in all");
  return false;
}

absl::Status StateKeeper::RestoreChunks(const Part& part,
                                        const std::vector<uint64_t>& chunks) {
  // Neighbours go in one copy.
  for (size_t i = 0; i < chunks.size();) {
    size_t end = i + 1;
    while (end < chunks.size() && chunks[end] == chunks[end - 1] + 1) ++end;
    const uint64_t begin = chunks[i] * kChunkBytes;
    const uint64_t bytes =
        std::min((chunks[end - 1] + 1) * kChunkBytes, part.range.size) - begin;
    HEDDLE_RETURN_IF_ERROR(driver_.Check(
        driver_.MemcpyDtoDAsync(part.range.address + begin, part.saved + begin,
                                bytes, stream_),
        "cuMemcpyDtoDAsync(restore)"));
    i = end;
  }
  return absl::OkStatus();
}

absl::Status StateKeeper::Restore() {
  for (Part& part : parts_) {
    if (part.range.host) {
      std::memcpy(HostBytes(part.range), part.host_saved.data(),
                  part.range.size);
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(RestoreChunks(part, part.written));
    HEDDLE_RETURN_IF_ERROR(RestoreChunks(
        part, std::vector<uint64_t>(part.stray.begin(), part.stray.end())));
  }
  return Synchronize();
}

absl::Status StateKeeper::RestoreAll() {
  for (Part& part : parts_) {
    if (part.range.host) continue;
    absl::StatusOr<std::vector<uint64_t>> changed = Changed(part);
    if (!changed.ok()) return changed.status();
    HEDDLE_RETURN_IF_ERROR(RestoreChunks(part, *changed));
  }
  return Restore();
}

uint64_t StateKeeper::written_chunks() const {
  uint64_t count = 0;
  for (const Part& part : parts_) count += part.written.size();
  return count;
}

}  // namespace heddle::live
