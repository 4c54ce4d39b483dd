// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_STEP_WATCH_H_
#define HEDDLE_RUNTIME_RECORD_STEP_WATCH_H_

// Finds the program's repeating unit while it runs, so that memory can be kept
// at the start of one repetition. Three kinds of unit are watched for:
//  - the launches of one thread between two of its synchronizations with the
//    device (a decode loop waits for its token), recognised by a hash of the
//    launch sequence;
//  - one launch of an executable graph;
//  - an NVTX range of a given name.
// The offline analysis (runtime/trace/steps.h) is what finally says what a step
// is; this only decides when memory is worth keeping.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "runtime/record/options.h"

namespace heddle::record {

class Recorder;

class StepWatch {
 public:
  explicit StepWatch(const RecordOptions& options);

  // Whether hooks need to call the functions below at all.
  bool active() const { return active_.load(std::memory_order_relaxed); }

  // A launch (its identity hashed to `token`) by this thread.
  void OnLaunch(uint64_t token);
  // This thread has just waited for the device. May take a snapshot.
  void OnSync(Recorder& recorder);
  // `exec` is about to be launched for the `launches`-th time (from 0), resp.
  // has been.
  void BeforeGraphLaunch(Recorder& recorder, uint64_t exec, uint64_t launches,
                         uint32_t kernels);
  void AfterGraphLaunch(Recorder& recorder, uint64_t exec);
  void OnRangePush(Recorder& recorder, absl::string_view name);
  void OnRangePop(Recorder& recorder);

  // Until Resume no step begins. False, and nothing changes, while one is open.
  bool Pause();
  // What threads have launched since they last waited is forgotten: part of it
  // was not seen.
  void Resume();

  // Launches between two synchronizations that are too few to be a step.
  static constexpr uint32_t kMinLaunches = 8;

 private:
  enum class Unit { kSegment, kGraph, kRange };

  // Whether repetition `n` (from 0) of a unit is one whose memory to keep.
  bool Wanted(uint64_t n) const;
  // Without step numbers: whether a unit of so many launches is worth another
  // snapshot. A program repeats small things (initialising its layers) before
  // it comes to its steps, so a much larger unit counts again.
  bool IsLargerThanTaken(Unit unit, uint32_t launches) const;
  // True once; marks that the unit has begun. False if memory cannot be kept
  // now (a capture is under way); then the next repetition tries again.
  bool Begin(Recorder& recorder, Unit unit, std::string source);
  void End(Recorder& recorder);
  void RetireIfDone(Recorder& recorder);
  // The repetition that begins now comes right before one whose memory is to
  // be kept: its pointers show where the snapshot is to be cut.
  static void PrepareSnapshot(Recorder& recorder);

  // What every launch reads comes first and the mutex, taken at every
  // synchronization, last: on another cache line.
  std::atomic<bool> active_;
  const bool enabled_;
  // Raised by Resume; a thread's launches from before it do not count.
  std::atomic<uint32_t> epoch_{0};
  const std::vector<uint64_t> steps_;
  const std::string range_;

  absl::flat_hash_map<uint64_t, uint64_t> segments_seen_;
  uint64_t last_segment_ = 0;
  uint64_t repeated_ = 0;  // how often `last_segment_` has come in a row
  // Launches of the largest unit taken so far, by kind.
  uint32_t taken_launches_[3] = {0, 0, 0};
  uint32_t open_launches_ = 0;
  uint64_t ranges_seen_ = 0;
  uint32_t next_index_ = 0;
  int taken_[3] = {0, 0, 0};
  bool paused_ = false;
  // The open step, if any.
  bool open_ = false;
  Unit open_unit_ = Unit::kSegment;
  uint64_t open_thread_ = 0;
  uint64_t open_exec_ = 0;
  int open_depth_ = 0;

  std::mutex mutex_;  // guards all but the constants and the atomics
};

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_STEP_WATCH_H_
