// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/step_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/record/recorder.h"
#include "runtime/record/snapshot.h"

namespace heddle::record {
namespace {

// Which repetition is kept when nobody says: by the third time, caches are warm
// and lazy initialisation is over.
constexpr uint64_t kAutoRepetition = 2;

struct ThreadSegment {
  uint64_t hash = 0;
  uint32_t launches = 0;
  uint32_t epoch = 0;
};
thread_local ThreadSegment t_segment;
thread_local int t_range_depth = 0;

uint64_t ThreadId() {
  thread_local char marker;
  return reinterpret_cast<uint64_t>(&marker);
}

}  // namespace

StepWatch::StepWatch(const RecordOptions& options)
    : active_(options.snapshot_steps),
      enabled_(options.snapshot_steps),
      steps_(options.steps),
      range_(options.range) {}

bool StepWatch::Wanted(uint64_t n) const {
  if (steps_.empty()) return n >= kAutoRepetition;
  return std::find(steps_.begin(), steps_.end(), n) != steps_.end();
}

bool StepWatch::Pause() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_) return false;
  paused_ = true;
  return true;
}

void StepWatch::Resume() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!paused_) return;
  paused_ = false;
  epoch_.fetch_add(1, std::memory_order_relaxed);
}

void StepWatch::OnLaunch(uint64_t token) {
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed);
  if (t_segment.epoch != epoch) t_segment = {.epoch = epoch};
  t_segment.hash = (t_segment.hash ^ token) * 0x9E3779B97F4A7C15u;
  t_segment.hash ^= t_segment.hash >> 32;
  ++t_segment.launches;
}

void StepWatch::OnSync(Recorder& recorder) {
  const ThreadSegment segment = t_segment;
  if (segment.launches < kMinLaunches) return;
  t_segment = {.epoch = segment.epoch};
  if (segment.epoch != epoch_.load(std::memory_order_relaxed)) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_) {
    if (open_unit_ == Unit::kSegment && open_thread_ == ThreadId()) {
      End(recorder);
    }
    return;
  }
  if (!range_.empty()) return;
  const uint64_t seen = segments_seen_[segment.hash]++;
  repeated_ = segment.hash == last_segment_ ? repeated_ + 1 : 1;
  last_segment_ = segment.hash;
  // The next repetition begins now. Numbered, it is one more than this one.
  if (steps_.empty()) {
    if (!IsLargerThanTaken(Unit::kSegment, segment.launches)) return;
    if (repeated_ + 1 == kAutoRepetition) PrepareSnapshot(recorder);
    if (repeated_ < kAutoRepetition) return;
  } else {
    if (Wanted(seen + 2)) PrepareSnapshot(recorder);
    if (!Wanted(seen + 1)) return;
  }
  if (Begin(recorder, Unit::kSegment,
            absl::StrCat("between synchronizations, after ", seen + 1,
                         " alike"))) {
    open_launches_ = segment.launches;
  }
}

bool StepWatch::IsLargerThanTaken(Unit unit, uint32_t launches) const {
  constexpr uint32_t kMuchLarger = 4;
  return launches >= kMuchLarger * taken_launches_[static_cast<int>(unit)];
}

void StepWatch::BeforeGraphLaunch(Recorder& recorder, uint64_t exec,
                                  uint64_t launches, uint32_t kernels) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_ || !range_.empty()) return;
  if (steps_.empty() && !IsLargerThanTaken(Unit::kGraph, kernels)) return;
  if (Wanted(launches) &&
      Begin(recorder, Unit::kGraph,
            absl::StrCat("launch ", launches, " of a graph"))) {
    open_exec_ = exec;
    open_launches_ = kernels;
  }
}

void StepWatch::AfterGraphLaunch(Recorder& recorder, uint64_t exec) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!open_ || open_unit_ != Unit::kGraph || open_exec_ != exec) return;
  End(recorder);
}

void StepWatch::OnRangePush(Recorder& recorder, absl::string_view name) {
  ++t_range_depth;
  if (range_.empty() || name != range_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_) return;
  const uint64_t n = ranges_seen_++;
  if (Wanted(n + 1)) PrepareSnapshot(recorder);
  if (steps_.empty() && taken_[static_cast<int>(Unit::kRange)] > 0) return;
  if (Wanted(n) && Begin(recorder, Unit::kRange,
                         absl::StrCat("range ", range_, " number ", n))) {
    open_depth_ = t_range_depth;
  }
}

void StepWatch::OnRangePop(Recorder& recorder) {
  const int depth = t_range_depth--;
  if (range_.empty()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_ && open_unit_ == Unit::kRange && open_thread_ == ThreadId() &&
      open_depth_ == depth) {
    End(recorder);
  }
}

bool StepWatch::Begin(Recorder& recorder, Unit unit, std::string source) {
  if (paused_ || recorder.any_capture()) return false;
  fb::StepT step;
  step.stamp = recorder.StampPtr();
  step.op = fb::StepOp::kBegin;
  step.index = next_index_;
  step.source = std::move(source);
  recorder.writer().AppendObject(step);
  if (!TakeSnapshot(recorder, fb::SnapshotWhen::kStepBegin, next_index_)) {
    return false;
  }
  recorder.set_writes_work(true);
  open_ = true;
  open_unit_ = unit;
  open_thread_ = ThreadId();
  return true;
}

void StepWatch::PrepareSnapshot(Recorder& recorder) {
  if (recorder.options().memory == MemoryPolicy::kSmall) {
    recorder.memory().set_collects_pointers(true);
  }
}

void StepWatch::End(Recorder& recorder) {
  // What the program's memory was afterwards is worth keeping only where the
  // start is known byte for byte: then a replay can be held against it.
  if (recorder.options().memory == MemoryPolicy::kFull) {
    TakeSnapshot(recorder, fb::SnapshotWhen::kStepEnd, next_index_);
  }
  fb::StepT step;
  step.stamp = recorder.StampPtr();
  step.op = fb::StepOp::kEnd;
  step.index = next_index_++;
  recorder.writer().AppendObject(step);
  recorder.set_writes_work(!recorder.options().window_steps);
  if (recorder.options().window_steps) {
    recorder.memory().set_collects_pointers(false);
  }
  open_ = false;
  ++taken_[static_cast<int>(open_unit_)];
  taken_launches_[static_cast<int>(open_unit_)] = open_launches_;
  RetireIfDone(recorder);
}

void StepWatch::RetireIfDone(Recorder& recorder) {
  if (steps_.empty()) {
    // Other units may still turn out to be larger.
    if (range_.empty() || taken_[static_cast<int>(Unit::kRange)] == 0) return;
  } else {
    const auto taken = static_cast<size_t>(taken_[0]) +
                       static_cast<size_t>(taken_[1]) +
                       static_cast<size_t>(taken_[2]);
    if (taken < steps_.size()) return;
  }
  active_.store(false, std::memory_order_relaxed);
  recorder.memory().set_collects_pointers(false);
  // Nothing more is to be written, so the program runs on without any hook.
  if (recorder.options().window_steps) {
    recorder.Finish("the chosen steps are recorded");
  }
}

}  // namespace heddle::record
