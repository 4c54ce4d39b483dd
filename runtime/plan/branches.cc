// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/branches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/branch_schedule.h"

namespace heddle::plan {
namespace {

// Estimates that differ by less are the same.
constexpr double kSameUs = 1e-6;
// What the search for excursions that are not worth it may cost: steps of
// Realize, and estimates.
constexpr uint64_t kMaxSteps = 10'000'000;
constexpr uint64_t kMaxEstimates = 2000;

absl::StatusOr<BranchProblem> ProblemOf(
    const std::vector<bool>& early, absl::Span<const Dependency> dependencies,
    absl::Span<const double> durations_us, const BranchOptions& options) {
  if (durations_us.size() != early.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(durations_us.size(), " durations for ", early.size(),
                     " nodes: give one a node"));
  }
  if (options.max_branches < 1 || options.max_branches > kMaxBranches) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.max_branches, " branches: choose 1 to ", kMaxBranches));
  }
  for (size_t i = 0; i < durations_us.size(); ++i) {
    if (!std::isfinite(durations_us[i]) || durations_us[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the duration of node ", i, " is ", durations_us[i], " us"));
    }
  }
  for (const double us : {options.costs.full_us, options.costs.early_us,
                          options.costs.branch_us}) {
    if (!std::isfinite(us) || us < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("an edge cannot cost ", us, " us"));
    }
  }
  BranchProblem problem{early, durations_us, options, {}, {}};
  problem.in.resize(early.size());
  problem.out.resize(early.size());
  for (const auto& [from, to] : dependencies) {
    if (from >= to || to >= early.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the dependency of node ", to, " on node ", from,
          " does not lead forward within ", early.size(), " nodes"));
    }
    problem.out[from].push_back(to);
    problem.in[to].push_back(from);
  }
  return problem;
}

// The nodes in the order in which they are estimated to start.
void SortByStart(const BranchPlan& plan, Arrangement* arranged) {
  std::stable_sort(arranged->sequence.begin(), arranged->sequence.end(),
                   [&](uint32_t a, uint32_t b) {
                     return plan.start_us[a] < plan.start_us[b];
                   });
}

uint64_t EdgesBetweenBranches(const BranchPlan& plan) {
  return static_cast<uint64_t>(std::count_if(
      plan.edges.begin(), plan.edges.end(), [&](const Dependency& edge) {
        return plan.branch[edge.first] != plan.branch[edge.second];
      }));
}

// Brings excursions home: a run of nodes on a branch other than the first that
// ends where the branch next waits for another one. It comes back to where it
// was called from if the estimate does not lose by it.
class Homecoming {
 public:
  Homecoming(const BranchProblem& problem, Arrangement* arranged,
             BranchPlan* plan)
      : problem_(problem), arranged_(arranged), plan_(plan) {}

  void Run() {
    const uint64_t branches = problem_.options.max_branches;
    const uint64_t steps = problem_.size() * branches * branches;
    uint64_t left = std::min(kMaxEstimates, kMaxSteps / (steps + 1));
    for (bool changed = true; changed && left > 0;) {
      changed = false;
      for (const Excursion& excursion : Excursions()) {
        if (left-- == 0) return;
        if (TryHome(excursion)) {
          changed = true;
          break;  // the others may be other ones now
        }
      }
    }
  }

 private:
  struct Excursion {
    std::vector<uint32_t> nodes;
    uint32_t home = 0;
    double us = 0;
  };

  // Short ones first: those are the least worth it.
  std::vector<Excursion> Excursions() const {
    std::vector<std::optional<uint32_t>> called_from(problem_.size());
    for (const auto& [from, to] : plan_->edges) {
      if (plan_->branch[from] != plan_->branch[to]) {
        called_from[to] = plan_->branch[from];
      }
    }
    std::vector<Excursion> excursions;
    for (uint32_t b = 1; b < plan_->order.size(); ++b) {
      const std::vector<uint32_t>& order = plan_->order[b];
      for (size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || called_from[order[i]]) {
          excursions.push_back({{}, called_from[order[i]].value_or(0), 0});
        }
        excursions.back().nodes.push_back(order[i]);
        excursions.back().us += problem_.durations_us[order[i]];
      }
    }
    std::stable_sort(
        excursions.begin(), excursions.end(),
        [](const Excursion& a, const Excursion& b) { return a.us < b.us; });
    return excursions;
  }

  bool TryHome(const Excursion& excursion) {
    Arrangement tried = *arranged_;
    for (const uint32_t node : excursion.nodes) {
      tried.branch[node] = excursion.home;
    }
    BranchPlan plan = Realize(problem_, tried);
    const double loss = plan.estimate_us - plan_->estimate_us;
    // Where the estimate stays, fewer edges between branches must be gained, so
    // that this ends.
    if (loss > -kSameUs && (loss > 0 || EdgesBetweenBranches(plan) >=
                                            EdgesBetweenBranches(*plan_))) {
      return false;
    }
    *arranged_ = std::move(tried);
    *plan_ = std::move(plan);
    return true;
  }

  const BranchProblem& problem_;
  Arrangement* arranged_;
  BranchPlan* plan_;
};

// Numbers branches by their first node in `sequence`, without gaps, so that the
// first one is that of the first node.
void NumberBranches(Arrangement* arranged, uint32_t branches) {
  std::vector<uint32_t> number(branches, ~uint32_t{0});
  uint32_t next = 0;
  for (const uint32_t node : arranged->sequence) {
    uint32_t& n = number[arranged->branch[node]];
    if (n == ~uint32_t{0}) n = next++;
  }
  for (uint32_t& branch : arranged->branch) branch = number[branch];
}

}  // namespace

absl::StatusOr<BranchPlan> PlanBranches(
    const std::vector<bool>& early, absl::Span<const Dependency> dependencies,
    absl::Span<const double> durations_us, const BranchOptions& options) {
  absl::StatusOr<BranchProblem> problem =
      ProblemOf(early, dependencies, durations_us, options);
  if (!problem.ok()) return problem.status();
  Arrangement chain;
  chain.sequence.resize(problem->size());
  std::iota(chain.sequence.begin(), chain.sequence.end(), 0);
  chain.branch.resize(problem->size());
  BranchPlan best = Realize(*problem, chain);
  const double chain_us = best.estimate_us;
  if (options.max_branches > 1) {
    // On ties the first: it is nearest to what the program does.
    for (const PlaceNext next :
         {PlaceNext::kSubmitted, PlaceNext::kCritical, PlaceNext::kEarliest}) {
      Arrangement arranged = ScheduleList(*problem, next);
      BranchPlan plan = Realize(*problem, arranged);
      SortByStart(plan, &arranged);
      NumberBranches(&arranged, options.max_branches);
      plan = Realize(*problem, arranged);
      if (plan.estimate_us > best.estimate_us - kSameUs) continue;
      Homecoming(*problem, &arranged, &plan).Run();
      NumberBranches(&arranged, options.max_branches);
      best = Realize(*problem, arranged);
    }
  }
  while (best.order.size() > 1 && best.order.back().empty()) {
    best.order.pop_back();
  }
  best.chain_us = chain_us;
  return best;
}

}  // namespace heddle::plan
