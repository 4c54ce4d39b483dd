// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_SCHEDULER_H_
#define HEDDLE_TESTS_HOSTDEVICE_SCHEDULER_H_

// Executes the device's work: operations with dependencies between them, in any
// order that the dependencies allow, chosen at random from a seed.
//
// Nothing runs in the background. Work runs in whichever thread waits for some
// of it, with the device lock held, until that is done; other calls run a few
// steps now and then (Breathe). One step is one of
//   - a copy, a fill, a marker or a host function, whole;
//   - the placement of a block of a kernel on a simulated multiprocessor, which
//     has places for a few, if it has room (multiprocessor.h);
//   - the execution of a placed block up to its end, to a wait that is not
//     over, or to its trigger.
//
// Kernels. A kernel's blocks may be placed when every dependency allows it:
//   kComplete   the producer has completed;
//   kTriggered  all its blocks have triggered or ended (programmatic port);
//   kBegun      all its blocks have been placed (launch-order port). That is
//               best effort: sometimes it is taken as soon as the producer
//               itself may begin, sometimes only when it has completed.
// A block's wait (griddepcontrol.wait) is over when every producer to which the
// kernel has a programmatic dependency has completed: those alone. A kernel
// that does not wait can outrun its producers, and whoever waits for it has not
// waited for them.
//
// An ending block releases dependents before its writes are visible. Blocks
// write to plain memory, so this is shown by letting a block that need not wait
// any more count as ended before it has run.
//
// Simulated time. A block takes kBlockNs plus kThreadNs for each of its
// threads; it starts when its multiprocessor slot is free and its kernel was
// allowed to begin, kLaunchNs after the last dependency. A copy takes kCopyNs
// plus a nanosecond for each kCopyBytesPerNs. The host takes no time, but what
// it submits starts no earlier than what it has waited for ended. None of it
// depends on the host's speed.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/fiber.h"
#include "tests/hostdevice/host_kernel.h"
#include "tests/hostdevice/multiprocessor.h"
#include "tests/hostdevice/prologue.h"
#include "tests/hostdevice/random.h"
#include "tests/hostdevice/timeline.h"

namespace heddle::hostdevice {

struct Op;

enum class Port : uint8_t { kComplete = 0, kTriggered = 1, kBegun = 2 };

struct Dependency {
  std::shared_ptr<Op> op;
  Port port = Port::kComplete;
  // The consumer's griddepcontrol.wait waits for it.
  bool programmatic = false;
};

// A grid on its way through the device.
struct Grid {
  HeddleHostKernelFn function = nullptr;
  std::vector<PrologueStep> prologue;  // what each block does before it
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  BlockCost cost;            // of each block
  bool cooperative = false;  // all blocks are placed at once or none
  std::vector<uint8_t> params;
  std::vector<void*> param_pointers;  // into params

  uint64_t blocks = 1;
  uint64_t begun = 0;
  uint64_t triggered = 0;  // or ended
  uint64_t ended = 0;
  uint64_t begun_ns = 0;
  uint64_t triggered_ns = 0;
  std::vector<uint32_t> unplaced;  // block indices, the next one last
};

// One operation. Fill in what describes it, add dependencies, submit.
struct Op {
  HeddleHostDeviceActivity activity{};  // kind 0: not shown in the timeline
  std::unique_ptr<Grid> grid;           // kernels
  std::function<void()> action;         // everything else; may be empty
  std::function<bool()> ready_when;     // memory waits: polled
  bool host_function = false;           // the action is the program's code
  uint64_t cost_ns = 0;

  // The scheduler's own.
  struct Edge {
    std::shared_ptr<Op> to;
    Port port;
    bool programmatic;
    uint8_t best_effort;  // kBegun: 0 exact, 1 early, 2 late
    bool satisfied;
  };
  std::vector<Edge> out;
  std::vector<std::weak_ptr<Op>> producers;  // programmatic ones
  int start_pending = 0;
  int wait_pending = 0;
  uint64_t weight = 1;
  uint64_t ready_ns = 0;
  uint64_t wait_ns = 0;
  bool eligible = false;
  bool complete = false;
};

class Scheduler {
 public:
  Scheduler(uint64_t seed, int multiprocessors, int blocks_per_multiprocessor);
  ~Scheduler();

  int multiprocessors() const { return multiprocessors_; }
  int blocks_per_multiprocessor() const { return blocks_per_multiprocessor_; }
  // Such blocks that a multiprocessor holds at a time.
  uint64_t ResidentBlocks(const BlockCost& block) const {
    return std::min<uint64_t>(
        Multiprocessor().Room(block),
        static_cast<uint64_t>(blocks_per_multiprocessor_));
  }
  Random& random() { return random_; }
  void Reseed(uint64_t seed) { random_ = Random(seed); }
  uint64_t now_ns() const { return now_ns_; }

  // Before Submit(op). A dependency on a completed operation costs nothing.
  void Depend(Op* op, const Dependency& dependency,
              const std::shared_ptr<Op>& self);
  void Submit(std::shared_ptr<Op> op);

  static bool Reached(const Dependency& dependency);

  // Runs until `done`. CUDA_ERROR_LAUNCH_TIMEOUT on a deadlock, which is also
  // printed to standard error and makes the device fail from then on.
  CUresult RunUntil(const std::function<bool()>& done);
  CUresult Wait(const Dependency& dependency);
  CUresult WaitAll();
  // A few steps at random, never the program's own functions.
  void Breathe(int max_steps);
  // At least one step if there is one to make: for calls that poll.
  CUresult Progress();

  // The error of every later call; CUDA_SUCCESS if none.
  CUresult sticky() const { return sticky_; }
  void Fail(CUresult error) { sticky_ = error; }
  // Drops all work and the sticky error.
  void Reset();

  bool timeline_enabled = false;
  std::vector<HeddleHostDeviceActivity> timeline;

 private:
  struct Block;
  struct Candidate {
    enum Kind : uint8_t { kRunOp, kPlace, kRunBlock, kEndEarly } kind;
    size_t index;
    uint64_t weight;
  };
  struct Slot {
    bool used = false;
    uint64_t free_ns = 0;
  };

  static void WaitCallback(const HeddleHostBlock* self);
  static void TriggerCallback(const HeddleHostBlock* self);

  bool Step(bool host_functions);
  void CollectCandidates(bool host_functions);
  void RunOp(size_t ready_index);
  void PlaceBlock(size_t ready_index);
  void RunBlock(size_t resident_index);
  void CountTriggered(Block* block);
  void MakeEligible(const std::shared_ptr<Op>& op);
  void UpdateEdges(Op* op);
  void Complete(const std::shared_ptr<Op>& op, uint64_t end_ns);
  size_t FreeSlots() const;
  size_t MultiprocessorOf(size_t slot) const {
    return slot / static_cast<size_t>(blocks_per_multiprocessor_);
  }
  bool HasPlacesFor(const Grid& grid) const;
  bool OthersMayHelp() const;
  CUresult ReportDeadlock();
  std::string DescribeDeadlock() const;

  Random random_;
  const int multiprocessors_;
  const int blocks_per_multiprocessor_;
  std::vector<Slot> slots_;  // by multiprocessor
  std::vector<Multiprocessor> resources_;
  std::vector<std::shared_ptr<Op>> ready_;
  std::vector<std::unique_ptr<Block>> resident_;
  std::vector<std::unique_ptr<Fiber>> idle_fibers_;
  std::map<uint64_t, std::shared_ptr<Op>> pending_;  // by correlation
  std::vector<Candidate> candidates_;
  uint64_t next_correlation_ = 1;
  uint64_t now_ns_ = 0;
  uint64_t host_ns_ = 0;  // what the host has waited for
  int host_functions_running_ = 0;
  uint64_t generation_ = 0;  // counts resets
  CUresult sticky_ = CUDA_SUCCESS;
};

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_SCHEDULER_H_
