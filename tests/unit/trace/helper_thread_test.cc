// SPDX-License-Identifier: Apache-2.0

// The writer's helper: the thread itself, and that a trace is the same with and
// without it, around forks, signals and ends of the program.

#include "runtime/trace/helper_thread.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heddle/trace.h"
#include "runtime/trace/mapped_file.h"
#include "runtime/trace/writer.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

// A sanitizer's shadow memory has page faults of its own.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kCountsFaults = false;
#else
constexpr bool kCountsFaults = true;
#endif

int64_t FaultsOfThisThread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// The helpers of this process, by the name that they give themselves.
int CountHelpers() {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (name == "heddle-trace") ++count;
  }
  return count;
}

int StatusOfChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // one that hangs fails
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(HelperThreadTest, EveryWakeIsFollowedByWork) {
  std::atomic<int> wishes{0};
  std::atomic<int> seen{0};
  HelperThread helper([&] { seen.store(wishes.load()); });
  EXPECT_EQ(CountHelpers(), 0);
  for (int i = 1; i <= 500; ++i) {
    wishes.store(i);
    ASSERT_TRUE(helper.Wake());
    if (i % 7 == 0) {
      ASSERT_TRUE(Eventually([&] { return seen.load() == i; }));
    }
  }
  EXPECT_TRUE(Eventually([&] { return seen.load() == 500; }));
  EXPECT_EQ(CountHelpers(), 1);
}

TEST(HelperThreadTest, StopWaitsForTheWorkAndIsFinal) {
  std::atomic<bool> inside{false};
  std::atomic<bool> finished{false};
  HelperThread helper([&] {
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    finished = true;
  });
  ASSERT_TRUE(helper.Wake());
  ASSERT_TRUE(Eventually([&] { return inside.load(); }));
  helper.Stop();
  EXPECT_TRUE(finished);
  EXPECT_FALSE(helper.Wake());
  helper.Stop();
}

TEST(HelperThreadTest, ManyThreadsStartWakeAndStopIt) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> running{0};
    HelperThread helper([&] {
      EXPECT_EQ(running.fetch_add(1), 0) << "two threads work";
      running.fetch_sub(1);
    });
    std::vector<std::thread> threads;
    threads.reserve(6);
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) helper.Wake();
        if (t == 0) helper.Stop();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(helper.Wake());
  }
}

TEST(HelperThreadTest, TheProgramsSignalsDoNotReachIt) {
  std::atomic<bool> done{false};
  std::atomic<int> open{0};
  HelperThread helper([&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGPROF, SIGCHLD}) {
      if (sigismember(&mask, signal) != 1) ++open;
    }
    done = true;
  });
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ASSERT_TRUE(helper.Wake());
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  ASSERT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_EQ(open, 0);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }
}

TEST(HelperThreadTest, AForkedChildHasNoneAndNeverWaitsForIt) {
  std::atomic<bool> hold{true};
  std::atomic<bool> inside{false};
  HelperThread helper([&] {
    inside = true;
    while (hold) std::this_thread::yield();
  });
  ASSERT_TRUE(helper.Wake());
  ASSERT_TRUE(Eventually([&] { return inside.load(); }));
  EXPECT_EQ(StatusOfChild([&] {
              helper.Stop();
              return CountHelpers();
            }),
            0);
  hold = false;
}

TEST(TouchPagesTest, NoStoreOfAnotherThreadIsLost) {
  constexpr size_t kBytes = 64 << 12;
  auto* memory =
      static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::atomic<bool> stop{false};
  std::thread toucher([&] {
    while (!stop) TouchPages(memory, memory + kBytes);
  });
  for (uint64_t round = 1; round < 2000; ++round) {
    for (size_t at = 0; at < kBytes; at += 4096) {
      auto* word = reinterpret_cast<uint64_t*>(memory + at);
      std::atomic_ref<uint64_t>(*word).store(round + at);
    }
    for (size_t at = 0; at < kBytes; at += 4096) {
      auto* word = reinterpret_cast<uint64_t*>(memory + at);
      ASSERT_EQ(std::atomic_ref<uint64_t>(*word).load(), round + at);
    }
  }
  stop = true;
  toucher.join();
  munmap(memory, kBytes);
}

// Page faults that storing to every page of a new file takes after `prepare`.
int64_t FaultsAfter(const std::function<void(MappedFile&, uint64_t)>& prepare) {
  const TempDir dir;
  auto file = MappedFile::Create(dir.File("f"), 0);
  constexpr uint64_t kBytes = 1 << 20;
  if (!file.ok() || !(*file)->Grow(kBytes).ok()) return -1;
  prepare(**file, kBytes);
  const int64_t before = FaultsOfThisThread();
  for (uint64_t at = 0; at < kBytes; at += PageSize()) (*file)->data()[at] = 1;
  return FaultsOfThisThread() - before;
}

TEST(PopulateTest, LeavesNoFaultToTheStores) {
  if (!kCountsFaults) GTEST_SKIP() << "built with a sanitizer";
  const auto touch = [](MappedFile& file, uint64_t bytes) {
    TouchPages(file.data(), file.data() + bytes);
  };
  // Pieces that are no pages are rounded to such.
  const auto populate = [](MappedFile& file, uint64_t bytes) {
    file.Populate(0, 5000);
    file.Populate(5000, bytes - 1);
  };
  const int64_t untouched = FaultsAfter([](MappedFile&, uint64_t) {});
  EXPECT_GE(untouched, 12);  // the kernel may map sixteen pages at a time
  EXPECT_LE(FaultsAfter(touch), untouched / 4);
  EXPECT_LE(FaultsAfter(populate), untouched / 4);
}

WriterOptions SmallChunks() {
  WriterOptions options;
  options.chunk_bytes = 64 << 10;
  return options;
}

// Enough records to be in need of the helper.
constexpr int kManyRecords = 12'000;

void ExpectRecords(const std::string& path, int count) {
  const std::unique_ptr<Reader> reader = MustOpen(path);
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  ASSERT_EQ(reader->records().size(), static_cast<size_t>(count) + 1);
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(
        reader->records()[static_cast<size_t>(i)].As<fb::Note>()->severity(),
        i);
  }
}

TEST(WriterHelperTest, StartsWhenItIsNeededAndEndsWithTheTrace) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), SmallChunks());
  ASSERT_TRUE(AppendNote(*writer, 0, 60));
  EXPECT_EQ(CountHelpers(), 0);
  for (int i = 1; i < kManyRecords; ++i) {
    ASSERT_TRUE(AppendNote(*writer, i, 60));
  }
  EXPECT_EQ(CountHelpers(), 1);
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(CountHelpers(), 0);
  ExpectRecords(dir.File("t.htrace"), kManyRecords);
}

TEST(WriterHelperTest, TakesThePageFaultsOfTheThreadThatWrites) {
  if (!kCountsFaults) GTEST_SKIP() << "built with a sanitizer";
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  int i = 0;
  const auto write = [&](uint64_t bytes) {
    const uint64_t end = writer->bytes_written() + bytes;
    while (writer->bytes_written() < end) {
      ASSERT_TRUE(AppendNote(*writer, i++, 60));
    }
  };
  write(1 << 20);
  const int64_t before = FaultsOfThisThread();
  for (int piece = 0; piece < 64; ++piece) {
    write(128 << 10);
    // A program that does something else, too.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // 8 MiB are 2048 pages.
  EXPECT_LT(FaultsOfThisThread() - before, 400);
}

// From now on this process cannot make a thread.
bool ForbidThreads() {
  const auto answer = [](int error) {
    return static_cast<uint32_t>(SECCOMP_RET_ERRNO) |
           static_cast<uint32_t>(error);
  };
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, answer(EAGAIN)),
  };
  sock_fprog program = {.len = std::size(filter), .filter = filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(WriterHelperTest, WithoutThreadsTheTraceIsTheSame) {
  const TempDir dir;
  EXPECT_EQ(StatusOfChild([&] {
              if (!ForbidThreads()) return 2;
              const std::unique_ptr<Writer> writer =
                  MustCreate(dir.File("t.htrace"), SmallChunks());
              for (int i = 0; i < kManyRecords; ++i) {
                if (!AppendNote(*writer, i, 60)) return 3;
              }
              if (CountHelpers() != 0) return 4;
              return writer->Close().ok() ? 0 : 5;
            }),
            0);
  ExpectRecords(dir.File("t.htrace"), kManyRecords);
}

TEST(WriterHelperTest, ForksWhileItWorksHarmNeitherProcess) {
  const TempDir dir;
  std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), SmallChunks());
  int i = 0;
  for (int round = 0; round < 20; ++round) {
    for (int n = 0; n < 2000; ++n) ASSERT_TRUE(AppendNote(*writer, i++, 60));
    EXPECT_EQ(StatusOfChild([&] {
                if (AppendNote(*writer, 0)) return 1;
                if (round % 2 == 0 && !writer->Close().ok()) return 2;
                writer.reset();
                // The child's own.
                const std::unique_ptr<Writer> mine =
                    MustCreate(dir.File("child.htrace"), SmallChunks());
                for (int n = 0; n < kManyRecords; ++n) {
                  if (!AppendNote(*mine, n, 60)) return 3;
                }
                if (CountHelpers() != 1) return 4;
                return mine->Close().ok() ? 0 : 5;
              }),
              0);
  }
  ASSERT_TRUE(writer->Close().ok());
  ExpectRecords(dir.File("t.htrace"), i);
  ExpectRecords(dir.File("child.htrace"), kManyRecords);
}

}  // namespace
}  // namespace heddle::trace
