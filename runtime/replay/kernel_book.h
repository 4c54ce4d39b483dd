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
#include "runtime/access/launch_access.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

class KernelBook {
 public:
  KernelBook(const trace::Reader& reader, const Program& program);

  // What `launch`, an operation of the program, touches.
  access::AccessSet AccessOf(const LaunchWork& launch,
                             const access::MemoryView& memory);

  // Launches that were answered from an earlier analysis.
  uint64_t reused() const { return reused_; }
  // Modules whose code could not be had, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const access::CodeImage::Kernel* Find(const Kernel& kernel, std::string* why);

  const trace::Reader& reader_;
  const Program& program_;
  int major_ = 0;
  int minor_ = 0;
  struct Image {
    std::unique_ptr<access::CodeImage> code;
    std::string why;  // there is none
  };
  absl::flat_hash_map<trace::Hash128, Image> images_;
  absl::flat_hash_map<std::string, std::unique_ptr<access::KernelFootprint>>
      known_;
  uint64_t reused_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_KERNEL_BOOK_H_
