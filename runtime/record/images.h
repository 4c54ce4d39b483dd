// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_IMAGES_H_
#define HEDDLE_RUNTIME_RECORD_IMAGES_H_

// Device code that the program loaded, kept by content from the load call on
// and written to the trace when a kernel of it is first used: a framework loads
// hundreds of images and uses a few.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "heddle/trace.h"

namespace heddle::record {

class Recorder;

class ImageTable {
 public:
  // The program loaded `code` (as given to cuModuleLoadData or
  // cuLibraryLoadData) into `handle`. Bytes that lie in a mapped library stay
  // there until needed; others are copied now, because the program may free
  // them.
  void LoadedFromMemory(Recorder& recorder, uint64_t handle, bool library,
                        const void* code, const char* api);
  void LoadedFromFile(Recorder& recorder, uint64_t handle, bool library,
                      const char* path, const char* api);
  void Unloaded(Recorder& recorder, uint64_t handle);
  // The module `module` belongs to `library` (cuLibraryGetModule).
  void Alias(uint64_t module, uint64_t library);

  // The handle under which the program loaded what `module` is part of: itself,
  // or a library (whose modules the driver makes by itself).
  uint64_t ContainerOf(Recorder& recorder, CUmodule module);

  // Writes the module (and its image) unless done; its id, 0 if unknown.
  uint32_t EnsureWritten(Recorder& recorder, uint64_t handle);

 private:
  struct Pending {
    uint32_t id = 0;
    bool library = false;
    bool written = false;
    std::string api;
    std::string origin;  // path
    fb::ImageKind kind = fb::ImageKind::kUnknown;
    const uint8_t* data = nullptr;  // in a mapped library, or owned.data()
    size_t size = 0;
    std::vector<uint8_t> owned;
    std::unique_ptr<fb::Stamp> stamp;
  };

  void Loaded(Recorder& recorder, uint64_t handle, std::unique_ptr<Pending>);
  uint32_t WriteImage(Recorder& recorder, Pending& pending);

  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Pending>> modules_;
  absl::flat_hash_map<uint64_t, uint64_t> aliases_;
  absl::flat_hash_map<trace::Hash128, uint32_t> images_;
  uint32_t next_module_id_ = 1;
};

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_IMAGES_H_
