// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_OPERATIONS_H_
#define HEDDLE_RUNTIME_TRACE_OPERATIONS_H_

// The device work of a trace as a flat sequence, for everything that compares
// sequences: step detection, `heddle diff`.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "heddle/trace.h"

namespace heddle::trace {

// One piece of device work that was run and succeeded.
struct Operation {
  uint64_t record = 0;  // index in Reader::records()
  // Hash of what it is: kernel (name and image), grid, block, shared memory;
  // kind and extent of a copy or fill; structure of a graph. No addresses, no
  // streams, no parameters, so the same in every run of a program.
  uint64_t shape = 0;
  // The same without grids, blocks and extents.
  uint64_t kind = 0;
  uint64_t time_ns = 0;
  uint32_t kernels = 0;  // launches: 1; graph launches: their kernel nodes
  // The host has waited for the device, or for a copy to it, since the
  // operation before this one (on any thread).
  bool after_wait = false;
  bool to_host = false;  // a copy from the device to the host
};

// Identity of a kernel that is the same in every run: its name and image.
class KernelIdentities {
 public:
  explicit KernelIdentities(const Reader& reader);
  uint64_t Of(uint32_t kernel_id) const;

 private:
  absl::flat_hash_map<uint32_t, uint64_t> identities_;
};

// Mixes `value` into the hash `state`; the order of calls matters.
uint64_t MixHash(uint64_t state, uint64_t value);

// All operations in file order. Work that was only captured into a graph is
// left out: it runs, and counts, when the graph is launched.
std::vector<Operation> ListOperations(const Reader& reader);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_OPERATIONS_H_
