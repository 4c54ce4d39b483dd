// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/timing.h"

#include <algorithm>
#include <cmath>

namespace heddle::replay {
namespace {

// A pair of events for the life of the object.
class Stopwatch {
 public:
  explicit Stopwatch(const device::Driver& driver) : driver_(driver) {}
  ~Stopwatch() {
    if (begin_ != nullptr) driver_.EventDestroy(begin_);
    if (end_ != nullptr) driver_.EventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  absl::Status Init() {
    CUresult result = driver_.EventCreate(&begin_, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS) {
      result = driver_.EventCreate(&end_, CU_EVENT_DEFAULT);
    }
    return driver_.Check(result, "cuEventCreate");
  }

  absl::StatusOr<double> Measure(Executor& executor) {
    CUresult result = driver_.EventRecord(begin_, executor.stream());
    if (absl::Status s = driver_.Check(result, "cuEventRecord"); !s.ok()) {
      return s;
    }
    if (absl::Status s = executor.Run(); !s.ok()) return s;
    result = driver_.EventRecord(end_, executor.stream());
    if (result == CUDA_SUCCESS) result = driver_.EventSynchronize(begin_);
    if (result == CUDA_SUCCESS) result = driver_.EventSynchronize(end_);
    float ms = 0;
    if (result == CUDA_SUCCESS) {
      result = driver_.EventElapsedTime(&ms, begin_, end_);
    }
    if (absl::Status s = driver_.Check(result, "timing events"); !s.ok()) {
      return s;
    }
    return ms * 1000.0;
  }

 private:
  const device::Driver& driver_;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
};

// The value at quantile `q` of sorted values, between neighbours linearly.
double Quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] +
         (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// Half the range of the middle half.
double Spread(const std::vector<double>& sorted) {
  return (Quantile(sorted, 0.75) - Quantile(sorted, 0.25)) / 2;
}

}  // namespace

void Summarize(Timing& timing) {
  if (timing.us.empty()) return;
  std::vector<double> sorted = timing.us;
  std::sort(sorted.begin(), sorted.end());
  timing.min_us = sorted.front();
  timing.median_us = Quantile(sorted, 0.5);
  timing.spread_us = Spread(sorted);
}

Speedup CompareTimings(const Timing& baseline, const Timing& other) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(baseline.us.size(), other.us.size()); ++i) {
    if (other.us[i] > 0) ratios.push_back(baseline.us[i] / other.us[i]);
  }
  if (ratios.empty() || other.median_us <= 0) return {};
  std::sort(ratios.begin(), ratios.end());
  return {baseline.median_us / other.median_us, Spread(ratios)};
}

absl::StatusOr<std::vector<Timing>> TimeExecutors(
    Session& session, const std::vector<Executor*>& executors, int warm_up,
    int loop) {
  Stopwatch stopwatch(session.driver());
  if (absl::Status s = stopwatch.Init(); !s.ok()) return s;
  std::vector<Timing> timings(executors.size());
  for (size_t e = 0; e < executors.size(); ++e) {
    timings[e].name = executors[e]->name();
  }
  for (int i = 0; i < warm_up + loop; ++i) {
    for (size_t e = 0; e < executors.size(); ++e) {
      if (absl::Status s = session.ResetWritten(); !s.ok()) return s;
      absl::StatusOr<double> us = stopwatch.Measure(*executors[e]);
      if (!us.ok()) return us.status();
      if (i >= warm_up) timings[e].us.push_back(*us);
    }
  }
  for (Timing& timing : timings) Summarize(timing);
  return timings;
}

}  // namespace heddle::replay
