// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_STATE_KEEPER_H_
#define HEDDLE_RUNTIME_LIVE_STATE_KEEPER_H_

// The memory that a graph launch may change: kept, compared, given back, so
// that one launch of the program can be tried in several forms.
//
// What a graph writes is not known, so everything is kept that it could reach;
// after the first run only the chunks that changed matter.
//
// Not thread safe. The context that owns the memory is current; nothing else
// runs on the device while an object exists.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/driver.h"

namespace heddle::live {

struct MemoryRange {
  uint64_t address = 0;
  uint64_t size = 0;  // bytes
  bool host = false;  // host memory: read and written by the CPU
};

// The device kernels (device/chunks.cu) in one context. Never unloaded.
struct ChunkKernels {
  CUmodule module = nullptr;
  CUfunction compare = nullptr;
  CUfunction gather = nullptr;
  CUfunction compare_gathered = nullptr;

  static absl::StatusOr<ChunkKernels> Load(const device::Driver& driver);
};

class StateKeeper {
 public:
  static constexpr uint32_t kChunkBytes = 16 * 1024;

  // Copies `ranges` (not overlapping) aside. ResourceExhausted if that does not
  // fit into `limit` bytes of device memory. Work goes to `stream`.
  static absl::StatusOr<std::unique_ptr<StateKeeper>> Save(
      const device::Driver& driver, const ChunkKernels& kernels,
      const std::vector<MemoryRange>& ranges, uint64_t limit, CUstream stream);
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  // A run has ended: takes what it changed for the expected result.
  absl::Status KeepResult();
  // A run of the same form, from the same state, has ended: chunks that differ
  // from the kept result are not repeatable and are left out of comparisons.
  absl::Status FindUnrepeatable();
  // Whether memory now equals the kept result, except where serial runs differ
  // among themselves. `difference` says where not, for people.
  absl::StatusOr<bool> EqualsResult(std::string* difference);
  // Back to the saved state: what the runs that were looked at have changed.
  absl::Status Restore();
  // The same for everything, also what other runs have changed: looks at all
  // memory.
  absl::Status RestoreAll();
  // Addresses of the chunks in which the last comparison by EqualsResult found
  // a difference.
  const std::set<uint64_t>& differences() const { return differences_; }

  // Whether KeepResult has succeeded. Before that Restore knows of no change.
  bool has_result() const { return has_result_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t written_chunks() const;
  uint64_t unrepeatable_chunks() const { return unrepeatable_; }

 private:
  struct Part {
    MemoryRange range;
    CUdeviceptr saved = 0;             // in buffer_
    std::vector<uint8_t> host_saved;   // host ranges
    std::vector<uint8_t> host_result;  // host ranges
    bool host_changed = false;
    bool host_unrepeatable = false;
    std::vector<uint64_t> written;  // chunks of the kept result, ascending
    std::set<uint64_t> stray;       // chunks that only other runs wrote
    std::set<uint64_t> loose;       // those of them that are not repeatable
    std::vector<bool> skip;         // by position in `written`: not repeatable
    CUdeviceptr indices = 0;        // `written` on the device
    CUdeviceptr result = 0;         // their content
  };

  StateKeeper(const device::Driver& driver, const ChunkKernels& kernels,
              CUstream stream)
      : driver_(driver), kernels_(kernels), stream_(stream) {}

  absl::Status Launch(CUfunction function, uint64_t blocks, void** params);
  absl::Status Synchronize();
  // Chunks of `part` that differ from what was saved, ascending.
  absl::StatusOr<std::vector<uint64_t>> Changed(const Part& part);
  // Which of `part.written` differ from the kept result.
  absl::StatusOr<std::vector<uint64_t>> Mismatches(const Part& part);
  absl::Status RestoreChunks(const Part& part,
                             const std::vector<uint64_t>& chunks);
  // Compares with the kept result. Calls `found(part, chunk, position in
  // written or -1)` for each difference.
  template <typename Found>
  absl::Status Compare(Found found);

  const device::Driver& driver_;
  const ChunkKernels& kernels_;
  CUstream stream_;
  std::vector<Part> parts_;
  std::vector<CUdeviceptr> owned_;
  CUdeviceptr flags_ = 0;  // one a chunk of the largest part
  uint64_t max_chunks_ = 0;
  uint64_t bytes_ = 0;
  uint64_t unrepeatable_ = 0;
  bool has_result_ = false;
  std::set<uint64_t> differences_;
};

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_STATE_KEEPER_H_
