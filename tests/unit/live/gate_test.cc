// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/gate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace heddle::live {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLong{20000};
constexpr milliseconds kShort{50};

// A thread that is in a pass from the constructor to Leave().
class Inside {
 public:
  explicit Inside(int depth = 1) {
    std::promise<void> entered;
    thread_ = std::thread([this, depth, &entered] {
      std::vector<std::unique_ptr<Gate::Pass>> passes;
      passes.reserve(static_cast<size_t>(depth));
      for (int i = 0; i < depth; ++i) {
        passes.push_back(std::make_unique<Gate::Pass>());
      }
      entered.set_value();
      while (!passes.empty()) {
        leave_.acquire();
        passes.pop_back();
        left_.release();
      }
    });
    entered.get_future().wait();
  }
  ~Inside() { thread_.join(); }
  // One level.
  void Leave() {
    leave_.release();
    left_.acquire();
  }

 private:
  class Count {
   public:
    void release() { value_.fetch_add(1); }
    void acquire() {
      for (;;) {
        int value = value_.load();
        if (value > 0 && value_.compare_exchange_strong(value, value - 1)) {
          return;
        }
        std::this_thread::sleep_for(milliseconds(1));
      }
    }

   private:
    std::atomic<int> value_{0};
  };
  Count leave_;
  Count left_;
  std::thread thread_;
};

TEST(GateTest, ClosingWaitsForThreadsInside) {
  auto inside = std::make_unique<Inside>();
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    EXPECT_TRUE(Gate::Get().Close(kLong));
    closed = true;
    Gate::Get().Open();
  });
  std::this_thread::sleep_for(kShort);
  EXPECT_FALSE(closed);
  inside->Leave();
  closer.join();
  EXPECT_TRUE(closed);
}

TEST(GateTest, ClosingGivesUpAndLeavesTheGateOpen) {
  Inside inside;
  const auto start = Clock::now();
  EXPECT_FALSE(Gate::Get().Close(kShort));
  EXPECT_GE(Clock::now() - start, kShort);
  EXPECT_LT(Clock::now() - start, kLong);
  // Others pass.
  std::thread([] { const Gate::Pass pass; }).join();
  inside.Leave();
  EXPECT_TRUE(Gate::Get().Close(kLong));
  Gate::Get().Open();
}

TEST(GateTest, HoldsOthersBackUntilItOpens) {
  ASSERT_TRUE(Gate::Get().Close(kLong));
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const Gate::Pass pass;
      ++passed;
    });
  }
  std::this_thread::sleep_for(kShort);
  EXPECT_EQ(passed, 0);
  Gate::Get().Open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, 3);
}

TEST(GateTest, TheClosingThreadPasses) {
  {
    // As at a launch, which is a pass of its own.
    const Gate::Pass outer;
    ASSERT_TRUE(Gate::Get().Close(kLong));
    const Gate::Pass inner;
    Gate::Get().Open();
  }
  ASSERT_TRUE(Gate::Get().Close(kLong));
  { const Gate::Pass pass; }
  // Still closed for others.
  std::atomic<bool> passed{false};
  std::thread other([&] {
    const Gate::Pass pass;
    passed = true;
  });
  std::this_thread::sleep_for(kShort);
  EXPECT_FALSE(passed);
  Gate::Get().Open();
  other.join();
}

TEST(GateTest, TheInnerEndOfNestedPassesIsNotTheEnd) {
  Inside inside(3);
  for (int level = 0; level < 3; ++level) {
    EXPECT_FALSE(Gate::Get().Close(kShort)) << level;
    inside.Leave();
  }
  EXPECT_TRUE(Gate::Get().Close(kLong));
  Gate::Get().Open();
}

TEST(GateTest, OneThreadAtATimeCloses) {
  ASSERT_TRUE(Gate::Get().Close(kLong));
  std::thread([] { EXPECT_FALSE(Gate::Get().Close(kLong)); }).join();
  // That did not open it.
  std::atomic<bool> passed{false};
  std::thread other([&] {
    const Gate::Pass pass;
    passed = true;
  });
  std::this_thread::sleep_for(kShort);
  EXPECT_FALSE(passed);
  Gate::Get().Open();
  other.join();
}

TEST(GateTest, ThreadsThatEnded) {
  for (int i = 0; i < 200; ++i) {
    std::thread([] { const Gate::Pass pass; }).join();
  }
  EXPECT_TRUE(Gate::Get().Close(milliseconds(0)));
  Gate::Get().Open();
  // Their places are used again and work.
  Inside inside;
  EXPECT_FALSE(Gate::Get().Close(kShort));
  inside.Leave();
}

// Objects of a thread may call the driver when the thread ends, after what the
// gate has of that thread is gone.
struct Late {
  std::function<void()> at_end;
  ~Late() {
    if (at_end != nullptr) at_end();
  }
};

TEST(GateTest, APassAtTheEndOfAThread) {
  std::promise<void> inside;
  std::promise<void> leave;
  std::thread ending([&] {
    thread_local Late late;  // constructed before the gate's own
    late.at_end = [&] {
      const Gate::Pass pass;
      inside.set_value();
      leave.get_future().wait();
    };
    const Gate::Pass pass;
  });
  inside.get_future().wait();
  EXPECT_FALSE(Gate::Get().Close(kShort));
  // Another thread must not get the same place.
  std::thread([] { const Gate::Pass pass; }).join();
  EXPECT_FALSE(Gate::Get().Close(kShort));
  leave.set_value();
  ending.join();
  EXPECT_TRUE(Gate::Get().Close(kLong));
  Gate::Get().Open();
}

TEST(GateTest, AfterFork) {
  Inside inside;
  std::atomic<bool> go{false};
  std::thread closer([&] {
    // Holds the gate closed for as long as it waits for `inside`.
    go = true;
    EXPECT_TRUE(Gate::Get().Close(kLong));
    Gate::Get().Open();
  });
  while (!go) std::this_thread::yield();
  std::this_thread::sleep_for(kShort);
  const pid_t child = fork();
  if (child == 0) {
    Gate::Get().ResetAfterFork();
    alarm(20);
    { const Gate::Pass pass; }
    if (!Gate::Get().Close(milliseconds(0))) _exit(1);
    Gate::Get().Open();
    _exit(0);
  }
  inside.Leave();
  closer.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Plain variables: ThreadSanitizer sees a pass during a closed gate.
TEST(GateTest, NobodyIsInsideWhileItIsClosed) {
  int one = 0;
  int two = 0;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> passes{0};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        {
          const Gate::Pass pass;
          const Gate::Pass nested;
          wrong += one == two ? 0 : 1;
          ++passes;
        }
        std::this_thread::yield();
      }
    });
  }
  int closed = 0;
  for (int i = 0; i < 300; ++i) {
    // Between any two closings somebody passes.
    for (const int before = passes; passes == before;) {
      std::this_thread::yield();
    }
    if (!Gate::Get().Close(kLong)) continue;
    ++one;
    std::this_thread::yield();
    ++two;
    ++closed;
    Gate::Get().Open();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(closed, 300);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(passes, 0);
}

}  // namespace
}  // namespace heddle::live
