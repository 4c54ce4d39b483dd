// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/report/report.h"
#include "runtime/report/summary.h"

namespace heddle::report {
namespace {

constexpr size_t kRows = 15;
constexpr size_t kGaps = 3;
constexpr size_t kNameWidth = 52;

double Us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

std::string Percent(double part) {
  return absl::StrFormat("%.1f%%", part * 100);
}

void AppendTotals(const Summary& summary, std::string& out) {
  absl::StrAppendFormat(&out, "  %9s %6s %7s %9s %9s  %s\n", "total us",
                        "share", "count", "mean us", "max us", "name");
  for (size_t i = 0; i < std::min(kRows, summary.totals.size()); ++i) {
    const NameTotal& total = summary.totals[i];
    absl::StrAppendFormat(&out, "  %9.1f %6s %7d %9.2f %9.2f  %s\n",
                          Us(total.total_ns), Percent(total.share), total.count,
                          Us(total.total_ns) / static_cast<double>(total.count),
                          Us(total.max_ns), ShortName(total.name, kNameWidth));
  }
  if (summary.totals.size() > kRows) {
    uint64_t rest = 0;
    uint64_t count = 0;
    for (size_t i = kRows; i < summary.totals.size(); ++i) {
      rest += summary.totals[i].total_ns;
      count += summary.totals[i].count;
    }
    absl::StrAppendFormat(
        &out, "  %9.1f %6s %7d %9s %9s  %d other names\n", Us(rest),
        Percent(summary.sum_ns == 0 ? 0
                                    : static_cast<double>(rest) /
                                          static_cast<double>(summary.sum_ns)),
        count, "", "", summary.totals.size() - kRows);
  }
}

void AppendTimeline(const Timeline& timeline, bool launches, std::string& out) {
  const Summary summary = Summarize(timeline);
  absl::StrAppendFormat(
      &out, "\n%s: %d kernels and %d other activities, seen by %s\n",
      timeline.name, summary.kernels,
      timeline.activities.size() - summary.kernels, timeline.source);
  if (timeline.activities.empty()) return;
  const double span =
      static_cast<double>(std::max<uint64_t>(1, summary.span_ns));
  absl::StrAppendFormat(
      &out,
      "  span %.1f us, busy %.1f us (%s), idle %.1f us in %d gaps, overlap "
      "%.1f us\n",
      Us(summary.span_ns), Us(summary.busy_ns),
      Percent(static_cast<double>(summary.busy_ns) / span), Us(summary.gap_ns),
      summary.gaps.size(), Us(summary.sum_ns - summary.busy_ns));
  AppendTotals(summary, out);
  for (size_t i = 0; i < std::min(kGaps, summary.gaps.size()); ++i) {
    const Gap& gap = summary.gaps[i];
    absl::StrAppendFormat(&out, "  gap %.1f us between %s and %s\n", Us(gap.ns),
                          ShortName(timeline.activities[gap.after].name, 32),
                          ShortName(timeline.activities[gap.before].name, 32));
  }
  if (!launches) return;
  absl::StrAppendFormat(&out, "\n  %6s %11s %9s %9s %7s  %s\n", "order",
                        "start us", "us", "gap us", "stream", "name");
  const uint64_t origin = timeline.activities[0].start_ns;
  uint64_t last_end = origin;
  for (const Activity& activity : timeline.activities) {
    const int64_t gap = static_cast<int64_t>(activity.start_ns) -
                        static_cast<int64_t>(last_end);
    absl::StrAppendFormat(&out, "  %6d %11.2f %9.2f %9.2f %7d  %s\n",
                          activity.order, Us(activity.start_ns - origin),
                          Us(activity.duration_ns()),
                          static_cast<double>(gap) / 1000.0, activity.stream,
                          ShortName(activity.name, kNameWidth));
    last_end = std::max(last_end, activity.end_ns);
  }
}

}  // namespace

std::string ToText(const Report& report, bool launches) {
  std::string out = absl::StrCat(report.title, "\n");
  if (!report.device.name.empty()) {
    absl::StrAppend(&out, "on ", report.device.name, "\n");
  }
  if (!report.conclusion.empty()) {
    absl::StrAppend(&out, report.conclusion, "\n");
  }
  if (!report.measurements.empty()) {
    size_t width = 10;
    for (const Measurement& m : report.measurements) {
      width = std::max(width, m.name.size());
    }
    absl::StrAppendFormat(&out, "\n%-*s %12s %10s %10s %6s\n", width, "mode",
                          "median us", "+- us", "min us", "runs");
    for (const Measurement& m : report.measurements) {
      absl::StrAppendFormat(&out, "%-*s %12.1f %10.1f %10.1f %6d\n", width,
                            m.name, m.median_us, m.spread_us, m.min_us, m.runs);
    }
  }
  for (const Timeline& timeline : report.timelines) {
    AppendTimeline(timeline, launches, out);
  }
  for (const std::string& note : report.notes) {
    absl::StrAppend(&out, "note: ", note, "\n");
  }
  return out;
}

}  // namespace heddle::report
