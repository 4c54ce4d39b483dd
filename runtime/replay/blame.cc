// SPDX-License-Identifier: Apache-2.0
//
// Which operation is it? Runs the step one operation at a time.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/replay/verifier.h"

namespace heddle::replay {
namespace {

// Runs of one kernel on the same memory. Rare differences (an atomic sum that
// mostly comes out the same) need several.
constexpr int kRepeats = 4;
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kNeighbours = 16;

}  // namespace

absl::StatusOr<std::vector<UnrepeatableKernel>> FindUnrepeatableKernels(
    Session& session, const ExtentSet& watched) {
  std::vector<UnrepeatableKernel> found;
  if (absl::Status s = session.Reset(); !s.ok()) return s;
  absl::StatusOr<std::unique_ptr<Checkpoint>> before =
      session.NewCheckpoint(watched);
  if (!before.ok()) return before.status();
  absl::StatusOr<std::unique_ptr<Checkpoint>> after =
      session.NewCheckpoint(watched);
  if (!after.ok()) return after.status();
  const std::vector<Operation>& operations = session.bound().step().operations;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (i % 100 == 0) {
      session.Report(absl::StrCat("looking for kernels that do not repeat: ", i,
                                  " of ", operations.size()));
    }
    if (operations[i].launch() == nullptr) {
      if (absl::Status s = session.RunOperations(i, i + 1); !s.ok()) return s;
      continue;
    }
    if (absl::Status s = (*before)->Save(); !s.ok()) return s;
    if (absl::Status s = session.RunOperations(i, i + 1); !s.ok()) return s;
    absl::StatusOr<ExtentSet> wrote = (*before)->Changed();
    if (!wrote.ok()) return wrote.status();
    const ExtentSet blocks = wrote->Rounded(kBlock);
    if (absl::Status s = (*after)->Save(); !s.ok()) return s;
    ExtentSet differs;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      if (absl::Status s = (*before)->Restore(); !s.ok()) return s;
      if (absl::Status s = session.RunOperations(i, i + 1); !s.ok()) return s;
      // The first time everywhere: it may write elsewhere.
      absl::StatusOr<ExtentSet> differs_now =
          repeat == 0 ? (*after)->Changed() : (*after)->Changed(blocks);
      if (!differs_now.ok()) return differs_now.status();
      differs.Add(*differs_now);
    }
    if (differs.empty()) continue;
    // Go on from one of the results, whichever.
    if (absl::Status s = (*after)->Restore(); !s.ok()) return s;
    const std::string& name = operations[i].label;
    auto it = std::find_if(found.begin(), found.end(), [&](const auto& kernel) {
      return kernel.name == name;
    });
    if (it == found.end()) {
      found.push_back({name, 0, operations[i].record, 0});
      it = std::prev(found.end());
    }
    ++it->launches;
    it->bytes += differs.bytes();
  }
  return found;
}

absl::StatusOr<std::vector<int64_t>> FindLastWriters(
    Session& session, const std::vector<Extent>& places) {
  std::vector<int64_t> writers(places.size(), -1);
  if (places.empty()) return writers;
  if (absl::Status s = session.Reset(); !s.ok()) return s;
  std::vector<ExtentSet> watched;  // by place
  for (const Extent& place : places) {
    watched.push_back(ExtentSet({place}).Rounded(kNeighbours));
  }
  ExtentSet all;
  for (const ExtentSet& place : watched) all.Add(place);
  absl::StatusOr<std::unique_ptr<Checkpoint>> watch =
      session.NewCheckpoint(all.Intersect(session.image().extents()));
  if (!watch.ok()) return watch.status();
  if (absl::Status s = (*watch)->Save(); !s.ok()) return s;
  const size_t count = session.bound().step().operations.size();
  for (size_t i = 0; i < count; ++i) {
    if (absl::Status s = session.RunOperations(i, i + 1); !s.ok()) return s;
    absl::StatusOr<ExtentSet> changed = (*watch)->Changed();
    if (!changed.ok()) return changed.status();
    if (changed->empty()) continue;
    for (size_t p = 0; p < places.size(); ++p) {
      if (!changed->Intersect(watched[p]).empty()) {
        writers[p] = static_cast<int64_t>(i);
      }
    }
    if (absl::Status s = (*watch)->Save(); !s.ok()) return s;
  }
  return writers;
}

}  // namespace heddle::replay
