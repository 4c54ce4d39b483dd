// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_LIVE_ACCESS_H_
#define HEDDLE_RUNTIME_LIVE_LIVE_ACCESS_H_

// Which bytes the nodes of the program's graphs touch, by the memory that it
// has now and the code that it has loaded. Thread safe.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "runtime/access/analysis_book.h"
#include "runtime/access/extents.h"
#include "runtime/access/tensor_maps.h"
#include "runtime/cubin/cache_folder.h"
#include "runtime/device/driver.h"
#include "runtime/live/loaded_code.h"
#include "runtime/plan/dependencies.h"
#include "runtime/record/memory_map.h"
#include "runtime/rewrite/graph_model.h"

namespace heddle::live {

// What was found out about a graph. It holds as long as the parameters of the
// graph's nodes do, and the allocations `rests_on`.
struct GraphEffects {
  std::vector<plan::Effects> nodes;      // by index of the model
  std::vector<access::Extent> rests_on;  // sorted
  uint32_t unknown = 0;                  // nodes that may touch anything
  std::string why;     // of one of them; empty if there are none
  double seconds = 0;  // that it took
};

class LiveAccess {
 public:
  // All outlive the object.
  LiveAccess(const device::Driver& driver, LoadedCode* code,
             const record::MemoryMap* memory)
      : driver_(driver), code_(*code), memory_(*memory) {}

  void AddTensorMap(absl::Span<const uint8_t> map,
                    access::TensorMaps::Shape shape);
  void ReplaceTensorMap(absl::Span<const uint8_t> before,
                        absl::Span<const uint8_t> map, uint64_t address);

  // The program mapped the physical memory `handle` at `address`.
  void Mapped(uint64_t address, CUmemGenericAllocationHandle handle);

  // The context that the graph runs in is current.
  GraphEffects Find(const rewrite::GraphModel& model);

 private:
  // Whether two of the allocations are the same bytes.
  bool IsMappedTwice(const std::vector<access::Extent>& allocations);

  const device::Driver& driver_;
  LoadedCode& code_;
  const record::MemoryMap& memory_;
  std::mutex maps_mutex_;
  access::TensorMaps maps_;
  std::mutex mapped_mutex_;
  // By address, of mappings that may be gone again.
  absl::flat_hash_map<uint64_t, CUmemGenericAllocationHandle> mapped_;
  std::mutex book_mutex_;  // guards all below
  std::unique_ptr<cubin::CacheFolder> folder_;
  std::unique_ptr<access::AnalysisBook> book_;
};

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_LIVE_ACCESS_H_
