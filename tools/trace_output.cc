// SPDX-License-Identifier: Apache-2.0
#include "tools/trace_output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::tools {
namespace {

absl::Status FileError(const std::string& what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

// Waits until the file, or the names in a folder, are on the disk.
absl::Status Flush(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("open", path);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  errno = error;
  // Some file systems cannot flush a folder; the file itself is safe then.
  if (result != 0 && error != EINVAL) return FileError("flush", path);
  return absl::OkStatus();
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

TraceOutput::TraceOutput(std::string path, std::string temporary,
                         std::unique_ptr<trace::Writer> writer)
    : path_(std::move(path)),
      temporary_(std::move(temporary)),
      writer_(std::move(writer)) {}

absl::StatusOr<std::unique_ptr<TraceOutput>> TraceOutput::Create(
    const std::string& path, const trace::Reader& source, int level) {
  // Through a link to the file that it names, which is what changes.
  std::error_code error;
  std::filesystem::path target = std::filesystem::canonical(path, error);
  if (error) target = path;
  if (std::filesystem::exists(target, error) &&
      !std::filesystem::is_regular_file(target, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file"));
  }
  // A limit on file sizes is an error of the writer, not the end.
  signal(SIGXFSZ, SIG_IGN);
  const std::string temporary =
      absl::StrCat(target.string(), ".", getpid(), ".tmp");
  trace::WriterOptions options;
  options.compression_level = level;
  options.source = source.header();
  absl::StatusOr<std::unique_ptr<trace::Writer>> writer =
      trace::Writer::Create(temporary, options);
  if (!writer.ok()) return writer.status();
  struct stat status {};
  if (stat(target.c_str(), &status) == 0) {
    // Kept if possible; a foreign file system may refuse.
    (void)!chmod(temporary.c_str(), status.st_mode & 07777);
  }
  return std::unique_ptr<TraceOutput>(
      new TraceOutput(target.string(), temporary, *std::move(writer)));
}

TraceOutput::~TraceOutput() {
  if (committed_) return;
  writer_->Close().IgnoreError();
  unlink(temporary_.c_str());
}

absl::Status TraceOutput::Commit(
    const std::function<absl::Status(const trace::Reader&)>& check) {
  if (!writer_->ok()) return writer_->error();
  if (absl::Status status = writer_->Close(); !status.ok()) return status;
  if (absl::Status status = Flush(temporary_); !status.ok()) return status;
  {
    auto reader = trace::Reader::Open(temporary_);
    if (!reader.ok()) return reader.status();
    if ((*reader)->truncated()) {
      return absl::DataLossError(
          absl::StrCat("what was written to ", temporary_,
                       " does not read back: ", (*reader)->truncation()));
    }
    if (absl::Status status = check(**reader); !status.ok()) return status;
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return FileError("rename to", path_);
  }
  committed_ = true;
  return Flush(FolderOf(path_));
}

absl::Status CheckNotBeingWritten(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("open", path);
  const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  if (locked) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is being written by a program; wait until that has ended"));
  }
  return absl::OkStatus();
}

}  // namespace heddle::tools
