// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_HELPER_THREAD_H_
#define HEDDLE_RUNTIME_TRACE_HELPER_THREAD_H_

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>

namespace heddle::trace {

// A thread that does work which the program's threads can do without, in
// somebody else's process: it starts when it is first needed, takes no signal
// of the program, and nothing depends on it. Where no thread can be had, Wake
// says so, and the caller does the work itself.
//
// Around fork: the thread is not in the child, where Wake returns false and
// Stop does nothing. It need not stop for a fork, if what `work` locks is not
// locked in the child.
class HelperThread {
 public:
  // `work` is called once or more after each Wake, by one thread.
  explicit HelperThread(std::function<void()> work);
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  // Any thread, at any time. False: `work` will not be called for this.
  bool Wake();
  // For good. A call of `work` that is under way is waited for, so not from
  // `work`, and with no lock held that it takes. Idempotent.
  void Stop();

 private:
  enum State : int { kNotStarted, kRunning, kUnavailable };

  bool Start();
  static void* Main(void* self);

  const std::function<void()> work_;
  const pid_t owner_;
  std::atomic<int> state_{kNotStarted};
  std::atomic<bool> wanted_{false};
  std::atomic<bool> stopping_{false};
  sem_t wake_;
  std::mutex mutex_;  // starting and stopping
  pthread_t thread_{};
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_HELPER_THREAD_H_
