// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_ORDERING_H_
#define HEDDLE_RUNTIME_REPLAY_ORDERING_H_

// Turns the order that a CUDA program expressed through streams, events and
// synchronization into explicit dependencies between its operations.
//
// What counts as order:
//   - work in one stream, in the order of the calls;
//   - an event: what its stream held at the latest record before the wait;
//   - the legacy default stream (handle 0 or 1): its work waits for all
//     earlier work of the blocking streams of its context, and they for it;
//   - a host synchronization: everything submitted later by any thread comes
//     after what was waited for. Threads may pass that knowledge on by means
//     that a trace does not show, so this orders more than one thread needs.
//
// Programmatic dependencies (PDL) let a kernel start before an earlier one has
// ended. Later work with a full dependency still waits for both.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/replay/operation.h"

namespace heddle::replay {

// Operations that something must wait for.
using Frontier = std::vector<Dependency>;

struct StreamRef {
  uint32_t context = 0;
  uint64_t handle = 0;  // 0, 1: legacy; 2: per-thread default stream
  uint32_t thread = 0;
};

struct Lane {
  uint32_t context = 0;
  uint64_t handle = 0;
  uint32_t thread = 0;      // of a per-thread default stream
  uint32_t generation = 0;  // handles are reused
  bool blocking = true;     // synchronizes with the legacy default stream
  bool legacy = false;
  int priority = 0;
};

class OrderTracker {
 public:
  // Above this many operations redundant edges are kept: finding them needs a
  // bit for every pair.
  static constexpr size_t kMaxReduced = 32768;

  // Streams that were never created in the trace are blocking ones.
  void CreateStream(const StreamRef& stream, uint32_t flags, int priority);
  void DestroyStream(const StreamRef& stream);
  uint32_t LaneOf(const StreamRef& stream);
  const std::vector<Lane>& lanes() const { return lanes_; }

  // The dependencies of the next operation submitted to `stream`, reduced.
  // `kernel`: it is a kernel, which alone can have programmatic ones.
  // `serialized_early`: it was launched with programmatic stream
  // serialization, so it may overlap with a kernel right before it.
  Frontier Before(const StreamRef& stream, bool kernel, bool serialized_early);

  // Announces operation `index` (they come in order, from 0) with its final
  // dependencies, without giving it a place in a stream.
  void Add(uint32_t index, bool kernel, const Frontier& dependencies);
  // Makes `last` what the stream's next operation waits for.
  void Advance(const StreamRef& stream, const Frontier& last);

  void CreateEvent(uint64_t event);
  bool HasEvent(uint64_t event) const { return events_.contains(event); }
  void RecordEvent(uint64_t event, const StreamRef& stream);
  // An event that a launch attribute fires at a port of operation `index`.
  void RecordEventAt(uint64_t event, const Dependency& source);
  void WaitEvent(uint64_t event, const StreamRef& stream);
  // The operations that `event` stands for; empty if never recorded.
  Frontier EventFrontier(uint64_t event) const;

  void SyncStream(const StreamRef& stream);
  void SyncEvent(uint64_t event);
  void SyncContext(uint32_t context);
  // Everything submitted from now on waits for `operation`.
  void SyncOperation(uint32_t operation);

  // True if `before` has ended when `after` starts. Both must have been added,
  // and kMaxReduced not passed.
  bool Ordered(uint32_t before, uint32_t after) const;

 private:
  bool SameContext(uint32_t a, uint32_t b) const;
  bool HasAncestor(uint32_t operation, uint32_t ancestor) const;
  // What an operation submitted to `lane` now would wait for.
  Frontier Raw(uint32_t lane) const;
  // `frontier` with full edges, also to what may outlast its operations.
  Frontier Completed(Frontier frontier) const;
  // Drops what other entries imply.
  void Reduce(Frontier& frontier) const;

  std::vector<Lane> lanes_;
  std::vector<Frontier> tails_;  // by lane: what its next operation waits for
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint32_t> current_;
  absl::flat_hash_map<uint64_t, Frontier> events_;
  Frontier host_;  // the host has seen these end
  std::vector<bool> kernel_;
  // ancestors_[i]: bit j set if j has ended when i starts.
  std::vector<std::vector<uint64_t>> ancestors_;
  // unfinished_[i]: operations that may still run when i has ended.
  std::vector<std::vector<uint32_t>> unfinished_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_ORDERING_H_
