// SPDX-License-Identifier: Apache-2.0
//
// What `heddle replay` prints.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/report/summary.h"
#include "tools/names.h"
#include "tools/replay_run.h"
#include "tools/replay_verdict.h"

namespace heddle::tools {
namespace {

using nlohmann::json;

std::string FileName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string StepName(const ReplayResult& result) {
  if (result.step.index < 0) return FileName(result.trace);
  return absl::StrCat(FileName(result.trace), ", step ", result.step.index,
                      " (", result.step.source, ", ", result.step.total,
                      " in all)");
}

// One line: what became of the form.
std::string FormText(const RewrittenForm& form) {
  if (!form.skipped.empty()) {
    return absl::StrCat(form.name, ": not run: ", form.skipped);
  }
  const rewrite::RewriteSummary& s = form.summary;
  std::string text = absl::StrCat(form.name, ": ", s.patched, " of ", s.kernels,
                                  " kernels patched, ", s.converted, " of ",
                                  s.edges, " edges converted");
  if (s.launch_order != 0) {
    absl::StrAppend(&text, " (", s.launch_order, " to launch order)");
  }
  return text;
}

void AppendRewriting(const Rewriting& rewriting, std::string& out) {
  absl::StrAppend(&out, "\n");
  for (const RewrittenForm& form : rewriting.forms) {
    absl::StrAppend(&out, FormText(form), "\n");
    if (!form.skipped.empty()) continue;
    for (const std::string& note : form.summary.notes) {
      absl::StrAppend(&out, "  ", note, "\n");
    }
  }
  if (rewriting.replaced_modules != 0) {
    absl::StrAppend(&out, rewriting.replaced_modules,
                    rewriting.replaced_modules == 1 ? " image" : " images",
                    " with variables: patched in all modes\n");
  }
}

json RewritingJson(const Rewriting& rewriting) {
  json forms = json::array();
  for (const RewrittenForm& form : rewriting.forms) {
    json item = {{"name", form.name}, {"run", form.skipped.empty()}};
    if (!form.skipped.empty()) {
      item["reason"] = form.skipped;
    } else {
      const rewrite::RewriteSummary& s = form.summary;
      item.update({{"style", absl::StrCat(rewrite::StyleName(s.style))},
                   {"nodes", s.nodes},
                   {"kernels", s.kernels},
                   {"patched", s.patched},
                   {"edges", s.edges},
                   {"converted", s.converted},
                   {"launch_order", s.launch_order},
                   {"notes", s.notes}});
    }
    forms.push_back(std::move(item));
  }
  json out = {{"forms", std::move(forms)},
              {"replaced_modules", rewriting.replaced_modules}};
  if (!rewriting.fastest.empty()) out["fastest"] = rewriting.fastest;
  return out;
}

void AppendTimings(const ReplayResult& result, std::string& out) {
  size_t width = 8;
  for (const replay::Timing& t : result.timings) {
    width = std::max(width, t.name.size());
  }
  const auto against_graph = AgainstGraph(result.timings);
  absl::StrAppendFormat(&out, "\n%-*s %12s %10s %10s %6s%s\n", width, "mode",
                        "median us", "+- us", "min us", "runs",
                        result.compare ? "  against graph" : "");
  for (size_t i = 0; i < result.timings.size(); ++i) {
    const replay::Timing& t = result.timings[i];
    absl::StrAppendFormat(&out, "%-*s %12.1f %10.1f %10.1f %6d", width, t.name,
                          t.median_us, t.spread_us, t.min_us, t.us.size());
    if (result.compare && against_graph[i]) {
      absl::StrAppendFormat(&out, "  x%.3f +- %.3f", against_graph[i]->ratio,
                            against_graph[i]->spread);
    }
    absl::StrAppend(&out, "\n");
  }
  if (result.rewriting && !result.rewriting->fastest.empty()) {
    absl::StrAppend(&out, "fastest: ", result.rewriting->fastest, "\n");
  }
}

}  // namespace

std::vector<std::optional<replay::Speedup>> AgainstGraph(
    const std::vector<replay::Timing>& timings) {
  std::vector<std::optional<replay::Speedup>> speedups(timings.size());
  const auto graph = std::find_if(
      timings.begin(), timings.end(),
      [](const replay::Timing& timing) { return timing.name == "graph"; });
  if (graph == timings.end()) return speedups;
  for (size_t i = 0; i < timings.size(); ++i) {
    if (&timings[i] == &*graph) continue;
    speedups[i] = replay::CompareTimings(*graph, timings[i]);
  }
  return speedups;
}

report::Report ToReport(const ReplayResult& result) {
  report::Report out;
  out.title = StepName(result);
  out.conclusion = Conclusion(result);
  out.device = result.device;
  for (const replay::Timing& timing : result.timings) {
    out.measurements.push_back({timing.name, timing.median_us, timing.spread_us,
                                timing.min_us, timing.us.size()});
  }
  out.timelines = result.timelines;
  out.notes = result.warnings;
  if (result.rewriting) {
    for (const RewrittenForm& form : result.rewriting->forms) {
      out.notes.push_back(FormText(form));
    }
  }
  return out;
}

std::string ReplayToText(const ReplayResult& result) {
  std::string out = absl::StrCat(
      StepName(result), ": ", result.launches, " launches of ", result.kernels,
      " kernels, ", result.operations - result.launches, " other operations, ",
      result.streams, result.streams == 1 ? " stream, " : " streams, ",
      Bytes(result.memory_bytes), " of memory\n");
  absl::StrAppend(&out, "on ", result.device.name, "\n");
  if (result.described_bytes != 0) {
    absl::StrAppend(&out, Bytes(result.described_bytes),
                    " of it filled with seeded values (the trace knows their "
                    "statistics)\n");
  }
  if (result.rewriting) AppendRewriting(*result.rewriting, out);
  if (!result.timings.empty()) AppendTimings(result, out);
  if (result.verify) AppendVerify(*result.verify, out);
  return out;
}

json ReplayToJson(const ReplayResult& result) {
  json timings = json::array();
  const auto against_graph = AgainstGraph(result.timings);
  for (size_t i = 0; i < result.timings.size(); ++i) {
    const replay::Timing& t = result.timings[i];
    timings.push_back(
        {{"name", t.name},
         {"median_us", t.median_us},
         {"spread_us", t.spread_us},
         {"spread", t.median_us == 0 ? 0.0 : t.spread_us / t.median_us},
         {"min_us", t.min_us},
         {"runs", t.us.size()}});
    if (!against_graph[i]) continue;
    timings.back()["against_graph"] = {{"ratio", against_graph[i]->ratio},
                                       {"spread", against_graph[i]->spread}};
  }
  json timelines = json::array();
  for (const report::Timeline& timeline : result.timelines) {
    const report::Summary summary = report::Summarize(timeline);
    timelines.push_back(
        {{"name", timeline.name},
         {"source", timeline.source},
         {"kernels", summary.kernels},
         {"span_us", static_cast<double>(summary.span_ns) / 1000},
         {"busy_us", static_cast<double>(summary.busy_ns) / 1000},
         {"gap_us", static_cast<double>(summary.gap_ns) / 1000}});
  }
  json out = {{"schema", 1},
              {"trace", result.trace},
              {"step",
               {{"index", result.step.index},
                {"total", result.step.total},
                {"source", result.step.source},
                {"first_record", result.step.bounds.first_record},
                {"end_record", result.step.bounds.end_record}}},
              {"gpu", result.device.name},
              {"launches", result.launches},
              {"operations", result.operations},
              {"dependencies", result.dependencies},
              {"streams", result.streams},
              {"kernels", result.kernels},
              {"images", result.images},
              {"memory_bytes", result.memory_bytes},
              {"described_bytes", result.described_bytes},
              {"timings", std::move(timings)},
              {"timelines", std::move(timelines)},
              {"warnings", result.warnings},
              {"conclusion", Conclusion(result)}};
  if (result.rewriting) out["rewriting"] = RewritingJson(*result.rewriting);
  if (result.verify) out["verify"] = VerifyJson(*result.verify);
  return out;
}

}  // namespace heddle::tools
