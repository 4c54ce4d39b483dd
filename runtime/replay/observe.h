// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_OBSERVE_H_
#define HEDDLE_RUNTIME_REPLAY_OBSERVE_H_

// What the operations of a step write, measured on a device, against what is
// predicted of them (FindAccesses).
//
// Every operation runs by itself, in the recorded order, on the memory that it
// really starts from, twice: with the bytes that it may write and does not read
// inverted, and with all as it is. Of a byte that may be inverted, that it is
// written shows even where the value is the old one: it cannot be the old one
// of both runs. Of other bytes (updated in place, or not in the prediction) a
// write shows if the value changes.
//
// The two runs see the same inputs if the prediction of what is read is right.
// Where they write different values, and repeating the second changes nothing,
// the operation reads more than is predicted.
//
// Not seen: writes beside all recorded allocations, of old values outside the
// prediction (unless everything is inverted), and of other inputs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/access/extents.h"
#include "runtime/replay/program_access.h"
#include "runtime/replay/session.h"

namespace heddle::replay {

enum class Watch {
  kChanged,    // what the step changes, in blocks, and is predicted to write
  kPredicted,  // what the step is predicted to write
  kAll,        // all memory of the trace; needs as much of the host's
};

struct ObserveOptions {
  Watch watch = Watch::kChanged;
  // Invert all watched memory that an operation is not predicted to read, not
  // only what it is predicted to write. Finds more, at the cost of sending all
  // of that to the device for every operation; a kernel that does read some of
  // it as a pointer may fault, which ends the session.
  bool invert_all = false;
  // Observe the first so many operations of the step; 0: all of them.
  uint64_t limit = 0;
};

// From good to bad.
enum class Match {
  kWithin,   // writes nothing that is not predicted
  kUnknown,  // nothing is predicted: the observed set is all that is known
  kReads,    // its results depend on bytes that it is not predicted to read
  kOutside,  // writes bytes that it is not predicted to write
};
const char* MatchName(Match match);  // "within"

// One operation that did something.
struct Observation {
  uint32_t operation = 0;  // index in the step
  Match match = Match::kWithin;
  ExtentSet written;  // observed
  ExtentSet outside;  // of those, what is not predicted; kOutside
  // Written bytes whose value depends on what was inverted; kReads.
  ExtentSet dependent;
  uint64_t predicted_bytes = 0;  // 0 if unknown
  uint64_t inverted_bytes = 0;
  // Every written byte in watched memory that is not among the predicted reads
  // is in `written`, also those that were given their old value.
  bool complete = false;
  // It does not do the same twice: nothing is said about what it reads.
  bool unrepeatable = false;
};

struct StepObservation {
  std::vector<Observation>
      operations;  // in order; without those that do nothing
  ExtentSet watched;
  uint64_t image_bytes = 0;  // that could be watched
  // Memory outside `watched` that was written nevertheless, and the operations
  // that seem to have been the last to do so (-1: not found), by extent.
  std::vector<Extent> unwatched;
  std::vector<int64_t> unwatched_writers;

  // Nothing contradicts the prediction.
  bool confirmed() const;
};

// `predicted` is what FindAccesses says of the session's program. Loads input
// 1; leaves the session there. Errors: the driver's; one in an operation names
// it (after a fault the context is lost).
//
// Cost for each operation: watched bytes once from the device, what it writes
// once to it and twice from it; on the host a copy of what is watched.
absl::StatusOr<StepObservation> Observe(Session& session,
                                        const StepAccess& predicted,
                                        const ObserveOptions& options);

// What both say together; never less than either. Bytes that are written and
// not predicted become accesses of their own, of provenance observed. An
// operation that reads more than is predicted reads anything.
//
// `use_observed`: an operation of which nothing is known writes what was
// observed, if the observation is complete. That is no proof: with other inputs
// it may write elsewhere. Reads are never taken from an observation.
StepAccess Combine(StepAccess predicted, const StepObservation& observed,
                   bool use_observed);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_OBSERVE_H_
