// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_ANALYSIS_BOOK_H_
#define HEDDLE_RUNTIME_ACCESS_ANALYSIS_BOOK_H_

// The machine code of many images, each kernel analysed once for every shape of
// its parameters. Not thread safe.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/access/code_image.h"
#include "runtime/access/footprint_cache.h"
#include "runtime/access/launch_access.h"

namespace heddle::access {

// Where an image's machine code comes from.
struct ImageSource {
  // The same for the same code, and no other: also the name under which results
  // are kept (cubin::CacheFolder), so no path.
  std::string key;
  std::string origin;  // for people: the library it came with; may be empty
  // An uncompressed cubin. Called at most once a key, and not where all results
  // are known.
  std::function<absl::StatusOr<std::vector<uint8_t>>()> read;
};

// A launch of a kernel of an image.
struct KernelLaunch {
  absl::string_view kernel;  // mangled
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  // The parameter block: each parameter at its offset, from offset 0 on.
  absl::Span<const uint8_t> params;
  bool cooperative = false;  // by the call, or by an attribute of it
};

class AnalysisBook {
 public:
  // `folder` (may be nullptr, else outlives the object) keeps results.
  explicit AnalysisBook(const cubin::CacheFolder* folder) : folder_(folder) {}

  // Never fails: what cannot be analysed is unknown, with the reason.
  AccessSet AccessOf(const ImageSource& image, const KernelLaunch& launch,
                     const MemoryView& memory);

  // Launches that were answered from an earlier analysis, of this run or of one
  // before.
  uint64_t reused() const { return reused_; }
  // Images whose code could not be had, one line each.
  const std::vector<std::string>& notes() const { return notes_; }
  // Writes results to the folder now, not only at the end.
  void Save();

 private:
  struct Image {
    std::unique_ptr<CodeImage> code;
    std::unique_ptr<FootprintCache> known;
    std::string why;  // there is no code
  };
  Image& Open(const ImageSource& source);
  const CodeImage* CodeOf(const ImageSource& source, Image* image);

  const cubin::CacheFolder* const folder_;
  absl::flat_hash_map<std::string, std::unique_ptr<Image>> images_;  // by key
  uint64_t reused_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_ANALYSIS_BOOK_H_
