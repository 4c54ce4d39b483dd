// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/cache_folder.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/byte_reader.h"

namespace heddle::cubin {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kTemporarySuffix = ".tmp";
// What a process that was killed left behind is younger than that only while
// another one may still be writing it.
constexpr time_t kTemporarySeconds = 3600;

std::optional<std::vector<uint8_t>> ReadAll(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

bool WriteAll(int file, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// What is there is run on the device: the folder must be the user's own.
bool IsOurs(const std::string& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & S_IWOTH) == 0 &&
         access(folder.c_str(), R_OK | W_OK | X_OK) == 0;
}

}  // namespace

std::string CacheFolder::DefaultPath() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  std::string folder = variable("HEDDLE_CACHE_DIR");
  if (!folder.empty()) return folder;
  folder = variable("XDG_CACHE_HOME");
  if (!folder.empty()) return folder + "/heddle";
  folder = variable("HOME");
  return folder.empty() ? "" : folder + "/.cache/heddle";
}

std::unique_ptr<CacheFolder> CacheFolder::Open(const std::string& path,
                                               std::string suffix,
                                               uint64_t max_bytes) {
  if (path.empty()) return nullptr;
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  mkdir(path.c_str(), S_IRWXU);
  if (!IsOurs(path)) return nullptr;
  return std::unique_ptr<CacheFolder>(
      new CacheFolder(path, std::move(suffix), max_bytes));
}

std::string CacheFolder::FileOf(absl::string_view key) const {
  return absl::StrCat(path_, "/", key, suffix_);
}

std::optional<std::vector<uint8_t>> CacheFolder::Load(
    absl::string_view key) const {
  const int file = open(FileOf(key).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const absl::Cleanup close_file = [file] { close(file); };
  return ReadAll(file);
}

void CacheFolder::Touch(absl::string_view key) const {
  // The time of change is the time of the last use; see Evict.
  utimensat(AT_FDCWD, FileOf(key).c_str(), nullptr, 0);
}

void CacheFolder::Store(absl::string_view key,
                        absl::Span<const uint8_t> bytes) const {
  if (bytes.size() > max_bytes_) return;
  static std::atomic<uint64_t> counter = 0;
  const std::string temporary =
      absl::StrCat(path_, "/.", getpid(), ".", counter++, ".",
                   XXH3_64bits(key.data(), key.size()), kTemporarySuffix);
  const int file =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
           S_IRUSR | S_IWUSR);
  if (file < 0) return;
  const bool written = WriteAll(file, bytes);
  if (close(file) != 0 || !written ||
      rename(temporary.c_str(), FileOf(key).c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  Evict();
}

void CacheFolder::Evict() const {
  struct File {
    std::string path;
    timespec used;
    uint64_t bytes;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(path_, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    const bool temporary = absl::EndsWith(path, kTemporarySuffix);
    struct stat status {};
    if ((!temporary && !absl::EndsWith(path, suffix_)) ||
        lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    if (temporary) {
      if (time(nullptr) - status.st_mtime > kTemporarySeconds) {
        unlink(path.c_str());
      }
      continue;
    }
    files.push_back(
        {path, status.st_mtim, static_cast<uint64_t>(status.st_size)});
    total += files.back().bytes;
  }
  if (total <= max_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.path) <
           std::tie(b.used.tv_sec, b.used.tv_nsec, b.path);
  });
  for (const File& file : files) {
    if (total <= max_bytes_) break;
    unlink(file.path.c_str());
    total -= file.bytes;
  }
}

}  // namespace heddle::cubin
