// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_FORK_GUARD_H_
#define HEDDLE_RUNTIME_TRACE_FORK_GUARD_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace heddle::trace {

// A word that threads check anyway and that a forked child finds zeroed, so
// that a child which inherits a shared mapping does not write into its
// parent's file, however it was forked: handlers of pthread_atfork do not run
// for clone(2) or _Fork.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  // 0 in a forked child, where the kernel can do that (Linux 4.14).
  std::atomic<uint64_t>& word() const { return page_->word; }

  // Whether this is another process than the one that made the guard.
  bool InForkedChild() const;

 private:
  struct Page {
    std::atomic<uint64_t> word{0};
    std::atomic<uint64_t> owned{1};
  };

  Page* page_;
  Page fallback_;
  const pid_t owner_;
  bool wiped_ = false;
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_FORK_GUARD_H_
