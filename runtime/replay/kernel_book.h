// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_KERNEL_BOOK_H_
#define HEDDLE_RUNTIME_REPLAY_KERNEL_BOOK_H_

// The machine code of a program's kernels, analysed once for every kernel and
// shape of parameters.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/access/code_image.h"
#include "runtime/access/footprint_cache.h"
#include "runtime/access/launch_access.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

class KernelBook {
 public:
  // `folder` (may be nullptr, else outlives the object) keeps results.
  KernelBook(const trace::Reader& reader, const Program& program,
             const cubin::CacheFolder* folder);

  // What `launch`, an operation of the program, touches.
  access::AccessSet AccessOf(const LaunchWork& launch,
                             const access::MemoryView& memory);

  // Launches that were answered from an earlier analysis, of this run or of one
  // before.
  uint64_t reused() const { return reused_; }
  // Modules whose code could not be had, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Image {
    std::unique_ptr<access::CodeImage> code;
    std::unique_ptr<access::FootprintCache> known;
    std::string why;  // there is no code
  };
  Image& ImageOf(const Kernel& kernel);

  const trace::Reader& reader_;
  const Program& program_;
  int major_ = 0;
  int minor_ = 0;
  absl::flat_hash_map<trace::Hash128, Image> images_;
  const cubin::CacheFolder* folder_;
  uint64_t reused_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_KERNEL_BOOK_H_
