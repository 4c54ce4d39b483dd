// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_TRIM_H_
#define HEDDLE_TOOLS_TRIM_H_

// Which records of a trace are needed to run a part of it: `heddle trim`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/trace.h"

namespace heddle::tools {

struct TrimRequest {
  // The part: records [first, end), of which `contains` are wanted.
  uint64_t first_record = 0;
  uint64_t end_record = 0;
  std::function<bool(uint64_t record)> contains;
  bool images = true;
  bool memory = true;
  // Keep the work between the memory snapshot (or the trace's begin) and the
  // part, without which memory is not what the part found.
  bool prefix = true;
};

struct TrimPlan {
  std::vector<bool> keep;  // by record
  // The snapshot that the part starts from.
  std::optional<uint64_t> snapshot_record;
  uint64_t operations = 0;         // pieces of work that were asked for
  uint64_t prefix_operations = 0;  // and those that come before
};

// What a part needs: the work itself; allocations, streams and events that are
// live; kernels that it launches, by itself or by graphs, with their modules,
// images and attributes; graphs that it launches, with their instances; tensor
// maps found in its parameters; its snapshot, and the contents that any of
// those name.
TrimPlan PlanTrim(const trace::Reader& reader, const TrimRequest& request);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_TRIM_H_
