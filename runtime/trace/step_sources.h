// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_STEP_SOURCES_H_
#define HEDDLE_RUNTIME_TRACE_STEP_SOURCES_H_

// Where steps come from, one function for each. Private to
// runtime/trace/steps.h, which says what they mean and chooses among them.

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/trace.h"
#include "runtime/trace/operations.h"
#include "runtime/trace/steps.h"

namespace heddle::trace {

// The device work of a trace with sums over it.
class Work {
 public:
  explicit Work(const Reader& reader);

  const Reader& reader() const { return reader_; }
  const std::vector<Operation>& operations() const { return operations_; }
  uint64_t total_kernels() const { return kernels_.back(); }

  // Index of the first operation whose record is `record` or later.
  uint64_t OperationAt(uint64_t record) const;
  // Kernels of the operations [begin, end).
  uint64_t Kernels(uint64_t begin, uint64_t end) const {
    return kernels_[end] - kernels_[begin];
  }
  // A step of those records. `by_kind`: its signature leaves shapes out.
  Step MakeStep(uint64_t first_record, uint64_t end_record, std::string source,
                bool by_kind) const;

 private:
  const Reader& reader_;
  std::vector<Operation> operations_;
  std::vector<uint64_t> kernels_;  // of the first i operations
};

// Each returns an empty list when its source has nothing.

// Pairs of Step marks.
std::vector<Step> RecordedSteps(const Work& work);

// Ranges of `name`; of the name that fits best if it is "". With `strict` only
// a name whose ranges hold nearly all work between the first and the last.
std::vector<Step> NvtxSteps(const Work& work, const std::string& name,
                            bool strict);

// Launches of the graph that runs most kernels. With `strict` only if that is
// most of all kernels, and at least two launches.
std::vector<Step> GraphSteps(const Work& work, bool strict);

// The repeating unit; see FindRepeatedUnit.
std::vector<Step> RepeatedSteps(const Work& work, uint64_t period,
                                bool* by_kind);

// Fills in Step::snapshot_record.
void AttachSnapshots(const Work& work, std::vector<Step>* steps);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_STEP_SOURCES_H_
