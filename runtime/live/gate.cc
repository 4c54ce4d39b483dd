// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/gate.h"

#include <thread>

namespace heddle::live {

// Gives the thread's slot back when the thread ends. Slots are never freed: the
// closing thread walks them without a lock.
struct Gate::SlotHolder {
  bool registered = false;
  ~SlotHolder();
};

namespace {
// Without destructors: other thread-local objects may still make driver calls
// when the holder is gone. A slot that is taken then is never given back.
thread_local void* t_slot = nullptr;
thread_local bool t_ended = false;
}  // namespace

Gate::SlotHolder::~SlotHolder() {
  if (t_slot != nullptr) {
    static_cast<Slot*>(t_slot)->in_use.store(false, std::memory_order_release);
  }
  t_slot = nullptr;
  t_ended = true;
}

Gate& Gate::Get() {
  static auto* gate = new Gate;
  return *gate;
}

Gate::Slot* Gate::ThreadSlot() {
  if (t_slot != nullptr) return static_cast<Slot*>(t_slot);
  if (!t_ended) {
    thread_local SlotHolder holder;
    holder.registered = true;
  }
  Gate& gate = Get();
  for (Slot* slot = gate.slots_.load(std::memory_order_acquire);
       slot != nullptr; slot = slot->next) {
    bool free = false;
    if (slot->in_use.compare_exchange_strong(free, true)) {
      slot->depth = 0;
      t_slot = slot;
      return slot;
    }
  }
  auto* slot = new Slot;
  slot->in_use.store(true, std::memory_order_relaxed);
  slot->next = gate.slots_.load(std::memory_order_relaxed);
  while (!gate.slots_.compare_exchange_weak(slot->next, slot)) {
  }
  t_slot = slot;
  return slot;
}

Gate::Pass::Pass() {
  Slot* slot = ThreadSlot();
  if (slot->depth++ > 0) return;
  Gate& gate = Get();
  // Sequentially consistent on both sides: either this thread sees the gate
  // closed, or the closing thread sees it inside.
  slot->inside.store(true, std::memory_order_seq_cst);
  while (gate.closed_.load(std::memory_order_seq_cst) &&
         gate.holder_.load(std::memory_order_relaxed) !=
             reinterpret_cast<uint64_t>(slot)) {
    slot->inside.store(false, std::memory_order_seq_cst);
    gate.WaitUntilOpen();
    slot->inside.store(true, std::memory_order_seq_cst);
  }
}

Gate::Pass::~Pass() {
  Slot* slot = ThreadSlot();
  if (--slot->depth == 0) {
    slot->inside.store(false, std::memory_order_release);
  }
}

void Gate::WaitUntilOpen() {
  // Trials take milliseconds and are few: no need for a condition variable.
  while (closed_.load(std::memory_order_acquire)) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool Gate::Close(std::chrono::milliseconds patience) {
  Slot* own = ThreadSlot();
  uint64_t nobody = 0;
  if (!holder_.compare_exchange_strong(nobody,
                                       reinterpret_cast<uint64_t>(own))) {
    return false;
  }
  closed_.store(true, std::memory_order_seq_cst);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (Slot* slot = slots_.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    while (slot != own && slot->inside.load(std::memory_order_seq_cst)) {
      if (std::chrono::steady_clock::now() >= deadline) {
        Open();
        return false;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  return true;
}

void Gate::Open() {
  closed_.store(false, std::memory_order_seq_cst);
  holder_.store(0, std::memory_order_seq_cst);
}

void Gate::ResetAfterFork() {
  Slot* own = ThreadSlot();
  for (Slot* slot = slots_.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    if (slot == own) continue;
    slot->inside.store(false, std::memory_order_relaxed);
    slot->in_use.store(false, std::memory_order_relaxed);
  }
  Open();
}

}  // namespace heddle::live
