// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_LIVE_MEMORY_H_
#define HEDDLE_RUNTIME_REPLAY_LIVE_MEMORY_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "heddle/trace.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

// The allocations that are live at one moment of a trace.
class LiveMemory {
 public:
  struct Block {
    uint64_t size = 0;
    fb::MemoryKind kind = fb::MemoryKind::kDevice;
    uint64_t device_address = 0;  // of host memory
  };

  // Errors: InvalidArgument if the range wraps around.
  absl::Status Add(const fb::Alloc& alloc);
  void Remove(const fb::Free& free);

  // The block that holds `address`, or the end.
  std::map<uint64_t, Block>::const_iterator Find(uint64_t address) const;
  // True if `address` lies in memory that is not host memory.
  bool IsDevice(uint64_t address) const;
  bool IsHost(uint64_t address) const;

  const std::map<uint64_t, Block>& blocks() const { return blocks_; }

 private:
  std::map<uint64_t, Block> blocks_;  // by address
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_LIVE_MEMORY_H_
