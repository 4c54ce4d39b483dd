// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "runtime/report/report.h"
#include "runtime/report/summary.h"

namespace heddle::report {
namespace {

using nlohmann::json;

double Us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

const char* KindName(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::kKernel:
      return "kernel";
    case ActivityKind::kMemcpy:
      return "memcpy";
    case ActivityKind::kMemset:
      return "memset";
    case ActivityKind::kOther:
      return "other";
  }
  return "other";
}

json TimelineJson(const Timeline& timeline) {
  const Summary summary = Summarize(timeline);
  json totals = json::array();
  for (const NameTotal& total : summary.totals) {
    totals.push_back({{"name", Demangle(total.name)},
                      {"mangled", total.name},
                      {"kind", KindName(total.kind)},
                      {"count", total.count},
                      {"total_us", Us(total.total_ns)},
                      {"min_us", Us(total.min_ns)},
                      {"max_us", Us(total.max_ns)},
                      {"share", total.share}});
  }
  json gaps = json::array();
  for (const Gap& gap : summary.gaps) {
    gaps.push_back({{"after", timeline.activities[gap.after].order},
                    {"before", timeline.activities[gap.before].order},
                    {"us", Us(gap.ns)}});
  }
  json activities = json::array();
  const uint64_t origin =
      timeline.activities.empty() ? 0 : timeline.activities[0].start_ns;
  for (const Activity& a : timeline.activities) {
    json item = {{"order", a.order},
                 {"name", a.name},
                 {"kind", KindName(a.kind)},
                 {"start_us", Us(a.start_ns - origin)},
                 {"us", Us(a.duration_ns())},
                 {"stream", a.stream},
                 {"correlation", a.correlation}};
    if (a.graph_node != 0) item["graph_node"] = a.graph_node;
    if (a.kind == ActivityKind::kKernel) {
      item["grid"] = a.grid;
      item["block"] = a.block;
      item["registers"] = a.registers;
      item["shared_bytes"] =
          uint64_t{a.static_shared} + uint64_t{a.dynamic_shared};
    } else {
      item["bytes"] = a.bytes;
    }
    activities.push_back(std::move(item));
  }
  return {
      {"name", timeline.name},          {"source", timeline.source},
      {"span_us", Us(summary.span_ns)}, {"busy_us", Us(summary.busy_ns)},
      {"sum_us", Us(summary.sum_ns)},   {"gap_us", Us(summary.gap_ns)},
      {"kernels", summary.kernels},     {"totals", std::move(totals)},
      {"gaps", std::move(gaps)},        {"activities", std::move(activities)}};
}

}  // namespace

json ToJson(const Report& report) {
  json measurements = json::array();
  for (const Measurement& m : report.measurements) {
    measurements.push_back({{"name", m.name},
                            {"median_us", m.median_us},
                            {"spread_us", m.spread_us},
                            {"min_us", m.min_us},
                            {"runs", m.runs}});
  }
  json timelines = json::array();
  for (const Timeline& timeline : report.timelines) {
    timelines.push_back(TimelineJson(timeline));
  }
  return {{"schema", 1},
          {"title", report.title},
          {"conclusion", report.conclusion},
          {"device", report.device.name},
          {"measurements", std::move(measurements)},
          {"timelines", std::move(timelines)},
          {"notes", report.notes}};
}

}  // namespace heddle::report
