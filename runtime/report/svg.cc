// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/report/report.h"
#include "runtime/report/summary.h"

namespace heddle::report {
namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 84;
constexpr double kRight = 24;
constexpr double kLane = 22;
constexpr double kBar = 16;
constexpr double kHeader = 30;
constexpr size_t kColors = 7;  // names with a colour of their own
// Bars below this many pixels are drawn together.
constexpr double kTiny = 0.35;

// Validated for contrast on white and on GitHub's dark background.
constexpr const char* kStyle = R"(<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.t{font-size:15px;font-weight:600}.m{fill:#59636e}.r{text-anchor:end}.c{text-anchor:middle}
.bg{fill:#fff}.lane{fill:#f1f3f5}.tick{stroke:#d1d9e0;stroke-width:1}
.k0{fill:#0969da}.k1{fill:#bf8700}.k2{fill:#1a7f37}.k3{fill:#8250df}.k4{fill:#cf222e}.k5{fill:#1b7c83}.k6{fill:#bf3989}.k7{fill:#818b98}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}.bg{fill:#0d1117}.lane{fill:#161b22}.tick{stroke:#30363d}
.k0{fill:#4493f8}.k1{fill:#d29922}.k2{fill:#3fb950}.k3{fill:#ab7df8}.k4{fill:#f85149}.k5{fill:#39c5cf}.k6{fill:#db61a2}.k7{fill:#656c76}}
</style>
)";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

double Us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

// 1, 2 or 5 times a power of ten, about a sixth of `span`.
double TickStep(double span) {
  const double raw = std::max(span / 6, 1e-3);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

class Picture {
 public:
  explicit Picture(const Report& report) : report_(report) {
    for (const Timeline& timeline : report.timelines) {
      span_us_ = std::max(span_us_, Us(Summarize(timeline).span_ns));
    }
    span_us_ = std::max(span_us_, 1e-3);
    ChooseColors();
  }

  std::string Draw() {
    double y = 24;
    Text(kLeft - 60, y, "t", report_.title);
    y += 20;
    if (!report_.conclusion.empty()) {
      Text(kLeft - 60, y, "m", report_.conclusion);
      y += 18;
    }
    y += 6;
    for (const Timeline& timeline : report_.timelines) {
      DrawTimeline(timeline, y);
    }
    DrawAxis(y);
    DrawLegend(y);
    const double height = y + 12;
    return absl::StrCat(
        absl::StrFormat("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                        "viewBox=\"0 0 %g %g\" width=\"%g\" role=\"img\" "
                        "aria-label=\"%s\">\n",
                        kWidth, height, kWidth, Escaped(report_.title)),
        kStyle,
        absl::StrFormat("<rect class=\"bg\" width=\"%g\" height=\"%g\"/>\n",
                        kWidth, height),
        body_, "</svg>\n");
  }

 private:
  // The names that take most time in all timelines together.
  void ChooseColors() {
    std::map<std::string, uint64_t> total;
    for (const Timeline& timeline : report_.timelines) {
      for (const NameTotal& t : Summarize(timeline).totals) {
        total[t.name] += t.total_ns;
      }
    }
    std::vector<std::pair<uint64_t, std::string>> sorted;
    sorted.reserve(total.size());
    for (const auto& [name, ns] : total) sorted.emplace_back(ns, name);
    std::sort(sorted.rbegin(), sorted.rend());
    for (size_t i = 0; i < std::min(kColors, sorted.size()); ++i) {
      colors_[sorted[i].second] = i;
      legend_.push_back(sorted[i].second);
    }
    others_ = sorted.size() - legend_.size();
  }

  size_t ColorOf(const std::string& name) const {
    const auto it = colors_.find(name);
    return it == colors_.end() ? kColors : it->second;
  }

  double X(double us) const {
    return kLeft + us / span_us_ * (kWidth - kLeft - kRight);
  }

  void Text(double x, double y, const char* classes, const std::string& text) {
    absl::StrAppendFormat(
        &body_, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>\n", x, y,
        classes, Escaped(text));
  }

  void Bar(double x, double y, double width, size_t color,
           const std::string& tooltip) {
    absl::StrAppendFormat(&body_,
                          "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
                          "height=\"%g\" class=\"k%d\"><title>%s</title>"
                          "</rect>\n",
                          x, y, std::max(width, 0.3), kBar, color,
                          Escaped(tooltip));
  }

  void DrawTimeline(const Timeline& timeline, double& y) {
    const Summary summary = Summarize(timeline);
    std::string header = absl::StrFormat(
        "%s: %d kernels, %.1f us from first to last, %.0f%% busy",
        timeline.name, summary.kernels, Us(summary.span_ns),
        summary.span_ns == 0 ? 0.0
                             : 100.0 * static_cast<double>(summary.busy_ns) /
                                   static_cast<double>(summary.span_ns));
    for (const Measurement& m : report_.measurements) {
      if (m.name != timeline.name) continue;
      absl::StrAppendFormat(&header, "; unprofiled median %.1f us",
                            m.median_us);
    }
    Text(kLeft, y + 14, "", header);
    y += kHeader - 8;
    std::set<uint64_t> streams;
    for (const Activity& a : timeline.activities) streams.insert(a.stream);
    const uint64_t origin =
        timeline.activities.empty() ? 0 : timeline.activities[0].start_ns;
    for (const uint64_t stream : streams) {
      absl::StrAppendFormat(&body_,
                            "<rect class=\"lane\" x=\"%g\" y=\"%.1f\" "
                            "width=\"%g\" height=\"%g\"/>\n",
                            kLeft, y, kWidth - kLeft - kRight, kLane - 2);
      Text(kLeft - 8, y + 14, "m r", absl::StrCat("stream ", stream));
      DrawLane(timeline, stream, origin, y + 2);
      y += kLane;
    }
    y += 8;
  }

  void DrawLane(const Timeline& timeline, uint64_t stream, uint64_t origin,
                double y) {
    double run_begin = 0;
    double run_end = -1;  // of tiny bars not drawn yet
    size_t run_count = 0;
    const auto flush = [&]() {
      if (run_count != 0) {
        Bar(run_begin, y, run_end - run_begin, kColors,
            absl::StrCat(run_count, " short activities"));
      }
      run_count = 0;
    };
    for (const Activity& a : timeline.activities) {
      if (a.stream != stream) continue;
      const double begin = X(Us(a.start_ns - origin));
      const double end = X(Us(a.start_ns - origin + a.duration_ns()));
      if (end - begin < kTiny) {
        if (run_count != 0 && begin - run_end > kTiny) flush();
        if (run_count == 0) run_begin = begin;
        run_end = std::max(run_end, end);
        ++run_count;
        continue;
      }
      flush();
      Bar(begin, y, end - begin, ColorOf(a.name),
          absl::StrFormat("%s, %.2f us", ShortName(a.name, 80),
                          Us(a.duration_ns())));
    }
    flush();
  }

  void DrawAxis(double& y) {
    const double step = TickStep(span_us_);
    const int ticks = static_cast<int>(span_us_ / step * 1.0001);
    for (int i = 0; i <= ticks; ++i) {
      const double t = step * i;
      absl::StrAppendFormat(&body_,
                            "<line class=\"tick\" x1=\"%.1f\" x2=\"%.1f\" "
                            "y1=\"%.1f\" y2=\"%.1f\"/>\n",
                            X(t), X(t), y, y + 5);
      Text(X(t), y + 18, "m c", absl::StrFormat("%g us", t));
    }
    y += 34;
  }

  void DrawLegend(double& y) {
    constexpr double kColumn = (kWidth - kLeft + 60) / 2;
    size_t i = 0;
    for (; i < legend_.size(); ++i) {
      LegendEntry(i, y, ShortName(legend_[i], 56), kColumn);
    }
    if (others_ != 0) {
      LegendEntry(i++, y, absl::StrCat(others_, " other names"), kColumn);
    }
    y += std::floor(static_cast<double>(i + 1) / 2) * 18;
  }

  void LegendEntry(size_t i, double y, const std::string& text, double column) {
    const double x = kLeft - 60 + static_cast<double>(i % 2) * column;
    const double top = y + std::floor(static_cast<double>(i) / 2) * 18;
    absl::StrAppendFormat(&body_,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" "
                          "height=\"10\" class=\"k%d\"/>\n",
                          x, top, std::min(i, kColors));
    Text(x + 16, top + 9, "m", text);
  }

  const Report& report_;
  double span_us_ = 0;
  std::map<std::string, size_t> colors_;
  std::vector<std::string> legend_;
  size_t others_ = 0;
  std::string body_;
};

}  // namespace

std::string ToSvg(const Report& report) { return Picture(report).Draw(); }

}  // namespace heddle::report
