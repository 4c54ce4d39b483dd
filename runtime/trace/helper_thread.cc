// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/helper_thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>

namespace heddle::trace {
namespace {

// Room for the thread-local data of all libraries of the program, which lies in
// a thread's stack. Untouched pages cost nothing.
constexpr size_t kStackBytes = 1 << 20;

}  // namespace

HelperThread::HelperThread(std::function<void()> work)
    : work_(std::move(work)), owner_(getpid()) {
  sem_init(&wake_, /*pshared=*/0, 0);
}

HelperThread::~HelperThread() {
  Stop();
  sem_destroy(&wake_);
}

bool HelperThread::Wake() {
  int state = state_.load(std::memory_order_acquire);
  if (state == kNotStarted) state = Start() ? kRunning : kUnavailable;
  if (state != kRunning) return false;
  if (!wanted_.exchange(true, std::memory_order_acq_rel)) sem_post(&wake_);
  return true;
}

bool HelperThread::Start() {
  if (getpid() != owner_) return false;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;  // this once; another thread starts it
  if (state_.load(std::memory_order_relaxed) != kNotStarted) {
    return state_.load(std::memory_order_relaxed) == kRunning;
  }
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // A thread begins with its creator's mask: the program's handlers must not
  // run here.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  int error = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error == 0) {
    error = pthread_create(&thread_, &attributes, &Main, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  pthread_attr_destroy(&attributes);
  if (error == 0) pthread_setname_np(thread_, "heddle-trace");
  state_.store(error == 0 ? kRunning : kUnavailable, std::memory_order_release);
  return error == 0;
}

void* HelperThread::Main(void* self) {
  auto* helper = static_cast<HelperThread*>(self);
  while (true) {
    while (sem_wait(&helper->wake_) != 0 && errno == EINTR) {
    }
    if (helper->stopping_.load(std::memory_order_acquire)) return nullptr;
    // Before the work: a wish that comes during it is one for another round.
    helper->wanted_.store(false, std::memory_order_release);
    helper->work_();
  }
}

void HelperThread::Stop() {
  if (getpid() != owner_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const int before = state_.exchange(kUnavailable, std::memory_order_acq_rel);
  if (before != kRunning) return;
  stopping_.store(true, std::memory_order_release);
  sem_post(&wake_);
  pthread_join(thread_, nullptr);
}

}  // namespace heddle::trace
