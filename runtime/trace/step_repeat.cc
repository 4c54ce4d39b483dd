// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/step_repeat.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "runtime/trace/periods.h"

namespace heddle::trace {
namespace {

// A copy or fill weighs little against a kernel: loading weights is thousands
// of copies, and no step.
constexpr uint64_t kKernelWeight = 8;
// Repetitions with fewer repeats than this may be requests of many steps.
constexpr uint64_t kFewRepeats = 4;
// Share of the repeats, in quarters, in which the host must wait at a place
// for that place to count as a boundary.
constexpr uint64_t kWaitQuarters = 3;
// Units without shapes must cover this much more, in halves, than units with.
constexpr uint64_t kByKindHalves = 3;
// Inner repetitions to look at before giving up.
constexpr size_t kMaxInner = 16;

// The sequence as tokens, with all its repetitions.
class Sequence {
 public:
  Sequence(absl::Span<const Operation> operations, bool by_kind)
      : operations_(operations),
        tokens_(Tokens(operations, by_kind)),
        hash_(tokens_),
        runs_(FindRepetitions(tokens_, hash_)),
        weight_(operations.size() + 1) {
    for (size_t i = 0; i < operations.size(); ++i) {
      const uint64_t kernels = operations[i].kernels;
      weight_[i + 1] = weight_[i] + (kernels > 0 ? kernels * kKernelWeight : 1);
    }
  }

  uint64_t Weight(const Repetition& run) const {
    return weight_[run.end] - weight_[run.begin];
  }

  // The repetition that covers most, of those with `period` (0: any).
  std::optional<Repetition> Best(uint64_t period) const {
    std::optional<Repetition> best;
    for (Repetition run : runs_) {
      if (period != 0) {
        // Several periods are a period, too.
        if (period % run.period != 0) continue;
        run.period = period;
        if (run.end - run.begin < 2 * period) continue;
      }
      if (weight_[run.begin + run.period] - weight_[run.begin] <
          kKernelWeight) {
        continue;  // no kernel in it
      }
      if (!best.has_value() || Rank(run) > Rank(*best)) best = run;
    }
    return best;
  }

  // See FindRepeatedUnit about requests of many steps.
  Repetition WithoutRequests(const Repetition& outer) const {
    if ((outer.end - outer.begin) / outer.period >= kFewRepeats) return outer;
    struct Inner {
      uint64_t weight = 0;
      Repetition largest;
    };
    absl::flat_hash_map<uint64_t, Inner> by_period;
    for (const Repetition& run : runs_) {
      if (run.begin < outer.begin || run.end > outer.end) continue;
      if ((run.end - run.begin) / run.period < kFewRepeats) continue;
      Inner& inner = by_period[run.period];
      inner.weight += Weight(run);
      if (inner.largest.period == 0 || Rank(run) > Rank(inner.largest)) {
        inner.largest = run;
      }
    }
    std::vector<Inner> candidates;
    for (const auto& [period, inner] : by_period) {
      if (inner.weight * 2 >= Weight(outer)) candidates.push_back(inner);
    }
    std::sort(candidates.begin(), candidates.end(),
              [this](const Inner& a, const Inner& b) {
                return std::tuple(a.weight, Rank(a.largest)) >
                       std::tuple(b.weight, Rank(b.largest));
              });
    if (candidates.size() > kMaxInner) candidates.resize(kMaxInner);
    for (const Inner& inner : candidates) {
      if (WaitPhase(inner.largest).has_value()) return inner.largest;
    }
    return outer;
  }

  // Offset of the first step from the begin of the run.
  uint64_t Phase(const Repetition& run,
                 absl::Span<const uint64_t> preferred_starts) const {
    const auto preferred = std::lower_bound(preferred_starts.begin(),
                                            preferred_starts.end(), run.begin);
    if (preferred != preferred_starts.end() &&
        *preferred + run.period <= run.end) {
      return (*preferred - run.begin) % run.period;
    }
    const uint64_t length = run.end - run.begin;
    const std::optional<uint64_t> wait = WaitPhase(run);
    if (wait.has_value() && (length - *wait) / run.period >= 2) return *wait;
    return length % run.period;
  }

  // All occurrences of the unit at `start`, given the run it comes from.
  std::vector<uint64_t> Occurrences(const Repetition& run,
                                    uint64_t start) const {
    std::vector<uint64_t> starts;
    const uint64_t n = tokens_.size();
    const auto scan = [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i + run.period <= end;) {
        const bool here = hash_.Equal(i, start, run.period);
        if (here) starts.push_back(i);
        i += here ? run.period : 1;
      }
    };
    scan(0, start);
    uint64_t next = start;
    for (; next + run.period <= run.end; next += run.period) {
      starts.push_back(next);
    }
    scan(next, n);
    return starts;
  }

 private:
  static std::vector<uint32_t> Tokens(absl::Span<const Operation> operations,
                                      bool by_kind) {
    absl::flat_hash_map<uint64_t, uint32_t> numbers;
    std::vector<uint32_t> tokens;
    tokens.reserve(operations.size());
    for (const Operation& operation : operations) {
      const uint64_t key = by_kind ? operation.kind : operation.shape;
      tokens.push_back(
          numbers.try_emplace(key, static_cast<uint32_t>(numbers.size()))
              .first->second);
    }
    return tokens;
  }

  // More work first, then the later one, then the shorter unit.
  std::tuple<uint64_t, uint64_t, uint64_t> Rank(const Repetition& run) const {
    return {Weight(run), run.end, ~run.period};
  }

  // The offset from the run's begin at which the host waits in most repeats.
  std::optional<uint64_t> WaitPhase(const Repetition& run) const {
    struct Place {
      uint64_t waits = 0;
      uint64_t after_copy = 0;  // ... for a copy to the host
      uint64_t gap_ns = 0;
    };
    absl::flat_hash_map<uint64_t, Place> places;
    for (uint64_t i = run.begin + 1; i < run.end; ++i) {
      if (!operations_[i].after_wait) continue;
      Place& place = places[(i - run.begin) % run.period];
      ++place.waits;
      if (operations_[i - 1].to_host) ++place.after_copy;
      if (operations_[i].time_ns > operations_[i - 1].time_ns) {
        place.gap_ns += operations_[i].time_ns - operations_[i - 1].time_ns;
      }
    }
    const uint64_t length = run.end - run.begin;
    std::optional<uint64_t> best;
    std::tuple<bool, uint64_t, uint64_t> best_rank;
    for (const auto& [phase, place] : places) {
      // How often this place comes after the run's first operation.
      const uint64_t times =
          (length - 1 - phase) / run.period + (phase == 0 ? 0 : 1);
      if (place.waits * 4 < times * kWaitQuarters) continue;
      // What ends with the result on its way to the host ends a step; then the
      // place where the host takes longest; then the end of the repetition.
      const std::tuple<bool, uint64_t, uint64_t> rank(
          place.after_copy * 2 > place.waits, place.gap_ns / place.waits,
          ~((length - phase) % run.period));
      if (!best.has_value() || rank > best_rank) {
        best = phase;
        best_rank = rank;
      }
    }
    return best;
  }

  absl::Span<const Operation> operations_;
  std::vector<uint32_t> tokens_;
  SequenceHash hash_;
  std::vector<Repetition> runs_;
  std::vector<uint64_t> weight_;  // of the first i operations
};

}  // namespace

RepeatedUnit FindRepeatedUnit(absl::Span<const Operation> operations,
                              absl::Span<const uint64_t> preferred_starts,
                              uint64_t period) {
  RepeatedUnit unit;
  if (operations.size() < 2) return unit;
  const Sequence exact(operations, /*by_kind=*/false);
  const std::optional<Repetition> exact_best = exact.Best(period);
  const uint64_t exact_weight =
      exact_best.has_value() ? exact.Weight(*exact_best) : 0;

  std::optional<Sequence> coarse;
  std::optional<Repetition> coarse_best;
  // Nothing can cover more than all.
  const uint64_t all_weight = exact.Weight({0, operations.size(), 1});
  if (exact_weight * kByKindHalves < all_weight * 2) {
    coarse.emplace(operations, /*by_kind=*/true);
    coarse_best = coarse->Best(period);
    if (coarse_best.has_value()) {
      unit.by_kind = coarse->Weight(*coarse_best) * 2 >=
                     std::max<uint64_t>(1, exact_weight * kByKindHalves);
    }
  }
  const Sequence& sequence = unit.by_kind ? *coarse : exact;
  std::optional<Repetition> run = unit.by_kind ? coarse_best : exact_best;
  if (!run.has_value()) return unit;
  if (period == 0) run = sequence.WithoutRequests(*run);
  unit.period = run->period;
  unit.starts = sequence.Occurrences(
      *run, run->begin + sequence.Phase(*run, preferred_starts));
  return unit;
}

}  // namespace heddle::trace
