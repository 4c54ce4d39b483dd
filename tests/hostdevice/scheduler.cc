// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/scheduler.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tests/hostdevice/device.h"

namespace heddle::hostdevice {
namespace {

constexpr uint64_t kLaunchNs = 1000;
constexpr uint64_t kBlockNs = 1000;
constexpr uint64_t kThreadNs = 1;

// How long a memory wait is polled when nothing else can run: another thread
// may still write the value.
constexpr auto kPollInterval = std::chrono::microseconds(200);
constexpr int kPollLimit = 10000;

}  // namespace

struct Scheduler::Block {
  enum class State : uint8_t { kPlaced, kWaiting, kYielded };

  Scheduler* scheduler = nullptr;
  std::shared_ptr<Op> op;
  HeddleHostBlock view{};
  std::vector<uint8_t> shared;
  std::unique_ptr<Fiber> fiber;
  size_t slot = 0;
  State state = State::kPlaced;
  bool triggered = false;
  uint64_t clock_ns = 0;
};

Scheduler::Scheduler(uint64_t seed, int multiprocessors,
                     int blocks_per_multiprocessor)
    : random_(seed),
      multiprocessors_(multiprocessors),
      blocks_per_multiprocessor_(blocks_per_multiprocessor),
      slots_(static_cast<size_t>(multiprocessors) * blocks_per_multiprocessor),
      resources_(static_cast<size_t>(multiprocessors)) {}

Scheduler::~Scheduler() = default;

void Scheduler::Depend(Op* op, const Dependency& dependency,
                       const std::shared_ptr<Op>& self) {
  Op* producer = dependency.op.get();
  if (producer == nullptr) return;
  if (producer->complete) {
    op->ready_ns = std::max(op->ready_ns, producer->activity.end_ns);
    op->wait_ns = std::max(op->wait_ns, producer->activity.end_ns);
    return;
  }
  // Ports mean something on kernels only; other work has one event, its end.
  const Port port =
      producer->grid == nullptr ? Port::kComplete : dependency.port;
  uint8_t best_effort = 0;
  if (port == Port::kBegun) {
    best_effort = static_cast<uint8_t>(random_.Below(4) % 3);
  }
  producer->out.push_back(
      {self, port, dependency.programmatic, best_effort, false});
  ++op->start_pending;
  if (dependency.programmatic) {
    ++op->wait_pending;
    op->producers.push_back(dependency.op);
  }
  UpdateEdges(producer);
}

void Scheduler::Submit(std::shared_ptr<Op> op) {
  op->activity.correlation = next_correlation_++;
  op->ready_ns = std::max(op->ready_ns, host_ns_);
  // Sometimes one operation is much more eager than another, so that orders far
  // from the even interleaving are met too.
  op->weight = uint64_t{1} << (2 * random_.Below(4));
  if (op->grid != nullptr) {
    Grid& grid = *op->grid;
    grid.blocks = uint64_t{grid.grid[0]} * grid.grid[1] * grid.grid[2];
    grid.unplaced.resize(grid.blocks);
    for (uint64_t i = 0; i < grid.blocks; ++i) {
      grid.unplaced[i] = static_cast<uint32_t>(grid.blocks - 1 - i);
    }
    // No order of blocks is promised. Half of the grids run in theirs, as most
    // do on a real device.
    if (random_.OneIn(2)) {
      for (uint64_t i = grid.blocks; i > 1; --i) {
        std::swap(grid.unplaced[i - 1], grid.unplaced[random_.Below(i)]);
      }
    }
  }
  pending_.emplace(op->activity.correlation, op);
  if (op->start_pending == 0) MakeEligible(op);
}

void Scheduler::MakeEligible(const std::shared_ptr<Op>& op) {
  // Not yet submitted: Submit will do it.
  if (op->eligible || op->activity.correlation == 0) return;
  op->eligible = true;
  op->ready_ns += op->grid != nullptr ? kLaunchNs : 0;
  ready_.push_back(op);
  UpdateEdges(op.get());
}

bool Scheduler::Reached(const Dependency& dependency) {
  const Op* op = dependency.op.get();
  if (op == nullptr || op->complete) return true;
  if (op->grid == nullptr) return false;
  switch (dependency.port) {
    case Port::kComplete:
      return false;
    case Port::kTriggered:
      return op->grid->triggered == op->grid->blocks;
    case Port::kBegun:
      return op->grid->begun == op->grid->blocks;
  }
  return false;
}

// Tells the consumers of `op` what has become of it.
void Scheduler::UpdateEdges(Op* op) {
  // By index and with a copy of the pointer: making a consumer eligible may
  // lead back here for the consumer, not for `op`.
  for (size_t i = 0; i < op->out.size(); ++i) {
    Op::Edge& edge = op->out[i];
    if (edge.satisfied) continue;
    bool satisfied = op->complete;
    uint64_t at_ns = op->activity.end_ns;
    if (!satisfied && op->grid != nullptr) {
      if (edge.port == Port::kTriggered &&
          op->grid->triggered == op->grid->blocks) {
        satisfied = true;
        at_ns = op->grid->triggered_ns;
      } else if (edge.port == Port::kBegun) {
        satisfied =
            (edge.best_effort == 0 && op->grid->begun == op->grid->blocks) ||
            (edge.best_effort == 1 && op->eligible);
        at_ns = std::max(op->grid->begun_ns, op->ready_ns);
      }
    }
    if (!satisfied) continue;
    edge.satisfied = true;
    const std::shared_ptr<Op> to = edge.to;
    to->ready_ns = std::max(to->ready_ns, at_ns);
    if (--to->start_pending == 0) MakeEligible(to);
  }
}

void Scheduler::Complete(const std::shared_ptr<Op>& op, uint64_t end_ns) {
  op->complete = true;
  op->activity.end_ns = end_ns;
  now_ns_ = std::max(now_ns_, end_ns);
  for (Op::Edge& edge : op->out) {
    if (!edge.programmatic) continue;
    --edge.to->wait_pending;
    edge.to->wait_ns = std::max(edge.to->wait_ns, end_ns);
  }
  UpdateEdges(op.get());
  op->out.clear();
  op->action = nullptr;
  op->ready_when = nullptr;
  if (timeline_enabled && op->activity.kind != 0) {
    timeline.push_back(op->activity);
  }
  pending_.erase(op->activity.correlation);
}

size_t Scheduler::FreeSlots() const {
  return static_cast<size_t>(std::count_if(
      slots_.begin(), slots_.end(), [](const Slot& s) { return !s.used; }));
}

// Whether a block of `grid` can be placed; all of them if they start together.
bool Scheduler::HasPlacesFor(const Grid& grid) const {
  const uint64_t needed = grid.cooperative ? grid.blocks : 1;
  const auto per_multiprocessor =
      static_cast<size_t>(blocks_per_multiprocessor_);
  uint64_t places = 0;
  for (size_t sm = 0; sm < resources_.size() && places < needed; ++sm) {
    const auto first =
        slots_.begin() + static_cast<ptrdiff_t>(sm * per_multiprocessor);
    const auto free = static_cast<uint64_t>(
        std::count_if(first, first + blocks_per_multiprocessor_,
                      [](const Slot& slot) { return !slot.used; }));
    if (free != 0) places += std::min(free, resources_[sm].Room(grid.cost));
  }
  return places >= needed;
}

void Scheduler::CollectCandidates(bool host_functions) {
  candidates_.clear();
  for (size_t i = 0; i < ready_.size(); ++i) {
    const Op& op = *ready_[i];
    if (op.grid != nullptr) {
      if (HasPlacesFor(*op.grid)) {
        candidates_.push_back({Candidate::kPlace, i, op.weight});
      }
    } else if ((host_functions || !op.host_function) &&
               (op.ready_when == nullptr || op.ready_when())) {
      candidates_.push_back({Candidate::kRunOp, i, op.weight});
    }
  }
  for (size_t i = 0; i < resident_.size(); ++i) {
    const Block& block = *resident_[i];
    const Op& op = *block.op;
    if (block.state != Block::State::kWaiting || op.wait_pending == 0) {
      candidates_.push_back({Candidate::kRunBlock, i, op.weight});
    }
    // See the header: an end that overtakes its own writes.
    if (block.state == Block::State::kPlaced && !block.triggered &&
        op.wait_pending == 0 &&
        std::any_of(op.out.begin(), op.out.end(), [](const Op::Edge& edge) {
          return edge.port == Port::kTriggered;
        })) {
      candidates_.push_back({Candidate::kEndEarly, i, op.weight});
    }
  }
}

bool Scheduler::Step(bool host_functions) {
  CollectCandidates(host_functions);
  if (candidates_.empty()) return false;
  uint64_t total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  uint64_t pick = random_.Below(total);
  const Candidate* chosen = candidates_.data();
  while (pick >= chosen->weight) pick -= (chosen++)->weight;
  switch (chosen->kind) {
    case Candidate::kRunOp:
      RunOp(chosen->index);
      break;
    case Candidate::kPlace:
      PlaceBlock(chosen->index);
      break;
    case Candidate::kRunBlock:
      RunBlock(chosen->index);
      break;
    case Candidate::kEndEarly:
      CountTriggered(resident_[chosen->index].get());
      break;
  }
  return true;
}

void Scheduler::RunOp(size_t ready_index) {
  const std::shared_ptr<Op> op = ready_[ready_index];
  ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(ready_index));
  op->activity.start_ns = op->ready_ns;
  if (op->action != nullptr) {
    if (op->host_function) {
      // The program's own code may wait for another thread of the program that
      // wants the device: the lock must be free meanwhile.
      const uint64_t generation = generation_;
      ++host_functions_running_;
      {
        HostFunctionScope scope;
        Device::mutex().unlock();
        op->action();
        Device::mutex().lock();
      }
      --host_functions_running_;
      if (generation != generation_) return;
    } else {
      op->action();
    }
  }
  Complete(op, op->ready_ns + op->cost_ns);
}

void Scheduler::PlaceBlock(size_t ready_index) {
  const std::shared_ptr<Op> op = ready_[ready_index];
  Grid& grid = *op->grid;
  do {
    // Of those with room, the slot that was free first: simulated time then is
    // what a real device would come to.
    size_t slot = slots_.size();
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used ||
          resources_[MultiprocessorOf(i)].Room(grid.cost) == 0) {
        continue;
      }
      if (slot == slots_.size() || slots_[i].free_ns < slots_[slot].free_ns) {
        slot = i;
      }
    }
    auto block = std::make_unique<Block>();
    block->scheduler = this;
    block->op = op;
    block->slot = slot;
    block->clock_ns = std::max(slots_[slot].free_ns, op->ready_ns);
    slots_[slot].used = true;
    // Any configuration is legal; which one is as random as the weights are.
    resources_[MultiprocessorOf(slot)].Take(grid.cost, op->weight > 4);

    const uint32_t index = grid.unplaced.back();
    grid.unplaced.pop_back();
    HeddleHostBlock& view = block->view;
    std::copy_n(grid.grid, 3, view.grid);
    std::copy_n(grid.block, 3, view.block);
    view.block_index[0] = index % grid.grid[0];
    view.block_index[1] = index / grid.grid[0] % grid.grid[1];
    view.block_index[2] = index / grid.grid[0] / grid.grid[1];
    view.shared_bytes = grid.shared_bytes;
    view.grid_dependency_wait = &Scheduler::WaitCallback;
    view.launch_dependents = &Scheduler::TriggerCallback;
    view.device_private = block.get();

    if (grid.begun == 0 || block->clock_ns < op->activity.start_ns) {
      op->activity.start_ns = block->clock_ns;
    }
    grid.begun_ns = std::max(grid.begun_ns, block->clock_ns);
    ++grid.begun;
    resident_.push_back(std::move(block));
  } while (grid.cooperative && !grid.unplaced.empty());
  if (grid.unplaced.empty()) {
    ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(ready_index));
    UpdateEdges(op.get());
  }
}

void Scheduler::CountTriggered(Block* block) {
  if (block->triggered) return;
  block->triggered = true;
  Grid& grid = *block->op->grid;
  ++grid.triggered;
  grid.triggered_ns = std::max(grid.triggered_ns, block->clock_ns);
  if (grid.triggered == grid.blocks) UpdateEdges(block->op.get());
}

void Scheduler::WaitCallback(const HeddleHostBlock* self) {
  auto* block = static_cast<Block*>(self->device_private);
  if (block->op->wait_pending > 0) {
    block->state = Block::State::kWaiting;
    block->fiber->Suspend();
  }
  block->clock_ns = std::max(block->clock_ns, block->op->wait_ns);
}

void Scheduler::TriggerCallback(const HeddleHostBlock* self) {
  auto* block = static_cast<Block*>(self->device_private);
  block->scheduler->CountTriggered(block);
  // Dependents may now run before the rest of this block.
  if (block->scheduler->random_.OneIn(2)) {
    block->state = Block::State::kYielded;
    block->fiber->Suspend();
  }
}

void Scheduler::RunBlock(size_t resident_index) {
  Block* block = resident_[resident_index].get();
  const std::shared_ptr<Op> op = block->op;
  Grid& grid = *op->grid;
  bool ended;
  if (block->state == Block::State::kPlaced) {
    block->shared.resize(grid.shared_bytes);
    FillUndefined(block->shared.data(), block->shared.size(), random_.Next());
    block->view.shared = block->shared.data();
    if (idle_fibers_.empty()) {
      idle_fibers_.push_back(std::make_unique<Fiber>());
    }
    block->fiber = std::move(idle_fibers_.back());
    idle_fibers_.pop_back();
    ended = block->fiber->Start([block, &grid] {
      for (const PrologueStep step : grid.prologue) {
        if (step == PrologueStep::kWait) {
          WaitCallback(&block->view);
        } else {
          TriggerCallback(&block->view);
        }
      }
      grid.function(&block->view, grid.param_pointers.data());
    });
  } else {
    ended = block->fiber->Resume();
  }
  if (!ended) return;

  const uint64_t threads =
      uint64_t{grid.block[0]} * grid.block[1] * grid.block[2];
  block->clock_ns += kBlockNs + kThreadNs * threads;
  CountTriggered(block);
  slots_[block->slot] = {false, block->clock_ns};
  resources_[MultiprocessorOf(block->slot)].Release(grid.cost);
  op->activity.end_ns = std::max(op->activity.end_ns, block->clock_ns);
  ++op->activity.blocks;
  ++grid.ended;
  idle_fibers_.push_back(std::move(block->fiber));
  resident_.erase(resident_.begin() + static_cast<ptrdiff_t>(resident_index));
  if (grid.ended == grid.blocks) Complete(op, op->activity.end_ns);
}

CUresult Scheduler::RunUntil(const std::function<bool()>& done) {
  int polls = 0;
  while (!done()) {
    if (sticky_ != CUDA_SUCCESS) return sticky_;
    if (Step(true)) {
      polls = 0;
      continue;
    }
    if (OthersMayHelp() &&
        (host_functions_running_ > 0 || ++polls < kPollLimit)) {
      Device::mutex().unlock();
      std::this_thread::sleep_for(kPollInterval);
      Device::mutex().lock();
      continue;
    }
    return ReportDeadlock();
  }
  return sticky_;
}

// Whether something outside may let work go on when nothing can run: another
// thread inside a host function, or one that writes what a memory wait waits
// for.
bool Scheduler::OthersMayHelp() const {
  return host_functions_running_ > 0 ||
         std::any_of(ready_.begin(), ready_.end(),
                     [](const auto& op) { return op->ready_when != nullptr; });
}

CUresult Scheduler::ReportDeadlock() {
  std::fputs(DescribeDeadlock().c_str(), stderr);
  sticky_ = CUDA_ERROR_LAUNCH_TIMEOUT;
  return sticky_;
}

CUresult Scheduler::Wait(const Dependency& dependency) {
  const CUresult result = RunUntil([&] { return Reached(dependency); });
  if (dependency.op != nullptr) {
    host_ns_ = std::max(host_ns_, dependency.op->activity.end_ns);
  }
  return result;
}

CUresult Scheduler::WaitAll() {
  const CUresult result = RunUntil([this] { return pending_.empty(); });
  host_ns_ = now_ns_;
  return result;
}

void Scheduler::Breathe(int max_steps) {
  if (sticky_ != CUDA_SUCCESS) return;
  for (uint64_t steps = random_.Below(static_cast<uint64_t>(max_steps) + 1);
       steps > 0; --steps) {
    if (!Step(false)) return;
  }
}

CUresult Scheduler::Progress() {
  if (sticky_ != CUDA_SUCCESS) return sticky_;
  for (uint64_t steps = 1 + random_.Below(4); steps > 0; --steps) {
    if (Step(true)) continue;
    if (!pending_.empty() && !OthersMayHelp()) return ReportDeadlock();
    break;
  }
  return sticky_;
}

void Scheduler::Reset() {
  ++generation_;
  ready_.clear();
  resident_.clear();
  for (auto& [correlation, op] : pending_) {
    op->out.clear();
    op->complete = true;
  }
  pending_.clear();
  for (Slot& slot : slots_) slot = {false, now_ns_};
  for (Multiprocessor& resources : resources_) resources = {};
  sticky_ = CUDA_SUCCESS;
}

std::string Scheduler::DescribeDeadlock() const {
  const auto label = [](const Op& op) {
    return std::string(op.activity.name != nullptr ? op.activity.name
                                                   : "marker") +
           " (#" + std::to_string(op.activity.correlation) + ")";
  };
  std::string text = "heddle host device: DEADLOCK: no block can run.\n";
  text += "  multiprocessor slots: " + std::to_string(slots_.size()) +
          ", free " + std::to_string(FreeSlots()) + "\n";
  std::map<const Op*, std::string> waiting;
  for (const auto& block : resident_) {
    std::string& list = waiting[block->op.get()];
    const uint32_t* index = block->view.block_index;
    list += (list.empty() ? "(" : ", (") + std::to_string(index[0]) + "," +
            std::to_string(index[1]) + "," + std::to_string(index[2]) + ")";
  }
  for (const auto& [correlation, op] : pending_) {
    text += "  " + label(*op) + ": ";
    if (op->grid != nullptr) {
      const Grid& grid = *op->grid;
      text += std::to_string(grid.ended) + " of " +
              std::to_string(grid.blocks) + " blocks ended, " +
              std::to_string(grid.blocks - grid.begun) + " not begun";
      if (auto it = waiting.find(op.get()); it != waiting.end()) {
        text += "; blocks " + it->second + " wait for";
        for (const auto& producer : op->producers) {
          const std::shared_ptr<Op> held = producer.lock();
          if (held != nullptr && !held->complete) text += " " + label(*held);
        }
      } else if (op->eligible) {
        text += "; waits for a place";
      }
    } else if (op->ready_when != nullptr && op->eligible) {
      text += "waits for a value in memory";
    }
    if (!op->eligible) {
      text += "; cannot begin before " + std::to_string(op->start_pending) +
              " dependencies";
    }
    text += "\n";
  }
  return text;
}

}  // namespace heddle::hostdevice
