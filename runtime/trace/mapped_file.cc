// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/mapped_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/trace/format.h"

namespace heddle::trace {
namespace {

// Enough for any recording; halved until the system agrees.
constexpr uint64_t kReserveBytes = uint64_t{1} << 39;
constexpr uint64_t kMinReserveBytes = uint64_t{64} << 20;

// MADV_POPULATE_WRITE of Linux 5.14, which older headers lack.
constexpr int kPopulateWrite = 23;

absl::Status SystemError(absl::string_view call, const std::string& path,
                         int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(call, " ", path));
}

// Growing past RLIMIT_FSIZE raises SIGXFSZ, whose default ends the program.
// Holds the signal back in this thread, and takes it away if it came.
class BlockFileSizeSignal {
 public:
  BlockFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    blocked_ = pthread_sigmask(SIG_BLOCK, &signal_, &old_) == 0;
  }
  ~BlockFileSizeSignal() {
    if (!blocked_) return;
    if (!was_pending_) {
      const timespec now{};
      while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  BlockFileSizeSignal(const BlockFileSizeSignal&) = delete;
  BlockFileSizeSignal& operator=(const BlockFileSizeSignal&) = delete;

 private:
  sigset_t signal_;
  sigset_t old_;
  bool was_pending_ = false;
  bool blocked_ = false;
};

// Allocates [begin, end) by writing zeros. Returns an errno.
int WriteZeros(int fd, uint64_t begin, uint64_t end) {
  static constexpr std::array<uint8_t, 64 << 10> kZeros{};
  while (begin < end) {
    const size_t part = std::min<uint64_t>(kZeros.size(), end - begin);
    const ssize_t wrote =
        pwrite(fd, kZeros.data(), part, static_cast<off_t>(begin));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
    begin += static_cast<uint64_t>(wrote);
  }
  return 0;
}

bool IsEmptyOrTrace(int fd, const struct stat& info) {
  if (info.st_size == 0) return true;
  std::array<uint8_t, kFileMagic.size()> magic{};
  return pread(fd, magic.data(), magic.size(), 0) ==
             static_cast<ssize_t>(magic.size()) &&
         magic == kFileMagic;
}

// Makes way for a new trace at `path`.
absl::Status RemoveOldTrace(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its other end.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return errno == ENOENT && unlink(path.c_str()) == 0  // a dangling link
               ? absl::OkStatus()
               : SystemError("open", path, errno);
  }
  struct stat info {};
  absl::Status status;
  if (fstat(fd, &info) != 0) {
    status = SystemError("fstat", path, errno);
  } else if (!S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat(
        path, " is not a regular file; give the trace another name"));
  } else if (!IsEmptyOrTrace(fd, info)) {
    status = absl::AlreadyExistsError(absl::StrCat(
        path,
        " exists and is not a heddle trace; give the trace another "
        "name or remove it"));
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    status = absl::AlreadyExistsError(absl::StrCat(
        path,
        " is being written by another process; put %p (the process id) "
        "into the name"));
  } else if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    status = SystemError("unlink", path, errno);
  }
  close(fd);
  return status;
}

absl::StatusOr<int> CreateFile(const std::string& path) {
  // Another process may take the name between our calls, so more than once.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const int fd =
        open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      // Tells other writers, and readers, that the file is in use. Where locks
      // do not work, they are not told.
      flock(fd, LOCK_EX | LOCK_NB);
      return fd;
    }
    if (errno == EINTR) continue;
    if (errno != EEXIST) return SystemError("open", path, errno);
    if (absl::Status status = RemoveOldTrace(path); !status.ok()) return status;
  }
  return absl::AlreadyExistsError(absl::StrCat(
      path,
      " is created again and again by another process; put %p (the "
      "process id) into the name"));
}

}  // namespace

uint64_t PageSize() {
  static const uint64_t size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Create(
    const std::string& path, uint64_t limit) {
  absl::StatusOr<int> fd = CreateFile(path);
  if (!fd.ok()) return fd.status();

  uint64_t capacity = kReserveBytes;
  if (limit != 0) capacity = std::min(capacity, RoundUp(limit, PageSize()));
  void* base = MAP_FAILED;
  while (true) {
    base = mmap(nullptr, capacity, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED || capacity <= kMinReserveBytes) break;
    capacity = std::max(RoundUp(capacity / 2, PageSize()), kMinReserveBytes);
  }
  if (base == MAP_FAILED) {
    const int error = errno;
    unlink(path.c_str());
    close(*fd);
    return SystemError("mmap for", path, error);
  }
  return std::unique_ptr<MappedFile>(
      new MappedFile(path, *fd, static_cast<uint8_t*>(base), capacity));
}

MappedFile::~MappedFile() { Abandon(); }

absl::Status MappedFile::Grow(uint64_t size) {
  if (fd_ < 0) return absl::FailedPreconditionError(path_ + " is closed");
  if (size <= size_) return absl::OkStatus();
  if (size > capacity_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, " cannot grow past ", capacity_, " bytes"));
  }
  int error = 0;
  {
    const BlockFileSizeSignal block;
    if (preallocates_) {
      do {
        error = fallocate(fd_, 0, static_cast<off_t>(size_),
                          static_cast<off_t>(size - size_)) == 0
                    ? 0
                    : errno;
      } while (error == EINTR);
      if (error == EOPNOTSUPP || error == ENOSYS) preallocates_ = false;
    }
    if (!preallocates_) error = WriteZeros(fd_, size_, size);
  }
  if (error == EFBIG) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path_, " cannot grow to ", size,
        " bytes: the process or the file system does not allow it; raise the "
        "limit with `ulimit -f`"));
  }
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path_, " cannot grow to ", size, " bytes: ", std::strerror(error),
        "; free some space or record to another disk"));
  }
  if (error != 0) return SystemError("fallocate", path_, error);
  if (mmap(base_ + size_, size - size_, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, fd_,
           static_cast<off_t>(size_)) == MAP_FAILED) {
    return SystemError("mmap", path_, errno);
  }
  size_ = size;
  return absl::OkStatus();
}

void MappedFile::Populate(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  begin = begin / PageSize() * PageSize();
  if (populates_) {
    // Other errors than the unknown advice leave the faults to the stores.
    if (madvise(base_ + begin, end - begin, kPopulateWrite) == 0 ||
        errno != EINVAL) {
      return;
    }
    populates_ = false;
  }
  TouchPages(base_ + begin, base_ + end);
}

void TouchPages(uint8_t* begin, uint8_t* end) {
  // A word is replaced by itself, in one step: if another thread stores there,
  // either the exchange comes first or it fails. (Such a store need not be
  // atomic, which makes this a race by the letter of C++, though not for any
  // processor whose stores of words are.)
  for (; begin < end; begin += PageSize()) {
    const std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(begin));
    uint64_t value = word.load(std::memory_order_relaxed);
    word.compare_exchange_strong(value, value, std::memory_order_relaxed);
  }
}

void MappedFile::Release(uint64_t begin, uint64_t end) {
  // The mapping is shared: what was stored is in the page cache, and a later
  // access brings the page back.
  if (begin < end) madvise(base_ + begin, end - begin, MADV_DONTNEED);
}

absl::Status MappedFile::Finish(uint64_t size, bool unmap) {
  absl::Status status;
  if (unmap) {
    munmap(base_, capacity_);
    base_ = nullptr;
    if (ftruncate(fd_, static_cast<off_t>(size)) != 0) {
      status = SystemError("ftruncate", path_, errno);
    }
  }
  // A mapping that stays would keep the lock.
  flock(fd_, LOCK_UN);
  if (close(fd_) != 0 && status.ok() && errno != EINTR) {
    status = SystemError("close", path_, errno);
  }
  fd_ = -1;
  return status;
}

void MappedFile::Abandon() {
  if (fd_ < 0) return;
  munmap(base_, capacity_);
  base_ = nullptr;
  close(fd_);
  fd_ = -1;
}

}  // namespace heddle::trace
