// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_CACHE_FOLDER_H_
#define HEDDLE_RUNTIME_CUBIN_CACHE_FOLDER_H_

// Files on disk that save work to programs that start again.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace heddle::cubin {

// A folder of files by key. Several processes and threads may use it at the
// same time: files are written apart and renamed. Nothing here fails: what
// cannot be read counts as missing, what cannot be written is not kept. What a
// file holds is checked by whoever reads it.
class CacheFolder {
 public:
  static constexpr uint64_t kDefaultBytes = uint64_t{1} << 30;

  // $HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else ~/.cache/heddle; empty
  // if none of the variables is set.
  static std::string DefaultPath();

  // Creates `path` if there is none (only for this user). Holds at most about
  // `max_bytes` of files with `suffix`, the least recently used go first.
  // nullptr: the folder cannot be written, or anyone else could put files
  // there.
  static std::unique_ptr<CacheFolder> Open(const std::string& path,
                                           std::string suffix,
                                           uint64_t max_bytes = kDefaultBytes);

  std::optional<std::vector<uint8_t>> Load(absl::string_view key) const;
  // That the file was of use: it goes later.
  void Touch(absl::string_view key) const;
  void Store(absl::string_view key, absl::Span<const uint8_t> bytes) const;

  const std::string& path() const { return path_; }

 private:
  CacheFolder(std::string path, std::string suffix, uint64_t max_bytes)
      : path_(std::move(path)),
        suffix_(std::move(suffix)),
        max_bytes_(max_bytes) {}
  std::string FileOf(absl::string_view key) const;
  void Evict() const;

  const std::string path_;
  const std::string suffix_;
  const uint64_t max_bytes_;
};

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_CACHE_FOLDER_H_
