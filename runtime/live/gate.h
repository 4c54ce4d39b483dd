// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_GATE_H_
#define HEDDLE_RUNTIME_LIVE_GATE_H_

// Holds back the program's other threads at their next driver call that queues
// work or changes memory, while one thread tries a graph on the program's own
// memory.
//
// Passing costs two stores and a load of memory that only the passing thread
// writes.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace heddle::live {

class Gate {
 public:
  static Gate& Get();

  // Around a call of the program. Nested passes of one thread are free.
  class Pass {
   public:
    Pass();
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
  };

  // Closes the gate and waits until no other thread is inside a pass. False if
  // one was not out after `patience` (it waits for something inside the driver)
  // or if another thread holds the gate: then it stays open. The closing thread
  // passes freely.
  bool Close(std::chrono::milliseconds patience);
  void Open();
  // In a forked child: the threads that passed are gone.
  void ResetAfterFork();

 private:
  friend class Pass;
  struct Slot {
    std::atomic<bool> inside{false};
    std::atomic<bool> in_use{false};
    int depth = 0;  // of the owning thread
    Slot* next = nullptr;
  };
  struct SlotHolder;

  static Slot* ThreadSlot();
  void WaitUntilOpen();

  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> holder_{0};  // thread that closed it, as an address
  std::atomic<Slot*> slots_{nullptr};
};

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_GATE_H_
