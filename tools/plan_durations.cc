// SPDX-License-Identifier: Apache-2.0
#include "tools/plan_durations.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::tools {
namespace {

using nlohmann::json;

// The first bytes of a plan file, as far as they are letters.
bool LooksLikePlan(const std::string& bytes) {
  return bytes.size() > 4 && bytes.compare(1, 3, "HPL") == 0;
}

absl::StatusOr<MeasuredActivity> ParseActivity(const json& item) {
  const auto us = item.find("us");
  const auto kind = item.find("kind");
  const auto name = item.find("name");
  if (us == item.end() || !us->is_number() || kind == item.end() ||
      !kind->is_string() || name == item.end() || !name->is_string()) {
    return absl::InvalidArgumentError("an activity lacks name, kind or us");
  }
  MeasuredActivity activity{name->get<std::string>(),
                            kind->get<std::string>() == "kernel",
                            us->get<double>()};
  if (!std::isfinite(activity.us) || activity.us < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("an activity takes ", activity.us, " us"));
  }
  return activity;
}

}  // namespace

absl::StatusOr<std::vector<double>> MatchDurations(
    const std::vector<MeasuredActivity>& activities,
    const replay::Program& program, const std::string& source) {
  std::vector<double> durations;
  size_t next = 0;
  for (const replay::Operation& operation : program.step.operations) {
    durations.push_back(0);
    if (operation.empty()) continue;
    if (next == activities.size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          source, " has ", next,
          " activities, and the step does more: measure this step"));
    }
    const MeasuredActivity& activity = activities[next++];
    const replay::LaunchWork* launch = operation.launch();
    if (activity.kernel != (launch != nullptr) ||
        (launch != nullptr &&
         program.kernels[launch->kernel].name != activity.name)) {
      return absl::FailedPreconditionError(
          absl::StrCat(source, " is of another step: activity ", next - 1,
                       " is ", activity.name, ", and the step does ",
                       operation.label, " there: measure this step"));
    }
    durations.back() = activity.us;
  }
  if (next != activities.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        source, " has ", activities.size(), " activities, and the step does ",
        next, " things: measure this step"));
  }
  return durations;
}

std::vector<MeasuredActivity> ActivitiesOf(const report::Timeline& timeline) {
  std::vector<MeasuredActivity> activities(timeline.activities.size());
  for (const report::Activity& activity : timeline.activities) {
    if (activity.order >= activities.size()) continue;  // not numbered
    activities[activity.order] = {
        activity.name, activity.kind == report::ActivityKind::kKernel,
        static_cast<double>(activity.duration_ns()) / 1000};
  }
  return activities;
}

absl::StatusOr<std::vector<MeasuredActivity>> ParseReportDurations(
    const std::string& text, const std::string& name) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", what,
                     "; write one with `heddle replay --report FILE.json`"));
  };
  const json report = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto timelines =
      report.is_object() ? report.find("timelines") : report.end();
  if (!report.is_object() || timelines == report.end() ||
      !timelines->is_array()) {
    return wrong("no report of a replay");
  }
  for (const json& timeline : *timelines) {
    if (!timeline.is_object() || timeline.value("name", json()) != "serial") {
      continue;
    }
    const auto activities = timeline.find("activities");
    if (activities == timeline.end() || !activities->is_array()) break;
    std::vector<std::pair<uint64_t, MeasuredActivity>> ordered;
    for (const json& item : *activities) {
      if (!item.is_object() || !item.contains("order") ||
          !item["order"].is_number_unsigned()) {
        return wrong("an activity lacks its order");
      }
      absl::StatusOr<MeasuredActivity> activity = ParseActivity(item);
      if (!activity.ok()) return wrong(activity.status().message());
      ordered.emplace_back(item["order"].get<uint64_t>(), *std::move(activity));
    }
    std::stable_sort(
        ordered.begin(), ordered.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<MeasuredActivity> result;
    result.reserve(ordered.size());
    for (auto& [order, activity] : ordered) {
      result.push_back(std::move(activity));
    }
    return result;
  }
  return wrong("it has no serial run");
}

absl::StatusOr<std::vector<double>> ReadDurations(
    const std::string& path, const replay::Program& program,
    const std::vector<plan::OperationIdentity>& operations) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    return absl::NotFoundError(absl::StrCat(
        "cannot read ", path, ": ", std::strerror(errno == 0 ? EIO : errno)));
  }
  if (LooksLikePlan(text)) {
    const absl::StatusOr<plan::PlanFile> plan = plan::ReadPlanFile(path);
    if (!plan.ok()) return plan.status();
    if (absl::Status s =
            plan::CheckOperations(plan->operations, operations, path);
        !s.ok()) {
      return s;
    }
    std::vector<double> durations;
    for (const plan::PlannedNode& node : plan->plan.nodes) {
      durations.push_back(node.duration_us);
    }
    return durations;
  }
  absl::StatusOr<std::vector<MeasuredActivity>> activities =
      ParseReportDurations(text, path);
  if (!activities.ok()) return activities.status();
  return MatchDurations(*activities, program, path);
}

}  // namespace heddle::tools
