// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_STEPS_H_
#define HEDDLE_RUNTIME_TRACE_STEPS_H_

// Steps: the repeating unit of a program (a decode step, a training iteration,
// one inference), found in its trace. See FindSteps.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"

namespace heddle::trace {

inline constexpr uint64_t kNoSnapshot = ~uint64_t{0};

struct Step {
  // Half-open range of indices into Reader::records(). Steps that were found
  // by graph launches or by repetition begin and end with a record of device
  // work; the others with their marks.
  uint64_t first_record = 0;
  uint64_t end_record = 0;
  // "recorded", "nvtx:<name>", "graph" or "repeat".
  std::string source;
  // Index of the Snapshot record whose memory is what the step starts from: no
  // device work lies between the two. kNoSnapshot if there is none.
  uint64_t snapshot_record = kNoSnapshot;
  // Kernels that the step runs: launches, and kernel nodes of the graphs that
  // it launches.
  uint64_t launches = 0;
  // Hash of what runs (kernels, shapes, copies; no parameters, no addresses).
  // Steps with the same signature can be compared launch by launch.
  uint64_t signature = 0;
};

struct StepList {
  std::vector<Step> steps;  // in order, not overlapping
  // How they were found, as Step::source; "" when there are none.
  std::string source;
  // The most frequent signature and how many steps have it.
  uint64_t signature = 0;
  uint64_t matching = 0;
  // True if the unit only repeats when grids, blocks and sizes are ignored,
  // e.g. because a cache grows with every step.
  bool shapes_vary = false;
};

struct StepOptions {
  // auto           graph, nvtx or repeat, whichever fits; else recorded
  // recorded       the recorder's own marks
  // nvtx[:NAME]    NVTX ranges of that name, or of the name that fits best
  // graph          launches of the graph that does most of the work
  // repeat[:N]     the repeating unit of the launch sequence; with N the one
  //                that has N operations (launches, copies, fills)
  std::string by = "auto";
};

// Finds the steps of a trace. An empty list is no error. Takes O(n log n) for n
// operations. Errors: InvalidArgument (unknown `by`).
//
// What counts is device work that was run and succeeded: kernel launches,
// copies, fills and graph launches, in file order; what was captured into a
// graph counts when the graph is launched. `auto` takes, in this order: the
// launches of one graph if they are most of the work; NVTX ranges of one name
// if they account for nearly all work between the first and the last; the
// repetition of the launch sequence that covers most work; the recorder's
// marks. The recorder's marks win where they enclose more than the unit found.
absl::StatusOr<StepList> FindSteps(const Reader& reader,
                                   const StepOptions& options);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_STEPS_H_
