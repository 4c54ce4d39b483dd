// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace heddle::record {
namespace {

LogLevel ParseThreshold() {
  const char* text = std::getenv("HEDDLE_LOG");
  if (text == nullptr) return LogLevel::kError;
  if (std::strcmp(text, "debug") == 0) return LogLevel::kDebug;
  if (std::strcmp(text, "info") == 0) return LogLevel::kInfo;
  if (std::strcmp(text, "warn") == 0) return LogLevel::kWarn;
  return LogLevel::kError;
}

int OpenTarget() {
  const char* path = std::getenv("HEDDLE_LOG_FILE");
  if (path == nullptr || *path == '\0') return STDERR_FILENO;
  const int fd =
      open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  return fd < 0 ? STDERR_FILENO : fd;
}

}  // namespace

LogLevel LogThreshold() {
  static const LogLevel threshold = ParseThreshold();
  return threshold;
}

void Log(LogLevel level, absl::string_view message) {
  if (static_cast<int>(level) > static_cast<int>(LogThreshold())) return;
  static const int fd = OpenTarget();
  // One writev, so that lines of several threads and processes stay whole.
  char prefix[] = "heddle: ";
  char newline[] = "\n";
  iovec parts[3] = {{prefix, sizeof(prefix) - 1},
                    {const_cast<char*>(message.data()), message.size()},
                    {newline, 1}};
  [[maybe_unused]] const ssize_t written = writev(fd, parts, 3);
}

}  // namespace heddle::record
