// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_LIVE_GRAPH_H_
#define HEDDLE_RUNTIME_LIVE_LIVE_GRAPH_H_

// One executable graph of the program and the forms it was rewritten into.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "runtime/device/driver.h"
#include "runtime/live/forms.h"
#include "runtime/live/graph_report.h"
#include "runtime/live/live_access.h"
#include "runtime/live/options.h"
#include "runtime/live/state_keeper.h"
#include "runtime/rewrite/patched_modules.h"
#include "runtime/rewrite/rewriter.h"

namespace heddle::live {

// Not in the headers of every toolkit that heddle builds with.
using CtxRecordEventFn = CUresult (*)(CUcontext, CUevent);

// What trials need of the process; outlives every graph.
struct TrialTools {
  device::Driver driver;
  CtxRecordEventFn record_event = nullptr;  // may be absent
  const LiveOptions* options = nullptr;
  rewrite::CodeSource* code = nullptr;
  rewrite::PatchedModules* modules = nullptr;
  LiveAccess* accesses = nullptr;
  // Everything that the launch could write, given the parameters that its
  // kernels carry and the images they come from. Sorted, not overlapping.
  std::function<absl::StatusOr<std::vector<MemoryRange>>(
      const rewrite::GraphModel&, uint64_t limit)>
      reachable;
};

class LiveGraph {
 public:
  // `copy`: a clone of the program's graph, owned from here on.
  LiveGraph(const TrialTools& tools, CUgraphExec exec, CUgraph copy,
            uint64_t flags, uint64_t number);
  ~LiveGraph();
  LiveGraph(const LiveGraph&) = delete;
  LiveGraph& operator=(const LiveGraph&) = delete;

  // What to launch once that is settled; nullptr before.
  CUgraphExec settled() const { return use_.load(std::memory_order_acquire); }
  CUgraphExec original() const { return exec_; }

  // Launches what is settled, or the program's own graph if `own`. The driver
  // lets launches of one executable follow each other in whatever streams they
  // are; here that also holds between the program's executable and the
  // rewritten one. `capturing`: some stream captures, so the device cannot be
  // waited for as a whole.
  CUresult Launch(bool own, CUstream stream, bool capturing);

  // A launch that is a trial. Nothing else may run on the device (gate.h). The
  // launch the program asked for has happened when it returns, exactly once as
  // far as memory shows.
  CUresult Trial(CUstream stream);
  // The program's graph is used for good.
  void KeepOriginal(absl::string_view why);

  // The program changed its executable and that succeeded. `node` belongs to
  // the graph that it was instantiated from.
  void UpdatedFrom(CUgraph copy);  // takes over `copy`, a clone
  void KernelChanged(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params);
  void MemcpyChanged(CUgraphNode node, const CUDA_MEMCPY3D& params,
                     CUcontext context);
  void MemsetChanged(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS& params,
                     CUcontext context);
  void EnabledChanged(CUgraphNode node, unsigned int enabled);
  // The program is about to give up memory. Forms that rest on what is known of
  // it are no longer used.
  void MemoryGoes(const access::Extent& block);

  // Publishes the report if that has not happened. At the graph's end.
  void Finish();

  std::mutex& mutex() { return mutex_; }
  // Whether there are rewritten forms, in use or in trials. Needs the mutex.
  bool has_forms() const { return !variants_.empty(); }

 private:
  struct Variant {
    Form form;
    // Its order rests on what the nodes touch (O2, plans), not on the order of
    // the program's graph.
    bool rests_on_effects() const {
      return form.level != plan::Level::kO1 || form.file != nullptr;
    }
    // No longer used nor kept up to date, but a thread may be launching it.
    bool retired = false;
    CUgraph graph = nullptr;  // rewritten clone of copy_; names its nodes
    CUgraphExec exec = nullptr;
    rewrite::Rewritten rewritten;
    std::vector<access::Extent> rests_on;  // memory; sorted
    absl::flat_hash_map<uint64_t, uint32_t> index;  // node of `graph` -> index
    std::vector<CUfunction> functions;              // the program's, by index
    std::vector<plan::BlockNeeds> needs;            // by index
    double median_us = 0;
  };

  // What a form of level 2 is made from, by index of model_.
  struct Knowledge {
    std::vector<CUgraphNode> handles;  // in copy_
    GraphEffects effects;
    std::vector<double> durations_us;
  };

  absl::Status Build();
  absl::StatusOr<std::unique_ptr<Variant>> BuildVariant(CUgraph source,
                                                        const Form& form,
                                                        bool instantiate);
  // The part of BuildVariant that replaces the order (live_graph_branches.cc).
  absl::StatusOr<rewrite::Rewritten> RewriteByEffects(
      Variant* variant, rewrite::GraphModel* model,
      const plan::DeviceLimits& limits);
  absl::StatusOr<plan::Plan> PlanFor(const Form& form,
                                     const rewrite::GraphModel& model,
                                     const std::vector<uint32_t>& order,
                                     const plan::PlanInput& input,
                                     const plan::DeviceLimits& limits);
  // Finds out what the nodes touch and how long each takes, and adds the forms
  // that rest on it. Memory is as the program left it; what a launch may change
  // is kept in `keeper`. An error is of the device, not of a form.
  absl::Status BuildBranches(StateKeeper* keeper, CUstream stream);
  // Ends the use of forms that rest on what the nodes touch.
  void DropPlanned(absl::string_view why);
  // The report speaks of `variant`.
  void ReportOf(const Variant& variant);
  void Drop(Variant* variant);
  bool WaitUntilIdle();
  CUresult RunAndWait(CUgraphExec exec, CUstream stream);
  // Drops variants that fail. The final state of memory is unspecified.
  absl::Status Verify(StateKeeper* keeper, CUstream stream,
                      CUresult* program_result);
  absl::StatusOr<bool> IsExcused(const Variant& variant, StateKeeper* keeper,
                                 CUstream stream);
  absl::Status Time(StateKeeper* keeper, CUstream stream);
  void Choose();
  void Settle(CUgraphExec use, absl::string_view outcome);
  void SetPointers(CUgraphNode copied, std::vector<uint64_t> pointers);
  // Whether a launch with `params` occupies what it was planned with.
  bool SameResources(const Variant& variant, CUgraphNode node,
                     const CUDA_KERNEL_NODE_PARAMS& params);
  // Applies a change to the copy and to every variant; a variant that does not
  // take it is dropped. `apply(copy_node)` and `apply(variant, node)`.
  void Mirror(CUgraphNode node, const char* call,
              const std::function<CUresult(CUgraphNode)>& on_copy,
              const std::function<CUresult(Variant&, CUgraphNode)>& on_variant);

  const TrialTools& tools_;
  const device::Driver& driver_;
  const CUgraphExec exec_;
  CUgraph copy_;
  const uint64_t flags_;
  std::atomic<CUgraphExec> use_{nullptr};
  // What was launched last once settled, and where.
  std::atomic<CUgraphExec> last_exec_{nullptr};
  std::atomic<CUstream> last_stream_{nullptr};

  std::mutex mutex_;  // guards all below
  bool built_ = false;
  // copy_ has the nodes of child graphs in their place, and is no clone.
  bool flat_ = false;
  std::unique_ptr<rewrite::GraphModel> model_;
  std::unique_ptr<Knowledge> known_;
  // Those that are tried; once settled the one that is used, and behind it the
  // one to go on with if that one has to be given up.
  std::vector<std::unique_ptr<Variant>> variants_;
  double serial_us_ = 0;
  int attempts_ = 0;
  bool published_ = false;
  GraphReport report_;
};

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_LIVE_GRAPH_H_
