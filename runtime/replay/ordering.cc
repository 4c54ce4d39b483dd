// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/ordering.h"

#include <cuda.h>

#include <algorithm>

namespace heddle::replay {
namespace {

constexpr uint64_t kLegacy = 0;
constexpr uint64_t kLegacyAlias = 1;
constexpr uint64_t kPerThread = 2;

// Two edges to one operation become one; the stricter wins.
void Insert(Frontier& frontier, const Dependency& entry) {
  for (Dependency& present : frontier) {
    if (present.from != entry.from) continue;
    if (present != entry) present = Dependency{entry.from, 0, 0};
    return;
  }
  frontier.push_back(entry);
}

void Merge(Frontier& into, const Frontier& from) {
  for (const Dependency& entry : from) Insert(into, entry);
}

std::tuple<uint32_t, uint64_t, uint32_t> KeyOf(const StreamRef& stream) {
  switch (stream.handle) {
    case kLegacy:
    case kLegacyAlias:
      return {stream.context, kLegacy, 0};
    case kPerThread:
      return {stream.context, kPerThread, stream.thread};
    default:
      return {0, stream.handle, 0};  // unique in the process
  }
}

}  // namespace

void OrderTracker::CreateStream(const StreamRef& stream, uint32_t flags,
                                int priority) {
  Lane lane;
  lane.context = stream.context;
  lane.handle = stream.handle;
  lane.blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  lane.priority = priority;
  for (const Lane& other : lanes_) {
    if (other.handle == lane.handle) lane.generation = other.generation + 1;
  }
  current_[KeyOf(stream)] = static_cast<uint32_t>(lanes_.size());
  lanes_.push_back(lane);
  tails_.emplace_back();
}

void OrderTracker::DestroyStream(const StreamRef& stream) {
  // The lane stays: its work goes on, and the legacy stream waits for it.
  current_.erase(KeyOf(stream));
}

uint32_t OrderTracker::LaneOf(const StreamRef& stream) {
  const auto key = KeyOf(stream);
  if (const auto it = current_.find(key); it != current_.end()) {
    return it->second;
  }
  Lane lane;
  lane.context = stream.context;
  lane.handle = std::get<1>(key);
  lane.thread = std::get<2>(key);
  lane.legacy = lane.handle == kLegacy;
  current_[key] = static_cast<uint32_t>(lanes_.size());
  lanes_.push_back(lane);
  tails_.emplace_back();
  return static_cast<uint32_t>(lanes_.size() - 1);
}

bool OrderTracker::SameContext(uint32_t a, uint32_t b) const {
  return a == b || a == 0 || b == 0;  // 0: the trace does not know
}

bool OrderTracker::HasAncestor(uint32_t operation, uint32_t ancestor) const {
  if (operation >= ancestors_.size()) return false;
  const std::vector<uint64_t>& bits = ancestors_[operation];
  return ancestor / 64 < bits.size() &&
         ((bits[ancestor / 64] >> (ancestor % 64)) & 1) != 0;
}

bool OrderTracker::Ordered(uint32_t before, uint32_t after) const {
  return HasAncestor(after, before);
}

Frontier OrderTracker::Raw(uint32_t lane) const {
  Frontier result = tails_[lane];
  const Lane& self = lanes_[lane];
  if (self.blocking) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& other = lanes_[i];
      if (i == lane || !other.blocking || !(self.legacy || other.legacy)) {
        continue;
      }
      if (!SameContext(self.context, other.context)) continue;
      Merge(result, Completed(tails_[i]));
    }
  }
  Merge(result, host_);
  return result;
}

Frontier OrderTracker::Completed(Frontier frontier) const {
  Frontier result;
  for (const Dependency& entry : frontier) {
    Insert(result, Dependency{entry.from, 0, 0});
    if (entry.from >= unfinished_.size()) continue;
    for (const uint32_t late : unfinished_[entry.from]) {
      Insert(result, Dependency{late, 0, 0});
    }
  }
  return result;
}

void OrderTracker::Reduce(Frontier& frontier) const {
  if (frontier.size() < 2) return;
  Frontier kept;
  for (const Dependency& entry : frontier) {
    const bool implied = std::any_of(
        frontier.begin(), frontier.end(), [&](const Dependency& other) {
          return HasAncestor(other.from, entry.from);
        });
    if (!implied) kept.push_back(entry);
  }
  frontier = std::move(kept);
}

Frontier OrderTracker::Before(const StreamRef& stream, bool kernel,
                              bool serialized_early) {
  const uint32_t lane = LaneOf(stream);
  Frontier frontier = Raw(lane);
  Reduce(frontier);
  const Frontier& tail = tails_[lane];
  const bool after_one_kernel = frontier.size() == 1 && tail.size() == 1 &&
                                frontier[0] == tail[0] && frontier[0].full() &&
                                frontier[0].from < kernel_.size() &&
                                kernel_[frontier[0].from];
  const bool known_ended =
      std::any_of(host_.begin(), host_.end(), [&](const Dependency& entry) {
        return !frontier.empty() && entry.from == frontier[0].from;
      });
  if (kernel && serialized_early && after_one_kernel && !known_ended) {
    return {Dependency{frontier[0].from, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                       CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC}};
  }
  // A full edge to an operation covers what it may have left running; an edge
  // from an event that fires early stays as the program asked for it.
  Frontier result;
  for (const Dependency& entry : frontier) {
    if (kernel && !entry.full()) {
      Insert(result, entry);
    } else {
      Merge(result, Completed({entry}));
    }
  }
  Reduce(result);
  return result;
}

void OrderTracker::Add(uint32_t index, bool kernel,
                       const Frontier& dependencies) {
  if (kernel_.size() <= index) kernel_.resize(index + 1, false);
  kernel_[index] = kernel;
  const bool reduced = index < kMaxReduced;
  if (reduced) {
    if (ancestors_.size() <= index) ancestors_.resize(index + 1);
    std::vector<uint64_t> bits(index / 64 + 1, 0);
    for (const Dependency& d : dependencies) {
      if (d.full()) bits[d.from / 64] |= uint64_t{1} << (d.from % 64);
      if (d.from >= ancestors_.size()) continue;
      const std::vector<uint64_t>& above = ancestors_[d.from];
      for (size_t i = 0; i < above.size(); ++i) bits[i] |= above[i];
    }
    ancestors_[index] = std::move(bits);
  }
  if (unfinished_.size() <= index) unfinished_.resize(index + 1);
  std::vector<uint32_t> late;
  const auto add = [&](uint32_t operation) {
    if (HasAncestor(index, operation)) return;
    if (std::find(late.begin(), late.end(), operation) == late.end()) {
      late.push_back(operation);
    }
  };
  for (const Dependency& d : dependencies) {
    if (!d.full()) add(d.from);
    for (const uint32_t operation : unfinished_[d.from]) {
      const bool waited = std::any_of(
          dependencies.begin(), dependencies.end(),
          [&](const Dependency& e) { return e.full() && e.from == operation; });
      if (!waited) add(operation);
    }
  }
  unfinished_[index] = std::move(late);
}

void OrderTracker::Advance(const StreamRef& stream, const Frontier& last) {
  tails_[LaneOf(stream)] = last;
}

void OrderTracker::CreateEvent(uint64_t event) { events_.erase(event); }

void OrderTracker::RecordEvent(uint64_t event, const StreamRef& stream) {
  const uint32_t lane = LaneOf(stream);
  Frontier frontier = Completed(Raw(lane));
  Reduce(frontier);
  // On the legacy stream the record is a barrier for all blocking streams.
  if (lanes_[lane].legacy) tails_[lane] = frontier;
  events_[event] = std::move(frontier);
}

void OrderTracker::RecordEventAt(uint64_t event, const Dependency& source) {
  events_[event] = {source};
}

void OrderTracker::WaitEvent(uint64_t event, const StreamRef& stream) {
  const uint32_t lane = LaneOf(stream);
  const auto it = events_.find(event);
  if (it == events_.end()) return;  // CUDA: waiting for no record is no wait
  // On the legacy stream the wait is a barrier for all blocking streams.
  if (lanes_[lane].legacy) tails_[lane] = Completed(Raw(lane));
  Merge(tails_[lane], it->second);
  Reduce(tails_[lane]);
}

Frontier OrderTracker::EventFrontier(uint64_t event) const {
  const auto it = events_.find(event);
  return it == events_.end() ? Frontier{} : it->second;
}

void OrderTracker::SyncStream(const StreamRef& stream) {
  Merge(host_, Completed(Raw(LaneOf(stream))));
  Reduce(host_);
}

void OrderTracker::SyncEvent(uint64_t event) {
  Merge(host_, Completed(EventFrontier(event)));
  Reduce(host_);
}

void OrderTracker::SyncContext(uint32_t context) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!SameContext(lanes_[i].context, context)) continue;
    Merge(host_, Completed(tails_[i]));
    tails_[i].clear();
  }
  Reduce(host_);
}

void OrderTracker::SyncOperation(uint32_t operation) {
  Merge(host_, Completed({Dependency{operation, 0, 0}}));
  Reduce(host_);
}

}  // namespace heddle::replay
