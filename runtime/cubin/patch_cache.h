// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_PATCH_CACHE_H_
#define HEDDLE_RUNTIME_CUBIN_PATCH_CACHE_H_

// Patched images on disk, so that a program that starts again does not patch
// again. The entries are their vendors' code: they stay in the user's folder.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/cubin/cache_folder.h"
#include "runtime/cubin/patch.h"

namespace heddle::cubin {

// A folder of files, one for each patched image. Several processes and threads
// may use it at the same time: entries are written apart and renamed, and one
// that is damaged counts as missing. Nothing here fails: what cannot be read
// is patched anew, what cannot be written is not kept.
class PatchCache {
 public:
  // CacheFolder::DefaultPath.
  static std::string DefaultFolder();

  // nullptr as CacheFolder::Open.
  static std::unique_ptr<PatchCache> Open(
      const std::string& folder,
      uint64_t max_bytes = CacheFolder::kDefaultBytes);

  // What an image and options lead to under this version of the patcher. Also
  // the name of the file.
  static std::string Key(absl::Span<const uint8_t> cubin,
                         const PatchOptions& options);

  std::optional<PatchedImage> Load(absl::string_view key) const;
  void Store(absl::string_view key, const PatchedImage& image) const;

  const std::string& folder() const { return files_->path(); }

 private:
  explicit PatchCache(std::unique_ptr<CacheFolder> files)
      : files_(std::move(files)) {}

  const std::unique_ptr<CacheFolder> files_;
};

// PatchCubin by way of `cache`, which may be nullptr. Errors are not kept.
absl::StatusOr<PatchedImage> PatchCubinCached(absl::Span<const uint8_t> cubin,
                                              const PatchOptions& options,
                                              PatchCache* cache);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_PATCH_CACHE_H_
