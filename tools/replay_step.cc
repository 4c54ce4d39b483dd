// SPDX-License-Identifier: Apache-2.0
//
// Which step of a trace `heddle replay` runs.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/replay_run.h"

namespace heddle::tools {

absl::StatusOr<ChosenStep> ChooseStep(const trace::Reader& reader,
                                      int64_t number, const std::string& by) {
  absl::StatusOr<trace::StepList> list =
      trace::FindSteps(reader, trace::StepOptions{.by = by});
  if (!list.ok()) return list.status();
  ChosenStep chosen;
  chosen.total = list->steps.size();
  if (list->steps.empty()) {
    if (number > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.path(),
                       " has no steps: leave out --step to "
                       "replay all of it"));
    }
    chosen.bounds.end_record = reader.records().size();
    chosen.source = "whole trace";
    return chosen;
  }
  if (number >= static_cast<int64_t>(list->steps.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.path(), " has ", list->steps.size(),
                     " steps, numbered from 0: there is no step ", number));
  }
  if (number < 0) {
    // The largest one: a recorder that chooses by itself may also have kept
    // memory at smaller things that the program repeats.
    auto snapshot = list->steps.end();
    for (auto it = list->steps.begin(); it != list->steps.end(); ++it) {
      if (it->snapshot_record != trace::kNoSnapshot &&
          (snapshot == list->steps.end() ||
           it->launches > snapshot->launches)) {
        snapshot = it;
      }
    }
    number = snapshot - list->steps.begin();
    if (snapshot == list->steps.end()) {
      // The first one that a snapshot leads up to.
      number = 0;
      for (const trace::Record& record : reader.records()) {
        if (record.type != fb::RecordType::kSnapshot) continue;
        const auto after =
            std::find_if(list->steps.begin(), list->steps.end(),
                         [&](const trace::Step& step) {
                           return step.first_record > record.index;
                         });
        if (after != list->steps.end()) {
          number = after - list->steps.begin();
        }
        break;
      }
    }
  }
  const trace::Step& step = list->steps[static_cast<size_t>(number)];
  chosen.index = number;
  chosen.source = step.source;
  chosen.bounds.first_record = step.first_record;
  chosen.bounds.end_record = step.end_record;
  if (step.snapshot_record != trace::kNoSnapshot) {
    chosen.bounds.snapshot_record = step.snapshot_record;
  }
  return chosen;
}

}  // namespace heddle::tools
