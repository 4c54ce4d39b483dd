// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_PROGRESS_H_
#define HEDDLE_TOOLS_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace heddle::tools {

// A line on stderr that says how far a long piece of work is. Shown on a
// terminal only, and only once the work has lasted a while.
class Progress {
 public:
  Progress(std::string what, uint64_t total);
  ~Progress();  // removes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap enough for every record.
  void Update(uint64_t done) {
    if (enabled_ && done >= next_) Show(done);
  }

 private:
  void Show(uint64_t done);

  const std::string what_;
  const uint64_t total_;
  const bool enabled_;
  const std::chrono::steady_clock::time_point start_;
  uint64_t next_ = 0;
  bool shown_ = false;
};

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_PROGRESS_H_
