// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_MAPPED_FILE_H_
#define HEDDLE_RUNTIME_TRACE_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace heddle::trace {

// A file that grows under a mapping whose address never changes.
//
// A large range of addresses is reserved once, and the file is mapped into it
// piece by piece; so bytes of the file are contiguous in memory, pointers stay
// valid while it grows, and nothing is unmapped under a thread that still
// writes. Address space that is only reserved costs nothing.
//
// Disk space is allocated before it is mapped: a full disk is an error of
// Grow, never a SIGBUS at a store.
//
// Threads: none of this locks; calls that change the file need the caller's
// lock. Stores through data() need none.
class MappedFile {
 public:
  // Creates the file. An existing trace at `path` is unlinked, not truncated:
  // a process that still has it mapped must not be hurt. Errors: AlreadyExists
  // if a live process is writing it or if it is something else than a trace,
  // InvalidArgument if it is no regular file, else what open(2) says.
  // `limit` bounds the file's size; 0 = as large as the reservation.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Create(
      const std::string& path, uint64_t limit);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  uint8_t* data() const { return base_; }
  // Bytes that are allocated and mapped.
  uint64_t size() const { return size_; }
  // The most that Grow can reach.
  uint64_t capacity() const { return capacity_; }

  // Extends the mapped file to `size` bytes, a multiple of the page size.
  absl::Status Grow(uint64_t size);

  // Takes the page faults of [begin, end) now rather than one at a time.
  void Populate(uint64_t begin, uint64_t end);
  // Drops [begin, end) from this process's resident set. The bytes stay in the
  // file, and threads may still store there.
  void Release(uint64_t begin, uint64_t end);

  // Cuts the file to `size` and closes it. `unmap`: no thread stores any more.
  absl::Status Finish(uint64_t size, bool unmap);
  // Closes and unmaps without touching the file, for a forked child.
  void Abandon();

 private:
  MappedFile(std::string path, int fd, uint8_t* base, uint64_t capacity)
      : path_(std::move(path)), fd_(fd), base_(base), capacity_(capacity) {}

  const std::string path_;
  int fd_;
  uint8_t* base_;
  uint64_t capacity_;
  uint64_t size_ = 0;
  // False once the file system has said that it cannot preallocate.
  bool preallocates_ = true;
  // False once the kernel has said that it does not know how (before 5.14).
  bool populates_ = true;
};

// Takes the page faults of stores to [begin, end), page by page. Other threads
// may store there meanwhile; nothing that they store is lost.
void TouchPages(uint8_t* begin, uint8_t* end);

uint64_t PageSize();

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_MAPPED_FILE_H_
