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

std::string VerdictText(const replay::InputVerdict& v) {
  std::string text = absl::StrCat("input ", v.input, ": ");
  switch (v.verdict) {
    case replay::Verdict::kIdentical:
      absl::StrAppend(&text, "identical");
      break;
    case replay::Verdict::kWithinSerial:
      absl::StrAppend(&text, "differs only where serial runs differ");
      break;
    case replay::Verdict::kDifferent:
      absl::StrAppend(&text, "DIFFERENT in ", v.graph_differing_bytes,
                      " bytes");
      break;
  }
  absl::StrAppend(&text, " (", v.serial_runs, " serial and ", v.graph_runs,
                  " graph runs; ", Bytes(v.compared_bytes), " compared, ",
                  Bytes(v.written_bytes), " written");
  if (v.changed_bytes != 0) {
    absl::StrAppend(&text, ", ", Bytes(v.changed_bytes),
                    " other than in input 1");
  }
  absl::StrAppend(&text, ")");
  return text;
}

void AppendFindings(const std::vector<replay::Finding>& findings,
                    std::string& out) {
  for (const replay::Finding& finding : findings) {
    absl::StrAppend(&out, "    ", finding.bytes, " bytes at ", finding.where);
    if (finding.operation >= 0) {
      absl::StrAppend(&out, ", last written by operation ", finding.operation,
                      " ", report::ShortName(finding.writer, 60));
    }
    absl::StrAppend(&out, "\n");
  }
}

void AppendVerify(const replay::VerifyResult& verify, std::string& out) {
  absl::StrAppend(&out, "\nverify: ", verify.passed ? "passed" : "FAILED",
                  "\n");
  for (const replay::InputVerdict& v : verify.inputs) {
    absl::StrAppend(&out, "  ", VerdictText(v), "\n");
    AppendFindings(v.findings, out);
    for (const replay::UnrepeatableKernel& kernel : v.unrepeatable) {
      absl::StrAppend(&out, "    not repeatable by itself: ",
                      report::ShortName(kernel.name, 60), ", ", kernel.launches,
                      " launches, ", kernel.bytes, " bytes\n");
    }
    if (v.unexplained) {
      absl::StrAppend(&out, "    serial runs differ in ",
                      v.serial_differing_bytes,
                      " bytes, but every kernel repeats by itself: the "
                      "program's streams leave an order open\n");
    }
  }
  if (verify.original.available) {
    absl::StrAppend(&out, "  recorded program: ");
    if (verify.original.differing_bytes == 0) {
      absl::StrAppend(&out, "memory after the step is what it had (",
                      Bytes(verify.original.compared_bytes), ")\n");
    } else {
      absl::StrAppend(&out, "memory after the step DIFFERS in ",
                      verify.original.differing_bytes, " of ",
                      verify.original.compared_bytes, " bytes\n");
      AppendFindings(verify.original.findings, out);
    }
  }
  for (const std::string& note : verify.notes) {
    absl::StrAppend(&out, "  note: ", note, "\n");
  }
}

json FindingsJson(const std::vector<replay::Finding>& findings) {
  json out = json::array();
  for (const replay::Finding& finding : findings) {
    json item = {{"address", Hex(finding.address)},
                 {"bytes", finding.bytes},
                 {"where", finding.where}};
    if (finding.operation >= 0) {
      item["operation"] = finding.operation;
      item["writer"] = finding.writer;
    }
    out.push_back(std::move(item));
  }
  return out;
}

json VerifyJson(const replay::VerifyResult& verify) {
  json inputs = json::array();
  for (const replay::InputVerdict& v : verify.inputs) {
    json kernels = json::array();
    for (const replay::UnrepeatableKernel& kernel : v.unrepeatable) {
      kernels.push_back({{"name", kernel.name},
                         {"launches", kernel.launches},
                         {"first_record", kernel.record},
                         {"bytes", kernel.bytes}});
    }
    inputs.push_back({{"input", v.input},
                      {"verdict", replay::VerdictName(v.verdict)},
                      {"changed_bytes", v.changed_bytes},
                      {"compared_bytes", v.compared_bytes},
                      {"written_bytes", v.written_bytes},
                      {"output_bytes", v.output_bytes},
                      {"serial_runs", v.serial_runs},
                      {"graph_runs", v.graph_runs},
                      {"serial_repeatable", v.serial_differing_bytes == 0},
                      {"serial_differing_bytes", v.serial_differing_bytes},
                      {"graph_differing_bytes", v.graph_differing_bytes},
                      {"findings", FindingsJson(v.findings)},
                      {"unrepeatable_kernels", std::move(kernels)}});
  }
  json out = {{"passed", verify.passed},
              {"inputs", std::move(inputs)},
              {"notes", verify.notes}};
  if (verify.original.available) {
    out["recorded_program"] = {
        {"compared_bytes", verify.original.compared_bytes},
        {"differing_bytes", verify.original.differing_bytes},
        {"findings", FindingsJson(verify.original.findings)}};
  }
  return out;
}

}  // namespace

std::string Conclusion(const ReplayResult& result) {
  if (!result.verify) return "not verified (--verify)";
  if (!result.verify->passed) return "verification FAILED";
  bool identical = true;
  uint64_t compared = 0;
  for (const replay::InputVerdict& v : result.verify->inputs) {
    identical &= v.verdict == replay::Verdict::kIdentical;
    compared = std::max(compared, v.compared_bytes);
  }
  return absl::StrCat(
      identical ? "serial and graph leave identical memory"
                : "the graph differs only where serial runs differ",
      " on ", result.verify->inputs.size(), " inputs (", Bytes(compared), ")");
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
  if (!result.timings.empty()) {
    absl::StrAppendFormat(&out, "\n%-8s %12s %10s %10s %6s\n", "mode",
                          "median us", "+- us", "min us", "runs");
    for (const replay::Timing& t : result.timings) {
      absl::StrAppendFormat(&out, "%-8s %12.1f %10.1f %10.1f %6d\n", t.name,
                            t.median_us, t.spread_us, t.min_us, t.us.size());
    }
  }
  if (result.verify) AppendVerify(*result.verify, out);
  return out;
}

json ReplayToJson(const ReplayResult& result) {
  json timings = json::array();
  for (const replay::Timing& t : result.timings) {
    timings.push_back(
        {{"name", t.name},
         {"median_us", t.median_us},
         {"spread_us", t.spread_us},
         {"spread", t.median_us == 0 ? 0.0 : t.spread_us / t.median_us},
         {"min_us", t.min_us},
         {"runs", t.us.size()}});
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
  if (result.verify) out["verify"] = VerifyJson(*result.verify);
  return out;
}

}  // namespace heddle::tools
