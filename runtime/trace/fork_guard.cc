// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace heddle::trace {

ForkGuard::ForkGuard() : page_(&fallback_), owner_(getpid()) {
  void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  page_ = new (memory) Page;
  wiped_ = madvise(memory, sizeof(Page), MADV_WIPEONFORK) == 0;
}

ForkGuard::~ForkGuard() {
  if (page_ != &fallback_) munmap(page_, sizeof(Page));
}

bool ForkGuard::InForkedChild() const {
  return wiped_ ? page_->owned.load(std::memory_order_relaxed) == 0
                : getpid() != owner_;
}

}  // namespace heddle::trace
