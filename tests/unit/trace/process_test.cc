// SPDX-License-Identifier: Apache-2.0

// What other processes, signals and full disks do to a trace.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/trace/writer.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

WriterOptions SmallChunks() {
  WriterOptions options;
  options.chunk_bytes = 64 << 10;
  return options;
}

// Runs `body` in a forked child and returns what waitpid says of it. The child
// exits with what `body` returns.
int RunInChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// Memory that a child shares with its parent.
class SharedCounter {
 public:
  SharedCounter()
      : value_(new (mmap(nullptr, sizeof(std::atomic<int>),
                         PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0)) std::atomic<int>(0)) {}
  ~SharedCounter() { munmap(value_, sizeof(*value_)); }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  std::atomic<int>& operator*() const { return *value_; }

 private:
  std::atomic<int>* value_;
};

TEST(KillTest, KilledProgramLeavesEverythingItHadWritten) {
  const TempDir dir;
  const std::string path = dir.File("t.htrace");
  for (const int enough : {0, 1, 3000, 20'000}) {
    const SharedCounter counter;
    const pid_t child = fork();
    if (child == 0) {
      const std::unique_ptr<Writer> writer = MustCreate(path, SmallChunks());
      for (int i = 0;; ++i) {
        if (!AppendNote(*writer, i, 60)) _exit(1);
        (*counter).store(i + 1);
      }
    }
    while ((*counter).load() < std::max(enough, 1)) std::this_thread::yield();
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    const std::unique_ptr<Reader> reader = MustOpen(path);
    EXPECT_TRUE(reader->truncated());
    // Between records or within one.
    EXPECT_TRUE(reader->truncation().find("no footer") != std::string::npos ||
                reader->truncation().find("not finished") != std::string::npos)
        << reader->truncation();
    const int written = (*counter).load();
    // One more may have been complete before it was counted.
    ASSERT_GE(reader->records().size(), static_cast<size_t>(written));
    ASSERT_LE(reader->records().size(), static_cast<size_t>(written) + 1);
    for (const Record& record : reader->records()) {
      ASSERT_EQ(record.As<fb::Note>()->text()->str(),
                NoteText(static_cast<int>(record.index), 60));
    }
  }
}

TEST(KillTest, RecordThatWasOnlyReservedEndsWhatCanBeRead) {
  const TempDir dir;
  const std::string path = dir.File("t.htrace");
  const int status = RunInChild([&] {
    const std::unique_ptr<Writer> writer = MustCreate(path);
    AppendNote(*writer, 0);
    uint8_t* payload = writer->Reserve(100);
    payload[0] = 1;
    AppendNote(*writer, 1);
    return raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::unique_ptr<Reader> reader = MustOpen(path);
  EXPECT_TRUE(reader->truncated());
  EXPECT_NE(reader->truncation().find("was not finished"), std::string::npos)
      << reader->truncation();
  EXPECT_EQ(reader->records().size(), 1u);
}

TEST(KillTest, TraceThatIsBeingWrittenCanBeRead) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  ASSERT_TRUE(AppendNote(*writer, 0));
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_EQ(reader->records().size(), 1u);
  EXPECT_TRUE(reader->truncated());
  EXPECT_NE(reader->truncation().find("still being written"), std::string::npos)
      << reader->truncation();
}

TEST(ForkTest, ChildThatAbandonsTheWriterLeavesTheTraceAlone) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), SmallChunks());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(AppendNote(*writer, i));
  const int status = RunInChild([&] {
    writer->Abandon();
    const std::vector<uint8_t> bytes(10);
    const bool inert =
        !writer->ok() && !writer->error().ok() && !AppendNote(*writer, -1) &&
        writer->Reserve(8) == nullptr &&
        writer->AppendBlob(bytes) == HashBytes(bytes) && writer->Close().ok();
    writer->Abandon();
    return inert ? 0 : 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (int i = 1000; i < 2000; ++i) ASSERT_TRUE(AppendNote(*writer, i));
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  ASSERT_EQ(reader->records().size(), 2001u);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(reader->records()[i].As<fb::Note>()->severity(), i);
  }
}

TEST(ForkTest, ChildThatForgetsToAbandonTheWriterDoesNoHarmEither) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), SmallChunks());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(AppendNote(*writer, i));
  const std::vector<std::function<int()>> children = {
      [&] { return AppendNote(*writer, -1) ? 1 : 0; },
      [&] { return writer->Reserve(100'000) == nullptr ? 0 : 1; },
      [&] { return writer->AppendBlob({}) == HashBytes({}) ? 0 : 1; },
      [&] { return writer->ok() || writer->error().ok() ? 1 : 0; },
      [&] { return writer->Close().ok() ? 0 : 1; },
  };
  for (const std::function<int()>& child : children) {
    const int status = RunInChild(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  for (int i = 1000; i < 2000; ++i) ASSERT_TRUE(AppendNote(*writer, i));
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  EXPECT_EQ(reader->records().size(), 2001u);
}

// Fills the disk or the limit, and checks that the trace is whole up to there.
int WriteUntilFull(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Writer>> writer =
      Writer::Create(path, SmallChunks());
  if (!writer.ok()) return 2;
  int number = 0;
  while (AppendNote(**writer, number, 100)) {
    if (++number > 1'000'000) return 3;
  }
  if ((*writer)->ok()) return 4;
  if ((*writer)->error().code() != absl::StatusCode::kResourceExhausted) {
    return 5;
  }
  if (AppendNote(**writer, number, 1)) return 6;
  if (!(*writer)->Close().ok()) return 7;
  const absl::StatusOr<std::unique_ptr<Reader>> reader = Reader::Open(path);
  if (!reader.ok()) return 8;
  if ((*reader)->truncated()) return 9;
  // The notes, the writer's own note, End.
  if ((*reader)->records().size() != static_cast<size_t>(number) + 2) return 10;
  const auto* end = (*reader)->records().back().As<fb::End>();
  if (end == nullptr || end->reason()->str().empty()) return 11;
  return number == 0 ? 12 : 0;
}

TEST(DiskFullTest, LimitOfTheFileSizeTurnsTheWriterOffAndHarmsNothing) {
  const TempDir dir;
  const int status = RunInChild([&] {
    // Not a multiple of anything, and SIGXFSZ at its default, which kills.
    rlimit limit{1'000'001, 1'000'001};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const int result = WriteUntilFull(dir.File("t.htrace"));
    // The signal was taken back, not just put off.
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGXFSZ) == 1) return 20;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (sigismember(&blocked, SIGXFSZ) == 1) return 21;
    return result;
  });
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

constexpr int kNotPermitted = 99;

// Runs `body` in a child that has a file system of its own at `folder`, which
// is made. Returns kNotPermitted where a user may not mount.
int RunWithFileSystem(const std::string& type, const std::string& options,
                      const std::string& folder,
                      const std::function<int()>& body) {
  return RunInChild([&] {
    if (mkdir(folder.c_str(), 0700) != 0 ||
        (unshare(CLONE_NEWNS) != 0 &&
         unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(type.c_str(), folder.c_str(), type.c_str(), 0, options.c_str()) !=
            0) {
      return kNotPermitted;
    }
    return body();
  });
}

TEST(DiskFullTest, FullDiskTurnsTheWriterOffAndHarmsNothing) {
  const TempDir dir;
  const std::string disk = dir.File("disk");
  const int status = RunWithFileSystem("tmpfs", "size=1000k", disk, [&] {
    return WriteUntilFull(disk + "/t.htrace");
  });
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << "mounting a small file system is not permitted here";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DiskFullTest, FileSystemThatCannotPreallocateIsFilledWithZeros) {
  const TempDir dir;
  const std::string disk = dir.File("disk");
  // ramfs has no fallocate.
  const int status = RunWithFileSystem("ramfs", "", disk, [&] {
    const std::string path = disk + "/t.htrace";
    const int fd = open((disk + "/probe").c_str(), O_RDWR | O_CREAT, 0600);
    if (fallocate(fd, 0, 0, 1) == 0) return kNotPermitted;
    close(fd);
    const std::unique_ptr<Writer> writer = MustCreate(path, SmallChunks());
    for (int i = 0; i < 5000; ++i) {
      if (!AppendNote(*writer, i)) return 1;
    }
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return 2;
    // Every byte up to the size has room.
    if (info.st_blocks * 512 < info.st_size) return 3;
    if (!writer->Close().ok()) return 4;
    const std::unique_ptr<Reader> reader = MustOpen(path);
    return !reader->truncated() && reader->records().size() == 5001 ? 0 : 5;
  });
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << "mounting ramfs is not permitted here";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DiskFullTest, RecordingStopsAtMaxBytesWithANote) {
  const TempDir dir;
  for (const uint64_t max_bytes :
       {uint64_t{16 << 10}, uint64_t{100'000}, uint64_t{1'000'003}}) {
    WriterOptions options = SmallChunks();
    options.max_bytes = max_bytes;
    const std::unique_ptr<Writer> writer =
        MustCreate(dir.File("t.htrace"), options);
    int number = 0;
    while (AppendNote(*writer, number, 100)) ++number;
    EXPECT_FALSE(writer->ok());
    EXPECT_EQ(writer->error().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_FALSE(AppendNote(*writer, number, 1)) << "off is off";
    ASSERT_TRUE(writer->Close().ok());
    const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
    EXPECT_FALSE(reader->truncated()) << reader->truncation();
    EXPECT_LE(reader->file_size(), max_bytes);
    EXPECT_GT(reader->file_size(), max_bytes / 2);
    EXPECT_EQ(reader->file_size(), writer->bytes_written());
    ASSERT_EQ(reader->records().size(), static_cast<size_t>(number) + 2);
    const auto* note = reader->records()[number].As<fb::Note>();
    ASSERT_NE(note, nullptr);
    EXPECT_NE(note->text()->str().find("limit"), std::string::npos);
    EXPECT_NE(reader->records().back().As<fb::End>(), nullptr);
  }
}

TEST(DiskFullTest, MaxBytesTooSmallForAnythingIsRefused) {
  const TempDir dir;
  WriterOptions options;
  options.max_bytes = 1000;
  EXPECT_EQ(Writer::Create(dir.File("t.htrace"), options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_NE(access(dir.File("t.htrace").c_str(), F_OK), 0);
}

TEST(DiskFullTest, RecordThatIsTooLargeTurnsTheWriterOff) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  ASSERT_TRUE(AppendNote(*writer, 0));
  EXPECT_EQ(writer->Reserve((1u << 30) + 1), nullptr);
  EXPECT_EQ(writer->error().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(AppendNote(*writer, 1));
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(MustOpen(dir.File("t.htrace"))->records().size(), 3u);
}

TEST(CreateTest, OldTraceIsReplacedButNotChangedUnderItsReaders) {
  const TempDir dir;
  const std::string path = dir.File("t.htrace");
  {
    const std::unique_ptr<Writer> writer = MustCreate(path);
    for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(AppendNote(*writer, i));
  }
  const std::unique_ptr<Reader> old_trace = MustOpen(path);
  const std::unique_ptr<Writer> writer = MustCreate(path);
  ASSERT_TRUE(AppendNote(*writer, 5));
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(MustOpen(path)->records().size(), 2u);
  // Truncating the file would end this with SIGBUS.
  ASSERT_EQ(old_trace->records().size(), 10'001u);
  EXPECT_EQ(old_trace->records()[9999].As<fb::Note>()->severity(), 9999);
}

TEST(CreateTest, TraceThatALiveWriterHasIsNotTakenAway) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  const absl::Status status = Writer::Create(dir.File("t.htrace"), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(status.message().find("%p"), absl::string_view::npos) << status;
  ASSERT_TRUE(AppendNote(*writer, 0));
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(MustOpen(dir.File("t.htrace"))->records().size(), 2u);
}

TEST(CreateTest, FileThatIsNoTraceIsNotOverwritten) {
  const TempDir dir;
  const std::vector<uint8_t> script = {'i', 'm', 'p', 'o', 'r',
                                       't', ' ', 'o', 's'};
  WriteFile(dir.File("serve.py"), script);
  EXPECT_EQ(Writer::Create(dir.File("serve.py"), {}).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(dir.File("serve.py")), script);
  WriteFile(dir.File("empty"), {});
  EXPECT_TRUE(Writer::Create(dir.File("empty"), {}).ok());
}

TEST(CreateTest, NamesThatCannotBeAFileAreErrors) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.File("fifo").c_str(), 0600), 0);
  EXPECT_EQ(Writer::Create(dir.File("fifo"), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Writer::Create("/dev/null", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Writer::Create(dir.File("."), {}).ok());
  EXPECT_EQ(Writer::Create(dir.File("no/such/dir"), {}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Writer::Create("", {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(CreateTest, WriterThatIsNotClosedClosesItself) {
  const TempDir dir;
  AppendNote(*MustCreate(dir.File("t.htrace")), 0);
  EXPECT_FALSE(MustOpen(dir.File("t.htrace"))->truncated());
}

TEST(CreateTest, FileIsNotInheritedByProgramsThatAreStarted) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  for (int fd = 3; fd < 1000; ++fd) {
    char target[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t size = readlink(link.c_str(), target, sizeof(target));
    if (size <= 0) continue;
    if (std::string(target, static_cast<size_t>(size)) == writer->path()) {
      EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
      return;
    }
  }
  FAIL() << "the writer's descriptor was not found";
}

}  // namespace
}  // namespace heddle::trace
