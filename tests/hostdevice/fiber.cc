// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define HD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HD_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HD_TSAN 1
#endif
#endif

#if defined(HD_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(HD_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace heddle::hostdevice {

Fiber::Fiber() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* block = mmap(nullptr, kStackSize + page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) std::abort();  // no memory for a stack
  mprotect(block, page, PROT_NONE);
  stack_ = static_cast<char*>(block) + page;

  getcontext(&self_);
  self_.uc_stack.ss_sp = stack_;
  self_.uc_stack.ss_size = kStackSize;
  self_.uc_link = nullptr;
  // makecontext passes ints only.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&self_, reinterpret_cast<void (*)()>(&Fiber::Entry), 2,
              static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
#if defined(HD_TSAN)
  tsan_self_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(HD_TSAN)
  __tsan_destroy_fiber(tsan_self_);
#endif
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  munmap(static_cast<char*>(stack_) - page, kStackSize + page);
}

void Fiber::Entry(unsigned low, unsigned high) {
  const uintptr_t self = low | static_cast<uintptr_t>(high) << 32;
  reinterpret_cast<Fiber*>(self)->Loop();
}

void Fiber::Loop() {
#if defined(HD_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_size_);
#endif
  // Never returns: a finished fiber waits here for its next function.
  while (true) {
    function_();
    function_ = nullptr;
    finished_ = true;
    SwitchOut();
  }
}

bool Fiber::SwitchIn() {
#if defined(HD_ASAN)
  __sanitizer_start_switch_fiber(&caller_fake_stack_, stack_, kStackSize);
#endif
#if defined(HD_TSAN)
  tsan_caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_self_, 0);
#endif
  swapcontext(&caller_, &self_);
#if defined(HD_ASAN)
  __sanitizer_finish_switch_fiber(caller_fake_stack_, nullptr, nullptr);
#endif
  return finished_;
}

void Fiber::SwitchOut() {
#if defined(HD_ASAN)
  __sanitizer_start_switch_fiber(&fake_stack_, caller_stack_,
                                 caller_stack_size_);
#endif
#if defined(HD_TSAN)
  __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
  swapcontext(&self_, &caller_);
#if defined(HD_ASAN)
  __sanitizer_finish_switch_fiber(fake_stack_, &caller_stack_,
                                  &caller_stack_size_);
#endif
}

bool Fiber::Start(std::function<void()> function) {
  function_ = std::move(function);
  finished_ = false;
  return SwitchIn();
}

bool Fiber::Resume() { return SwitchIn(); }

void Fiber::Suspend() { SwitchOut(); }

}  // namespace heddle::hostdevice
