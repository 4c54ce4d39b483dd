// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_RECORDER_H_
#define HEDDLE_RUNTIME_RECORD_RECORDER_H_

// The recorder: turns the program's driver calls (hooks_*.cc) into records of a
// trace.
//
// It lives in somebody else's process. Rules that every part of it keeps:
//  - the driver is called first and its result returned unchanged; heddle looks
//    at out-parameters only after success;
//  - nothing synchronizes, allocates device memory or loads code while any
//    stream captures;
//  - an internal error turns recording off (Recorder::Fail) and nothing else.
//
// Threads: hooks run on the program's threads. The launch path takes no lock;
// everything else may take the recorder's.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "heddle/trace.h"
#include "runtime/device/driver.h"
#include "runtime/record/hook_table.h"
#include "runtime/record/images.h"
#include "runtime/record/kernels.h"
#include "runtime/record/memory_map.h"
#include "runtime/record/options.h"
#include "runtime/record/step_watch.h"
#include "runtime/trace/writer.h"

namespace heddle::record {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): there is one.
class Recorder {
 public:
  // The process's recorder, or nullptr when nothing is recorded (any more, or
  // yet, in a forked child).
  static Recorder* Current() {
    return current_.load(std::memory_order_acquire);
  }
  // The same for a call that is to be recorded: a forked child begins with it.
  static Recorder* Get() {
    Recorder* recorder = Current();
    if (recorder == nullptr &&
        forked_from_.load(std::memory_order_relaxed) != nullptr) {
      return StartInChild();
    }
    return recorder;
  }

  // Opens the trace and makes the recorder current. Called once, before any
  // hook is set.
  static absl::Status Start(const RecordOptions& options,
                            const HeddleInterposer* interposer,
                            device::Driver driver);

  // Ends recording: footer, file closed, hooks cleared. Idempotent.
  void Finish(absl::string_view reason);
  // An internal error: says so once and turns recording off. The trace stays
  // readable up to here.
  void Fail(absl::string_view what);
  // In a forked child: drops the parent's file. The child's own is opened when
  // it makes its first call that is recorded: most children (a data loader's
  // workers) never do.
  void LeaveToParent();

  const device::Driver& driver() const { return driver_; }
  const HeddleInterposer* interposer() const { return interposer_; }
  const RecordOptions& options() const { return options_; }
  trace::Writer& writer() { return *writer_; }
  KernelTable& kernels() { return kernels_; }
  ImageTable& images() { return images_; }
  MemoryMap& memory() { return memory_; }
  StepWatch& steps() { return steps_; }

  // Who calls, when. Costs one clock read.
  fb::Stamp Stamp();
  // Like Stamp, for FlatBuffers' object form.
  std::unique_ptr<fb::Stamp> StampPtr() {
    return std::make_unique<fb::Stamp>(Stamp());
  }
  // The context of the calling thread may have changed.
  static void ForgetThreadContext();

  // Whether work (launches, copies) is to be written now.
  bool writes_work() const {
    return writes_work_.load(std::memory_order_relaxed);
  }
  void set_writes_work(bool on) {
    writes_work_.store(on, std::memory_order_relaxed);
  }

  // Captures under way in this process, by all threads.
  bool any_capture() const {
    return captures_.load(std::memory_order_acquire) > 0;
  }
  void CaptureBegan() { captures_.fetch_add(1, std::memory_order_acq_rel); }
  void CaptureEnded();
  // Whether work put into `stream` is recorded into a graph instead of run.
  bool IsCapturing(CUstream stream, bool per_thread) const;

  // The handle as the trace names it: handle 0 of a per-thread call is the
  // per-thread default stream.
  static uint64_t StreamId(CUstream stream, bool per_thread) {
    if (stream == nullptr && per_thread) return 2;  // CU_STREAM_PER_THREAD
    return reinterpret_cast<uint64_t>(stream);
  }

  // A call that heddle records the existence of and no more. Once per `api`.
  void Unsupported(absl::string_view api, absl::string_view detail);
  void Note(int severity, std::string text);

  // NVTX ranges of the program.
  void RangePush(uint64_t domain, absl::string_view name);
  void RangePop(uint64_t domain);
  void WriteRange(fb::RangeOp op, uint64_t domain, uint64_t id,
                  absl::string_view name);

  // Graph structure of each executable graph the program holds.
  struct ExecInfo {
    uint32_t graph_id = 0;
    uint64_t launches = 0;
    uint32_t kernels = 0;
    // Handle of a node of the instantiated graph -> index in Graph.nodes.
    absl::flat_hash_map<uint64_t, uint32_t> node_index;
  };
  // Where `node` stands in the graph that `exec` was made from.
  bool FindNode(uint64_t exec, uint64_t node, uint32_t* graph, uint32_t* index);
  std::mutex& mutex() { return mutex_; }
  absl::flat_hash_map<uint64_t, ExecInfo>& execs() { return execs_; }
  uint32_t NextGraphId() { return next_graph_id_.fetch_add(1); }

 private:
  Recorder(const RecordOptions& options, const HeddleInterposer* interposer,
           device::Driver driver);
  static Recorder* StartInChild();
  absl::Status OpenTrace();
  void WriteProcess();
  void WriteDevice(CUdevice device);
  uint32_t CurrentContextId();
  uint32_t DefineContext(CUcontext context);

  static std::atomic<Recorder*> current_;
  // In a child that has not recorded yet: the parent's recorder.
  static std::atomic<Recorder*> forked_from_;

  RecordOptions options_;
  const HeddleInterposer* interposer_;
  device::Driver driver_;
  KernelTable kernels_;
  ImageTable images_;
  MemoryMap memory_;
  StepWatch steps_;
  // What every launch reads and almost nothing writes, on one cache line.
  alignas(64) std::unique_ptr<trace::Writer> writer_;
  uint64_t start_ns_ = 0;
  std::atomic<bool> writes_work_{true};
  std::atomic<int> captures_{0};
  std::atomic<bool> finished_{false};
  std::atomic<uint32_t> next_graph_id_{1};
  std::atomic<uint32_t> unsupported_{0};

  absl::flat_hash_map<uint64_t, ExecInfo> execs_;
  absl::flat_hash_map<uint64_t, uint32_t> contexts_;
  absl::flat_hash_set<int> devices_;
  absl::flat_hash_map<std::string, uint32_t> unsupported_seen_;
  std::mutex mutex_;  // guards the tables above
};

// Runs `body(recorder)` if recording is on; an exception in it turns recording
// off instead of reaching the program.
template <typename Body>
void WithRecorder(Body&& body) noexcept {
  Recorder* recorder = Recorder::Get();
  if (recorder == nullptr) return;
  try {
    std::forward<Body>(body)(*recorder);
  } catch (const std::exception& error) {
    recorder->Fail(error.what());
  } catch (...) {
    recorder->Fail("unknown exception");
  }
}

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_RECORDER_H_
