// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/branch_schedule.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace heddle::plan {
namespace {

constexpr uint32_t kNoNode = ~uint32_t{0};
// Of the ready nodes, so many of the most critical ones are looked at.
constexpr size_t kLookedAt = 16;
// Starts that differ by less are the same, so that rounding decides nothing.
constexpr double kSameUs = 1e-9;

// How long it takes at least from the start of each node to the end of the last
// one that has to follow it.
std::vector<double> PathsBehind(const BranchProblem& problem) {
  std::vector<double> path(problem.size());
  for (size_t i = problem.size(); i-- > 0;) {
    const auto node = static_cast<uint32_t>(i);
    double behind = 0;
    for (const uint32_t to : problem.out[node]) {
      behind = std::max(behind, problem.CostOf(node, to, true) + path[to]);
    }
    path[node] = problem.durations_us[node] + behind;
  }
  return path;
}

class Scheduler {
 public:
  Scheduler(const BranchProblem& problem, PlaceNext next)
      : problem_(problem),
        next_(next),
        path_(PathsBehind(problem)),
        end_us_(problem.size()),
        tail_(problem.options.max_branches, kNoNode) {
    arranged_.branch.resize(problem.size());
    arranged_.sequence.reserve(problem.size());
  }

  Arrangement Run() {
    std::vector<size_t> pending(problem_.size());
    for (uint32_t node = 0; node < problem_.size(); ++node) {
      pending[node] = problem_.in[node].size();
      if (pending[node] == 0) ready_.insert(KeyOf(node));
    }
    while (!ready_.empty()) {
      const auto [key, place] = Choose();
      ready_.erase(key);
      const uint32_t node = key.second;
      arranged_.sequence.push_back(node);
      arranged_.branch[node] = place.branch;
      end_us_[node] = place.start_us + problem_.durations_us[node];
      tail_[place.branch] = node;
      for (const uint32_t to : problem_.out[node]) {
        if (--pending[to] == 0) ready_.insert(KeyOf(to));
      }
    }
    return std::move(arranged_);
  }

 private:
  using Key = std::pair<double, uint32_t>;  // what comes first, node
  struct Place {
    uint32_t branch = 0;
    double start_us = 0;
  };

  Key KeyOf(uint32_t node) const {
    return {next_ == PlaceNext::kSubmitted ? 0 : -path_[node], node};
  }

  std::pair<Key, Place> Choose() const {
    std::pair<Key, Place> best{*ready_.begin(),
                               PlaceFor(ready_.begin()->second)};
    if (next_ != PlaceNext::kEarliest) return best;
    size_t looked_at = 1;
    for (auto it = std::next(ready_.begin());
         it != ready_.end() && looked_at < kLookedAt; ++it, ++looked_at) {
      const Place place = PlaceFor(it->second);
      if (place.start_us < best.second.start_us - kSameUs) best = {*it, place};
    }
    return best;
  }

  double StartOn(uint32_t branch, uint32_t node) const {
    double start = 0;
    if (tail_[branch] != kNoNode) {
      start =
          end_us_[tail_[branch]] + problem_.CostOf(tail_[branch], node, true);
    }
    for (const uint32_t from : problem_.in[node]) {
      if (arranged_.branch[from] == branch) continue;  // in the chain
      start =
          std::max(start, end_us_[from] + problem_.CostOf(from, node, false));
    }
    return start;
  }

  // Of the branches on which it would start at the same time, the one of what
  // it waits for longest: there is the least to lose if the estimate is wrong.
  Place PlaceFor(uint32_t node) const {
    uint32_t preferred = 0;
    double latest = -1;
    for (const uint32_t from : problem_.in[node]) {
      if (end_us_[from] <= latest) continue;
      latest = end_us_[from];
      preferred = arranged_.branch[from];
    }
    Place best{preferred, StartOn(preferred, node)};
    for (uint32_t b = 0; b < tail_.size(); ++b) {
      const double start = StartOn(b, node);
      if (start < best.start_us - kSameUs) best = {b, start};
      if (tail_[b] == kNoNode) break;  // all empty branches are the same
    }
    return best;
  }

  const BranchProblem& problem_;
  const PlaceNext next_;
  const std::vector<double> path_;
  std::vector<double> end_us_;  // of nodes that were placed
  std::vector<uint32_t> tail_;  // by branch
  std::set<Key> ready_;
  Arrangement arranged_;
};

}  // namespace

BranchPlan Realize(const BranchProblem& problem, const Arrangement& arranged) {
  const uint32_t branches = problem.options.max_branches;
  BranchPlan plan;
  plan.branch = arranged.branch;
  plan.order.resize(branches);
  plan.start_us.resize(problem.size());
  // By node and branch: how many members of the branch come before the node, or
  // are the node. The latest member of each branch stands for all before it.
  std::vector<uint32_t> reach(problem.size() * branches);
  const auto row = [&](uint32_t node) { return &reach[node * branches]; };
  std::vector<uint32_t> latest(branches);
  for (const uint32_t node : arranged.sequence) {
    const uint32_t own = arranged.branch[node];
    std::fill(latest.begin(), latest.end(), 0);
    latest[own] = static_cast<uint32_t>(plan.order[own].size());
    for (const uint32_t from : problem.in[node]) {
      uint32_t& last = latest[arranged.branch[from]];
      last = std::max(last, row(from)[arranged.branch[from]]);
    }
    const auto member = [&](uint32_t b) {
      return plan.order[b][latest[b] - 1];
    };
    for (uint32_t b = 0; b < branches; ++b) {
      if (latest[b] == 0) continue;
      bool implied = false;
      for (uint32_t other = 0; other < branches && !implied; ++other) {
        implied = other != b && latest[other] != 0 &&
                  row(member(other))[b] >= latest[b];
      }
      const uint32_t from = member(b);
      for (uint32_t c = 0; c < branches; ++c) {
        row(node)[c] = std::max(row(node)[c], row(from)[c]);
      }
      if (implied) continue;
      plan.edges.emplace_back(from, node);
      plan.start_us[node] =
          std::max(plan.start_us[node],
                   plan.start_us[from] + problem.durations_us[from] +
                       problem.CostOf(from, node, b == own));
    }
    plan.order[own].push_back(node);
    row(node)[own] = static_cast<uint32_t>(plan.order[own].size());
    plan.estimate_us = std::max(
        plan.estimate_us, plan.start_us[node] + problem.durations_us[node]);
  }
  std::sort(plan.edges.begin(), plan.edges.end(),
            [](const Dependency& a, const Dependency& b) {
              return std::pair(a.second, a.first) <
                     std::pair(b.second, b.first);
            });
  return plan;
}

Arrangement ScheduleList(const BranchProblem& problem, PlaceNext next) {
  return Scheduler(problem, next).Run();
}

}  // namespace heddle::plan
