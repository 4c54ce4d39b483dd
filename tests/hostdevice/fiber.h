// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_FIBER_H_
#define HEDDLE_TESTS_HOSTDEVICE_FIBER_H_

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace heddle::hostdevice {

// A function call that can be left in the middle and gone on with later, on a
// stack of its own. Whoever calls Start or Resume waits; there is no second
// thread. A Fiber can be used for one function after another, and resumed by
// another thread than the one that started it (not by two at a time). The
// sanitizers are told about the switches.
class Fiber {
 public:
  Fiber();
  // A suspended function is abandoned: its frames are freed, not unwound.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs `function` until it returns (true) or suspends itself (false).
  bool Start(std::function<void()> function);
  // Goes on after Suspend; the same results.
  bool Resume();
  // Called by the function: gives control back to Start or Resume.
  void Suspend();

 private:
  static void Entry(unsigned low, unsigned high);
  void Loop();
  bool SwitchIn();
  void SwitchOut();

  static constexpr size_t kStackSize = size_t{1} << 20;

  void* stack_ = nullptr;  // with a guard page below
  ucontext_t caller_{};
  ucontext_t self_{};
  std::function<void()> function_;
  bool finished_ = true;
  // What the sanitizers keep for a stack while it is not running.
  void* fake_stack_ = nullptr;
  void* caller_fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_stack_size_ = 0;
  void* tsan_self_ = nullptr;
  void* tsan_caller_ = nullptr;
};

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_FIBER_H_
