// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace heddle::tools {
namespace {

constexpr std::chrono::milliseconds kPatience{700};

}  // namespace

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)),
      total_(total),
      enabled_(total > 0 && isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::Show(uint64_t done) {
  // In steps of half a percent.
  next_ = done + std::max<uint64_t>(1, total_ / 200);
  if (std::chrono::steady_clock::now() - start_ < kPatience) return;
  shown_ = true;
  std::fprintf(stderr, "\r%s: %d%%\033[K", what_.c_str(),
               static_cast<int>(100.0 * static_cast<double>(done) /
                                static_cast<double>(total_)));
  std::fflush(stderr);
}

}  // namespace heddle::tools
