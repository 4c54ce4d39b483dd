// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_CALL_SET_H_
#define HEDDLE_TOOLS_CALL_SET_H_

// Which records a verb works on: the --calls selector that all verbs share.
//
//   set   := item { "," item }
//   item  := ( range | "step" range ) [ "/" stride ]
//   range := N | N "-" M | N "-" | "*"
//
// A range counts records from 0 as `heddle dump` prints them, both ends
// included; "step" counts steps as `heddle info` lists them and stands for all
// records of those. A stride takes every stride-th of a range: of the records,
// or of the steps. N with a stride goes on to the end, as N "-" does.
//   100-120,200/2    step3    step0-9/3    */1000

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/trace/steps.h"

namespace heddle::tools {

// What --calls means, for the help of a verb.
inline constexpr char kCallSetHelp[] =
    "A call set selects records by their numbers: 7, 100-120, 200- (to the "
    "end),\n100-200/5 (every fifth), */100, step3 (all records of a step, see "
    "`heddle info`),\nstep0-9/3, or several of these with commas between "
    "them.\n";

class CallSet {
 public:
  using FindStepsFn = std::function<absl::StatusOr<trace::StepList>()>;

  // `find_steps` is called at most once, and only if `text` names steps.
  // Errors: InvalidArgument with the item that is wrong; whatever `find_steps`
  // returns; OutOfRange for a step that the trace does not have.
  static absl::StatusOr<CallSet> Parse(const std::string& text,
                                       const FindStepsFn& find_steps);
  // Every record.
  static CallSet All();

  bool Contains(uint64_t record) const;
  // No record after this one is in the set.
  uint64_t last() const { return last_; }

 private:
  static constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
  struct Range {
    uint64_t first = 0;
    uint64_t last = kEnd;  // included
    uint64_t stride = 1;
  };
  struct Item {
    bool steps = false;
    Range range;
  };
  static absl::StatusOr<Item> ParseItem(const std::string& text);
  void Add(const Range& range);

  std::vector<Range> ranges_;
  uint64_t last_ = 0;
};

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_CALL_SET_H_
