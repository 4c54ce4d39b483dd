// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/critical_path.h"

#include <algorithm>

namespace heddle::plan {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

struct EarliestTimes {
  std::vector<double> start;
  std::vector<double> end;
  std::vector<uint32_t> last_before;  // which operation it has to wait for
};

EarliestTimes FindTimes(absl::Span<const double> durations, EdgePairs edges) {
  EarliestTimes times;
  times.start.resize(durations.size());
  times.end.resize(durations.size());
  times.last_before.resize(durations.size(), kNone);
  size_t edge = 0;
  for (uint32_t op = 0; op < durations.size(); ++op) {
    for (; edge < edges.size() && edges[edge].second == op; ++edge) {
      const uint32_t from = edges[edge].first;
      if (times.last_before[op] != kNone &&
          times.end[from] <= times.start[op]) {
        continue;
      }
      times.start[op] = times.end[from];
      times.last_before[op] = from;
    }
    times.end[op] = times.start[op] + durations[op];
  }
  return times;
}

}  // namespace

CriticalPath FindCriticalPath(absl::Span<const double> durations,
                              EdgePairs edges) {
  CriticalPath path;
  if (durations.empty()) return path;
  const EarliestTimes times = FindTimes(durations, edges);
  const auto last = std::max_element(times.end.begin(), times.end.end());
  path.length = *last;
  for (auto op = static_cast<uint32_t>(last - times.end.begin()); op != kNone;
       op = times.last_before[op]) {
    path.operations.push_back(op);
  }
  std::reverse(path.operations.begin(), path.operations.end());
  return path;
}

ParallelismProfile ProfileParallelism(absl::Span<const double> durations,
                                      EdgePairs edges) {
  ParallelismProfile profile;
  const EarliestTimes times = FindTimes(durations, edges);
  // Ends sort before starts of the same time.
  std::vector<std::pair<double, int>> events;
  for (size_t op = 0; op < durations.size(); ++op) {
    profile.sum += durations[op];
    profile.length = std::max(profile.length, times.end[op]);
    if (durations[op] == 0) continue;
    events.emplace_back(times.start[op], 1);
    events.emplace_back(times.end[op], -1);
  }
  std::sort(events.begin(), events.end());
  profile.time_with.resize(1);
  int running = 0;
  double since = 0;
  for (const auto& [time, change] : events) {
    if (running >= static_cast<int>(profile.time_with.size())) {
      profile.time_with.resize(running + 1);
    }
    profile.time_with[running] += time - since;
    since = time;
    running += change;
  }
  return profile;
}

}  // namespace heddle::plan
