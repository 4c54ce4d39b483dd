// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_OPTIMIZER_H_
#define HEDDLE_RUNTIME_LIVE_OPTIMIZER_H_

// Rewrites the executable graphs of the program that it lives in.
//
// The program's own executable is always kept. A graph's first launches are
// trials (live_graph.h): the graph is run in both forms on the same memory,
// compared and timed. Whatever is not proved, not verified or not faster stays
// as the program made it, and so does everything after an internal error.
//
// Threads: everything may be called from any thread. A launch of a settled
// graph takes one shared lock for a map look-up.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "runtime/cubin/patch_cache.h"
#include "runtime/device/driver.h"
#include "runtime/live/live_graph.h"
#include "runtime/live/live_access.h"
#include "runtime/live/loaded_code.h"
#include "runtime/live/options.h"
#include "runtime/live/state_keeper.h"
#include "runtime/record/memory_map.h"
#include "runtime/rewrite/patched_modules.h"

namespace heddle::live {

class Optimizer {
 public:
  // The process's optimizer, nullptr when there is none (any more).
  static Optimizer* Get() { return current_.load(std::memory_order_acquire); }
  static void Start(LiveOptions options, device::Driver driver,
                    CtxRecordEventFn record_event);
  // An internal error: says so once; all graphs are the program's own again.
  static void Fail(absl::string_view what);
  // At exit: graphs that were never launched often enough are reported.
  void Finish();
  // In a forked child the driver cannot be used.
  static void LeaveChild();

  const device::Driver& driver() const { return trial_.driver; }
  LoadedCode& code() { return code_; }
  record::MemoryMap& memory() { return memory_; }
  LiveAccess& accesses() { return accesses_; }
  // Whether some form asks what nodes touch. If not, hooks need not tell
  // accesses() anything.
  bool asks_for_accesses() const {
    return options_.level >= 2 || !options_.plans.empty();
  }
  // The program is about to give up the block of memory at `address`.
  void MemoryGoes(uint64_t address);
  // The program shares memory with other processes or devices, so a graph
  // cannot be run twice on its memory without somebody noticing.
  void SharesMemory(const char* api);

  void CaptureBegan() { captures_.fetch_add(1, std::memory_order_acq_rel); }
  void CaptureEnded() { captures_.fetch_sub(1, std::memory_order_acq_rel); }

  // The program asked for the address of a variable.
  void AskedForVariable(uint64_t container);

  // The program instantiated `graph` into `exec`.
  void Instantiated(CUgraphExec exec, CUgraph graph, uint64_t flags);
  // The program's update of `exec` to `graph` succeeded.
  void Updated(CUgraphExec exec, CUgraph graph);
  void Destroyed(CUgraphExec exec);
  // For changes of single nodes. nullptr if `exec` is unknown.
  std::shared_ptr<LiveGraph> Find(CUgraphExec exec);

  // For measurement: every launch runs the program's own graph. Returns how
  // many graphs have a rewritten form in use.
  int UseOwnGraphs(bool own);

  // Launches `exec` or what it was rewritten into. `stream` as the driver's own
  // functions take it (per-thread default stream spelled out).
  CUresult Launch(CUgraphExec exec, CUstream stream);

 private:
  Optimizer(LiveOptions options, device::Driver driver,
            CtxRecordEventFn record_event);
  absl::StatusOr<std::vector<MemoryRange>> Reachable(
      const rewrite::GraphModel& model, uint64_t limit);

  static std::atomic<Optimizer*> current_;

  LiveOptions options_;
  TrialTools trial_;
  std::unique_ptr<cubin::PatchCache> cache_;
  LoadedCode code_;
  rewrite::PatchedModules modules_;
  record::MemoryMap memory_;
  LiveAccess accesses_;
  std::atomic<int> captures_{0};
  std::atomic<const char*> shares_memory_{nullptr};
  std::atomic<uint64_t> next_graph_{1};

  std::shared_mutex mutex_;
  absl::flat_hash_map<CUgraphExec, std::shared_ptr<LiveGraph>> graphs_;
  // Graphs that were destroyed before their trials were over. A program that
  // makes a new graph for every few launches gains nothing: after enough of
  // them without one that lasted, new graphs are left alone.
  std::atomic<uint32_t> short_lived_{0};
  std::atomic<bool> gave_up_{false};
  std::atomic<bool> own_graphs_{false};
};

// Runs `body(optimizer)` if there is one; an exception turns heddle off instead
// of reaching the program.
template <typename Body>
void WithOptimizer(Body&& body) noexcept {
  Optimizer* optimizer = Optimizer::Get();
  if (optimizer == nullptr) return;
  try {
    std::forward<Body>(body)(*optimizer);
  } catch (const std::exception& error) {
    Optimizer::Fail(error.what());
  } catch (...) {
    Optimizer::Fail("unknown exception");
  }
}

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_OPTIMIZER_H_
