// SPDX-License-Identifier: Apache-2.0
#include "tools/trace_files.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/trace/format.h"

namespace heddle::tools {
namespace {

constexpr char kSuffix[] = ".htrace";

bool IsTrace(const std::string& path) {
  std::array<char, trace::kFileMagic.size()> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) &&
         std::memcmp(magic.data(), trace::kFileMagic.data(), magic.size()) == 0;
}

// `pattern` for glob(3).
std::string GlobOf(const std::string& pattern) {
  std::string glob;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%' && i + 1 < pattern.size()) {
      const char next = pattern[i + 1];
      if (next == '%') {
        glob += '%';
        ++i;
        continue;
      }
      if (next == 'p' || next == 'h' || next == 'r') {
        glob += '*';
        ++i;
        continue;
      }
    }
    if (absl::string_view("*?[\\").find(pattern[i]) !=
        absl::string_view::npos) {
      glob += '\\';
    }
    glob += pattern[i];
  }
  return glob;
}

}  // namespace

TraceFiles::TraceFiles(std::string pattern)
    : pattern_(std::move(pattern)), before_(List()) {}

absl::Status TraceFiles::RemoveOld() const {
  struct stat status {};
  if (absl::StrContains(pattern_, "%") ||
      stat(pattern_.c_str(), &status) != 0) {
    return absl::OkStatus();
  }
  if (!IsTrace(pattern_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        pattern_, " exists and is not a trace; choose another name with -o"));
  }
  if (unlink(pattern_.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot replace ", pattern_, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

std::map<std::string, TraceFiles::Version> TraceFiles::List() const {
  std::string stem = GlobOf(pattern_);
  if (absl::EndsWith(stem, kSuffix)) {
    stem.erase(stem.size() - std::strlen(kSuffix));
  }
  std::map<std::string, Version> files;
  for (const std::string& wanted :
       {GlobOf(pattern_), absl::StrCat(stem, ".*", kSuffix)}) {
    glob_t found{};
    if (glob(wanted.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; ++i) {
        struct stat status {};
        if (stat(found.gl_pathv[i], &status) != 0) continue;
        files[found.gl_pathv[i]] = {
            status.st_ino, status.st_mtim.tv_sec * int64_t{1'000'000'000} +
                               status.st_mtim.tv_nsec};
      }
    }
    globfree(&found);
  }
  return files;
}

std::vector<std::string> TraceFiles::New() const {
  std::vector<std::string> traces;
  for (const auto& [path, version] : List()) {
    const auto old = before_.find(path);
    if (old != before_.end() && old->second == version) continue;
    if (IsTrace(path)) traces.push_back(path);
  }
  return traces;
}

}  // namespace heddle::tools
