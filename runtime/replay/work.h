// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_WORK_H_
#define HEDDLE_RUNTIME_REPLAY_WORK_H_

// Trace records into operations. Copies come out with the host addresses of
// the program; ResolveHostEnds replaces them once it is known which host
// memory the device reads as well.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/replay/operation.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

// A copy whose host ends still have the program's addresses.
struct PendingCopy {
  CopyWork work;
  trace::Hash128 data;  // of the host bytes
  bool has_data = false;
};

// How a copy of kind "default" finds out what its addresses are.
using IsDeviceAddress = std::function<bool(uint64_t)>;

absl::StatusOr<LaunchWork> ToLaunch(const fb::Launch& launch,
                                    const Kernel& kernel, uint32_t index);
// Errors: Unimplemented for arrays.
absl::StatusOr<PendingCopy> ToCopy(const fb::Memcpy& copy,
                                   const IsDeviceAddress& is_device);
absl::StatusOr<FillWork> ToFill(const fb::Memset& fill);

// The writes of stream memory operations; `waits` counts the rest.
struct MemOpWork {
  struct Write {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;  // 4 or 8
  };
  std::vector<Write> writes;
  uint32_t waits = 0;
};
absl::StatusOr<MemOpWork> ToMemOp(const fb::MemOp& memop);

// Bytes that a copy moves, without padding. The parts were checked.
inline uint64_t CopyBytes(const CopyWork& work) {
  return work.width * work.height * work.depth;
}

// Whether the launch allows an early start (PDL), and the events that its
// attributes record.
bool SerializedEarly(const LaunchWork& launch);
struct LaunchEvent {
  uint64_t event = 0;
  uint8_t port = 0;
  uint8_t type = 0;
};
std::vector<LaunchEvent> LaunchEvents(const LaunchWork& launch);

std::string Describe(const CopyWork& work);
std::string Describe(const FillWork& work);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_WORK_H_
