// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_KERNEL_BOOK_H_
#define HEDDLE_RUNTIME_REPLAY_KERNEL_BOOK_H_

// The machine code of a program's kernels, from its trace.

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/trace.h"
#include "runtime/access/analysis_book.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

class KernelBook {
 public:
  // `folder` (may be nullptr, else outlives the object) keeps results.
  KernelBook(const trace::Reader& reader, const Program& program,
             const cubin::CacheFolder* folder)
      : reader_(reader), program_(program), book_(folder) {}

  // What `launch`, an operation of the program, touches.
  access::AccessSet AccessOf(const LaunchWork& launch,
                             const access::MemoryView& memory);

  uint64_t reused() const { return book_.reused(); }
  const std::vector<std::string>& notes() const { return book_.notes(); }

 private:
  const trace::Reader& reader_;
  const Program& program_;
  access::AnalysisBook book_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_KERNEL_BOOK_H_
