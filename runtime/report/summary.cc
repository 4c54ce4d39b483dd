// SPDX-License-Identifier: Apache-2.0
#include "runtime/report/summary.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

namespace heddle::report {

Summary Summarize(const Timeline& timeline) {
  Summary summary;
  const std::vector<Activity>& activities = timeline.activities;
  if (activities.empty()) return summary;
  std::map<std::string, NameTotal> totals;
  uint64_t last_end = activities[0].start_ns;
  size_t last = 0;
  for (size_t i = 0; i < activities.size(); ++i) {
    const Activity& activity = activities[i];
    const uint64_t duration = activity.duration_ns();
    const uint64_t end = activity.start_ns + duration;
    summary.sum_ns += duration;
    if (activity.kind == ActivityKind::kKernel) ++summary.kernels;
    if (activity.start_ns > last_end) {
      summary.gaps.push_back({last, i, activity.start_ns - last_end});
      summary.gap_ns += activity.start_ns - last_end;
    }
    const uint64_t new_from = std::max(activity.start_ns, last_end);
    if (end > new_from) summary.busy_ns += end - new_from;
    if (end >= last_end) {
      last_end = end;
      last = i;
    }
    NameTotal& total = totals[activity.name];
    if (total.count == 0) total.min_ns = duration;
    total.name = activity.name;
    total.kind = activity.kind;
    ++total.count;
    total.total_ns += duration;
    total.min_ns = std::min(total.min_ns, duration);
    total.max_ns = std::max(total.max_ns, duration);
  }
  summary.span_ns = last_end - activities[0].start_ns;
  std::stable_sort(summary.gaps.begin(), summary.gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.ns > b.ns; });
  for (auto& [name, total] : totals) {
    if (summary.sum_ns != 0) {
      total.share = static_cast<double>(total.total_ns) /
                    static_cast<double>(summary.sum_ns);
    }
    summary.totals.push_back(std::move(total));
  }
  std::stable_sort(summary.totals.begin(), summary.totals.end(),
                   [](const NameTotal& a, const NameTotal& b) {
                     return a.total_ns > b.total_ns;
                   });
  return summary;
}

std::string Demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

std::string ShortName(const std::string& name, size_t width) {
  std::string text = Demangle(name);
  if (text.rfind("void ", 0) == 0) text.erase(0, 5);
  if (text.size() <= width) return text;
  // Drop what stands in brackets, keeping "operator()" and "(anonymous ...)".
  std::string outer;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') ++depth;
    if (depth == 0) {
      if (c == '(' && text.compare(i, 11, "(anonymous ") != 0 && i != 0 &&
          text.compare(0, i, "operator") != 0) {
        break;
      }
      outer += c;
    }
    if (c == '>' && depth > 0) --depth;
  }
  if (!outer.empty()) text = outer;
  if (text.size() > width) {
    text = text.substr(0, width > 3 ? width - 3 : 0) + "...";
  }
  return text;
}

}  // namespace heddle::report
