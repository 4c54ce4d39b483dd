// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_FOOTPRINT_CACHE_H_
#define HEDDLE_RUNTIME_ACCESS_FOOTPRINT_CACHE_H_

// Results of AnalyzeKernel, in memory and on disk: a kernel is analysed once
// for each shape of launch, ever.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/access/kernel_analysis.h"
#include "runtime/cubin/cache_folder.h"

namespace heddle::access {

// What of a launch decides the analysis: kernel, grid, block, parameters
// without the values of pointers but with their alignment.
std::string ShapeKey(absl::string_view kernel, const LaunchValues& launch);

// The results of one image. Not thread safe; two processes that fill the same
// file leave that of the one that was last.
class FootprintCache {
 public:
  // `folder` may be nullptr, which keeps results in memory alone; else it
  // outlives the object. `image`: its hash, in hex. Reads the image's file; one
  // that is damaged, or from another version of the analysis, counts as none.
  FootprintCache(const cubin::CacheFolder* folder, std::string image);
  ~FootprintCache();  // saves
  FootprintCache(const FootprintCache&) = delete;
  FootprintCache& operator=(const FootprintCache&) = delete;

  // nullptr if it is not there. Lives as long as the object.
  const KernelFootprint* Find(const std::string& key) const;
  const KernelFootprint& Add(const std::string& key, KernelFootprint footprint);

  // Writes what was added, if anything was.
  void Save();

 private:
  void Read(absl::Span<const uint8_t> bytes);

  const cubin::CacheFolder* const folder_;
  const std::string image_;
  absl::flat_hash_map<std::string, std::unique_ptr<KernelFootprint>> entries_;
  bool changed_ = false;
};

// Of the code that made the results; part of every file.
absl::string_view AnalysisVersion();

// The folder for these files under cubin::CacheFolder::DefaultPath; nullptr if
// there is none.
std::unique_ptr<cubin::CacheFolder> OpenFootprintFolder(
    const std::string& path);

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_FOOTPRINT_CACHE_H_
