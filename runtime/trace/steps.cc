// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/steps.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/trace/step_sources.h"

namespace heddle::trace {
namespace {

// Kernels of the middle step, by size.
uint64_t MedianLaunches(const std::vector<Step>& steps) {
  if (steps.empty()) return 0;
  std::vector<uint64_t> launches;
  launches.reserve(steps.size());
  for (const Step& step : steps) launches.push_back(step.launches);
  const auto middle =
      launches.begin() + static_cast<int64_t>(launches.size() / 2);
  std::nth_element(launches.begin(), middle, launches.end());
  return *middle;
}

std::vector<Step> Choose(const Work& work, bool* shapes_vary) {
  std::vector<Step> recorded = RecordedSteps(work);
  std::vector<Step> steps = GraphSteps(work, /*strict=*/true);
  if (steps.empty()) steps = NvtxSteps(work, "", /*strict=*/true);
  if (steps.empty()) steps = RepeatedSteps(work, 0, shapes_vary);
  // A trace of one step alone repeats in its layers only: the recorder, which
  // saw the whole program, knew better.
  const bool too_small =
      MedianLaunches(steps) * 3 < MedianLaunches(recorded) * 2;
  if (steps.empty() || too_small) {
    *shapes_vary = false;
    return recorded;
  }
  return steps;
}

void SetSignature(StepList* list) {
  absl::flat_hash_map<uint64_t, uint64_t> counts;
  for (const Step& step : list->steps) {
    const uint64_t count = ++counts[step.signature];
    std::tie(list->matching, list->signature) =
        std::max(std::tuple(list->matching, list->signature),
                 std::tuple(count, step.signature));
  }
}

}  // namespace

absl::StatusOr<StepList> FindSteps(const Reader& reader,
                                   const StepOptions& options) {
  const std::string by = options.by.substr(0, options.by.find(':'));
  const bool has_argument = by.size() < options.by.size();
  const std::string argument =
      has_argument ? options.by.substr(by.size() + 1) : "";
  uint64_t period = 0;
  const bool takes_argument = by == "nvtx" || by == "repeat";
  const bool known =
      takes_argument || by == "auto" || by == "recorded" || by == "graph";
  if (!known || (has_argument && (!takes_argument || argument.empty()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot find steps by \"", options.by,
        "\": expected auto, recorded, graph, nvtx, nvtx:NAME, repeat or "
        "repeat:N"));
  }
  if (by == "repeat" && has_argument &&
      (!absl::SimpleAtoi(argument, &period) || period == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot find steps by \"", options.by,
                     "\": N is the number of operations in a step, 1 or more"));
  }

  const Work work(reader);
  StepList list;
  if (by == "recorded") {
    list.steps = RecordedSteps(work);
  } else if (by == "nvtx") {
    list.steps = NvtxSteps(work, argument, /*strict=*/false);
  } else if (by == "graph") {
    list.steps = GraphSteps(work, /*strict=*/false);
  } else if (by == "repeat") {
    list.steps = RepeatedSteps(work, period, &list.shapes_vary);
  } else {
    list.steps = Choose(work, &list.shapes_vary);
  }
  AttachSnapshots(work, &list.steps);
  SetSignature(&list);
  if (!list.steps.empty()) list.source = list.steps.front().source;
  return list;
}

}  // namespace heddle::trace
