// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/mapped_input.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace heddle::trace {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

absl::StatusOr<MappedInput> MappedInput::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its other end.
  const FileDescriptor fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("fstat ", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is not a regular file; give the path of a "
                     ".htrace file"));
  }
  MappedInput input;
  // The writer holds an exclusive lock as long as it lives.
  input.being_written_ =
      flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  // The mapping would keep the lock.
  if (!input.being_written_) flock(fd.get(), LOCK_UN);
  if (info.st_size == 0) return input;
  const auto size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat("mmap ", path));
  }
  input.bytes_ = absl::MakeConstSpan(static_cast<const uint8_t*>(data), size);
  return input;
}

MappedInput::~MappedInput() {
  if (!bytes_.empty()) {
    munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace heddle::trace
