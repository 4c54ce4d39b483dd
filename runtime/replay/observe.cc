// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/observe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/replay/verifier.h"
#include "runtime/replay/watched_memory.h"

namespace heddle::replay {
namespace {

using access::AccessSet;

// Small pieces are moved together with what lies between them.
constexpr uint64_t kBlock = 4096;
// As in the search for kernels that do not repeat: rare differences need
// several runs.
constexpr int kRepeats = 4;
constexpr size_t kMaxUnwatched = 8;

class Observer {
 public:
  Observer(Session& session, WatchedMemory& memory,
           const ObserveOptions& options)
      : session_(session), memory_(memory), options_(options) {}

  absl::StatusOr<Observation> Run(uint32_t index, const AccessSet& predicted);

 private:
  absl::Status RunOnce(uint32_t index, const char* how);
  // Bytes that may be inverted before an operation.
  ExtentSet Invertible(const AccessSet& predicted,
                       const ExtentSet& writes) const;
  // Whether running it again on the same memory changes `after` itself.
  absl::StatusOr<bool> Repeats(uint32_t index, const ExtentSet& touched,
                               const HostBytes& after);
  // Whether both runs wrote the same values, and if not, why.
  absl::Status CompareRuns(uint32_t index, const HostBytes& after_inverted,
                           const ExtentSet& inverted, ExtentSet* touched,
                           Observation* seen);

  Session& session_;
  WatchedMemory& memory_;
  const ObserveOptions& options_;
};

absl::Status Observer::RunOnce(uint32_t index, const char* how) {
  absl::Status status = session_.RunOperations(index, index + 1);
  if (status.ok()) return status;
  const Operation& operation = session_.bound().step().operations[index];
  return absl::Status(
      status.code(),
      absl::StrCat("operation ", index, " of the step (", operation.label,
                   ", record ", operation.record, ") run by itself", how, ": ",
                   status.message()));
}

ExtentSet Observer::Invertible(const AccessSet& predicted,
                               const ExtentSet& writes) const {
  // It may read anything: inverted memory could make it do anything, too.
  if (!predicted.reads_known()) return {};
  const bool all = options_.invert_all || !predicted.writes_known();
  return (all ? memory_.extents() : writes.Intersect(memory_.extents()))
      .Minus(predicted.Reads());
}

absl::StatusOr<bool> Observer::Repeats(uint32_t index, const ExtentSet& touched,
                                       const HostBytes& after) {
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    if (absl::Status s = memory_.PutBack(touched); !s.ok()) return s;
    if (absl::Status s = RunOnce(index, " again"); !s.ok()) return s;
    absl::StatusOr<HostBytes> again = memory_.Read(touched);
    if (!again.ok()) return again.status();
    if (!Differences(*again, after, touched).empty()) return false;
  }
  return true;
}

absl::StatusOr<Observation> Observer::Run(uint32_t index,
                                          const AccessSet& predicted) {
  Observation seen;
  seen.operation = index;
  const ExtentSet writes = predicted.Writes();
  const ExtentSet inverted = Invertible(predicted, writes);
  seen.inverted_bytes = inverted.bytes();
  // The inverted run comes first: then one comparison of everything, after the
  // other one, shows whatever either of them wrote where it should not.
  ExtentSet targets;
  HostBytes after_inverted;
  if (!inverted.empty()) {
    targets = writes;
    targets.Add(inverted);
    targets = predicted.writes_known() ? memory_.Around(targets, kBlock)
                                       : memory_.extents();
    if (absl::Status s = memory_.PutBack(targets, inverted); !s.ok()) return s;
    if (absl::Status s =
            RunOnce(index, ", with what it is not predicted to read inverted");
        !s.ok()) {
      return s;
    }
    absl::StatusOr<HostBytes> after = memory_.Read(targets);
    if (!after.ok()) return after.status();
    after_inverted = *std::move(after);
    seen.written = Differences(after_inverted, memory_.copy(), inverted,
                               /*inverted=*/true);
    if (absl::Status s = memory_.PutBack(targets); !s.ok()) return s;
  }
  if (absl::Status s = RunOnce(index, ""); !s.ok()) return s;
  absl::StatusOr<ExtentSet> changed = memory_.Changed();
  if (!changed.ok()) return changed.status();
  seen.written.Add(*changed);
  if (predicted.writes_known()) {
    seen.predicted_bytes = writes.bytes();
    seen.outside = seen.written.Minus(writes);
    if (!seen.outside.empty()) seen.match = Match::kOutside;
  } else {
    seen.match = Match::kUnknown;
    seen.complete = !inverted.empty();
  }
  ExtentSet touched = targets;
  touched.Add(*changed);
  touched = memory_.Around(touched, kBlock);
  if (!inverted.empty() && seen.match != Match::kOutside) {
    if (absl::Status s =
            CompareRuns(index, after_inverted, inverted, &touched, &seen);
        !s.ok()) {
      return s;
    }
  }
  if (absl::Status s = memory_.Accept(touched); !s.ok()) return s;
  return seen;
}

absl::Status Observer::CompareRuns(uint32_t index,
                                   const HostBytes& after_inverted,
                                   const ExtentSet& inverted,
                                   ExtentSet* touched, Observation* seen) {
  absl::StatusOr<HostBytes> after = memory_.Read(*touched);
  if (!after.ok()) return after.status();
  // What was inverted and not written differs, of course.
  const ExtentSet compared =
      after_inverted.extents().Minus(inverted.Minus(seen->written));
  ExtentSet differs = Differences(after_inverted, *after, compared);
  if (differs.empty()) return absl::OkStatus();
  absl::StatusOr<bool> repeats = Repeats(index, *touched, *after);
  if (!repeats.ok()) return repeats.status();
  seen->unrepeatable = !*repeats;
  seen->complete &= *repeats;
  // The repeats may have written elsewhere.
  absl::StatusOr<ExtentSet> changed = memory_.Changed();
  if (!changed.ok()) return changed.status();
  seen->written.Add(*changed);
  touched->Add(memory_.Around(*changed, kBlock));
  if (*repeats) {
    seen->dependent = std::move(differs);
    seen->match = Match::kReads;
  }
  return absl::OkStatus();
}

ExtentSet WritesOf(const StepAccess& access) {
  ExtentSet all;
  for (const AccessSet& set : access.operations) all.Add(set.Writes());
  return all;
}

absl::StatusOr<ExtentSet> WatchedBytes(Session& session,
                                       const StepAccess& predicted,
                                       Watch watch) {
  const ExtentSet image = session.image().extents();
  if (watch == Watch::kAll) return image;
  ExtentSet watched = WritesOf(predicted);
  if (watch == Watch::kChanged) {
    session.Report("running the step to see which memory it changes");
    if (absl::Status s =
            session.RunOperations(0, session.bound().step().operations.size());
        !s.ok()) {
      return s;
    }
    absl::StatusOr<ExtentSet> changed = session.ChangedSinceStart();
    if (!changed.ok()) return changed.status();
    watched.Add(changed->Rounded(Session::kWrittenBlock));
    if (absl::Status s = session.Reset(); !s.ok()) return s;
  }
  return watched.Intersect(image);
}

// Whether anything changed that was not watched, and who did it.
absl::Status FindUnwatched(Session& session, StepObservation* result) {
  absl::StatusOr<ExtentSet> changed =
      session.start().Changed(session.image().extents().Minus(result->watched));
  if (!changed.ok()) return changed.status();
  if (changed->empty()) return absl::OkStatus();
  result->unwatched = changed->extents();
  std::vector<Extent> places = result->unwatched;
  places.resize(std::min(places.size(), kMaxUnwatched));
  absl::StatusOr<std::vector<int64_t>> writers =
      FindLastWriters(session, places);
  if (!writers.ok()) return writers.status();
  result->unwatched_writers = *std::move(writers);
  result->unwatched_writers.resize(result->unwatched.size(), -1);
  return absl::OkStatus();
}

}  // namespace

const char* MatchName(Match match) {
  switch (match) {
    case Match::kWithin:
      return "within";
    case Match::kUnknown:
      return "unknown";
    case Match::kReads:
      return "reads more";
    case Match::kOutside:
      return "outside";
  }
  return "unknown";
}

bool StepObservation::confirmed() const {
  return unwatched.empty() &&
         std::none_of(operations.begin(), operations.end(),
                      [](const Observation& seen) {
                        return seen.match == Match::kOutside ||
                               seen.match == Match::kReads;
                      });
}

absl::StatusOr<StepObservation> Observe(Session& session,
                                        const StepAccess& predicted,
                                        const ObserveOptions& options) {
  absl::StatusOr<Session::Input> input = session.LoadInput(1);
  if (!input.ok()) return input.status();
  StepObservation result;
  absl::StatusOr<ExtentSet> watched =
      WatchedBytes(session, predicted, options.watch);
  if (!watched.ok()) return watched.status();
  result.watched = *std::move(watched);
  result.image_bytes = session.image().extents().bytes();
  absl::StatusOr<WatchedMemory> memory = WatchedMemory::Create(
      session.image(), session.transfer(), result.watched);
  if (!memory.ok()) return memory.status();
  Observer observer(session, *memory, options);
  const std::vector<Operation>& operations = session.bound().step().operations;
  size_t count = operations.size();
  if (options.limit != 0) count = std::min<size_t>(count, options.limit);
  for (size_t i = 0; i < count; ++i) {
    if (i % 100 == 0) {
      session.Report(absl::StrCat("observing ", i, " of ", count));
    }
    if (operations[i].empty()) continue;
    absl::StatusOr<Observation> seen =
        observer.Run(static_cast<uint32_t>(i), predicted.operations[i]);
    if (!seen.ok()) return seen.status();
    result.operations.push_back(*std::move(seen));
  }
  if (absl::Status s = FindUnwatched(session, &result); !s.ok()) return s;
  if (absl::Status s = session.Reset(); !s.ok()) return s;
  return result;
}

StepAccess Combine(StepAccess predicted, const StepObservation& observed,
                   bool use_observed) {
  for (const Observation& seen : observed.operations) {
    AccessSet& set = predicted.operations[seen.operation];
    ExtentSet more = seen.written.Minus(set.Writes());
    if (!more.empty()) {
      set.accesses.push_back({access::Mode::kWrite,
                              access::Provenance::kObserved, std::move(more),
                              "written when it ran by itself"});
    }
    if (use_observed && seen.complete) set.unknown_writes.clear();
    if (seen.match == Match::kReads && set.reads_known()) {
      set.unknown_reads =
          "its results depend on bytes that it was not predicted to read";
    }
  }
  for (size_t i = 0; i < observed.unwatched.size(); ++i) {
    const ExtentSet more({observed.unwatched[i]});
    // Of a writer that was not found, any operation may be the one.
    for (size_t op = 0; op < predicted.operations.size(); ++op) {
      const int64_t writer = observed.unwatched_writers[i];
      if (writer >= 0 && static_cast<size_t>(writer) != op) continue;
      predicted.operations[op].accesses.push_back(
          {access::Mode::kWrite, access::Provenance::kObserved, more,
           "changed when the step ran one operation at a time"});
    }
  }
  return predicted;
}

}  // namespace heddle::replay
