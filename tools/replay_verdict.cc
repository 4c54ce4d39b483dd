// SPDX-License-Identifier: Apache-2.0
#include "tools/replay_verdict.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/report/summary.h"
#include "tools/names.h"

namespace heddle::tools {
namespace {

using nlohmann::json;

// "serial, graph and O1 programmatic".
std::string Enumerate(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) absl::StrAppend(&text, i + 1 < names.size() ? ", " : " and ");
    absl::StrAppend(&text, names[i]);
  }
  return text;
}

std::string VerdictText(replay::Verdict verdict, uint64_t differing_bytes) {
  switch (verdict) {
    case replay::Verdict::kIdentical:
      return "identical";
    case replay::Verdict::kWithinSerial:
      return "differs only where serial runs differ";
    case replay::Verdict::kDifferent:
      return absl::StrCat("DIFFERENT in ", differing_bytes, " bytes");
  }
  return "unknown";
}

std::string VerdictText(const replay::InputVerdict& v) {
  uint64_t differing_bytes = 0;
  std::vector<std::string> runs = {absl::StrCat(v.serial_runs, " serial")};
  for (const replay::FormVerdict& form : v.forms) {
    differing_bytes = std::max(differing_bytes, form.differing_bytes);
    runs.push_back(absl::StrCat(form.runs, " ", form.name));
  }
  std::string text = absl::StrCat("input ", v.input, ": ",
                                  VerdictText(v.verdict(), differing_bytes));
  absl::StrAppend(&text, " (", Enumerate(runs), " runs; ",
                  Bytes(v.compared_bytes), " compared, ",
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

}  // namespace

void AppendVerify(const replay::VerifyResult& verify, std::string& out) {
  absl::StrAppend(&out, "\nverify: ", verify.passed ? "passed" : "FAILED",
                  "\n");
  for (const replay::InputVerdict& v : verify.inputs) {
    absl::StrAppend(&out, "  ", VerdictText(v), "\n");
    const bool same = v.verdict() == replay::Verdict::kIdentical;
    for (const replay::FormVerdict& form : v.forms) {
      if (!same && v.forms.size() > 1) {
        absl::StrAppend(&out, "   ", form.name, ": ",
                        VerdictText(form.verdict, form.differing_bytes), "\n");
      }
      AppendFindings(form.findings, out);
    }
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
    json forms = json::array();
    uint64_t graph_runs = 0;
    uint64_t graph_differing_bytes = 0;
    json findings = json::array();  // of the graph
    for (const replay::FormVerdict& form : v.forms) {
      forms.push_back({{"name", form.name},
                       {"verdict", replay::VerdictName(form.verdict)},
                       {"runs", form.runs},
                       {"differing_bytes", form.differing_bytes},
                       {"findings", FindingsJson(form.findings)}});
      if (form.name != "graph") continue;
      graph_runs = static_cast<uint64_t>(form.runs);
      graph_differing_bytes = form.differing_bytes;
      findings = FindingsJson(form.findings);
    }
    inputs.push_back({{"input", v.input},
                      {"verdict", replay::VerdictName(v.verdict())},
                      {"forms", std::move(forms)},
                      {"changed_bytes", v.changed_bytes},
                      {"compared_bytes", v.compared_bytes},
                      {"written_bytes", v.written_bytes},
                      {"output_bytes", v.output_bytes},
                      {"serial_runs", v.serial_runs},
                      {"graph_runs", graph_runs},
                      {"serial_repeatable", v.serial_differing_bytes == 0},
                      {"serial_differing_bytes", v.serial_differing_bytes},
                      {"graph_differing_bytes", graph_differing_bytes},
                      {"findings", std::move(findings)},
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

std::string Conclusion(const ReplayResult& result) {
  if (!result.verify) return "not verified (--verify)";
  if (!result.verify->passed) return "verification FAILED";
  bool identical = true;
  uint64_t compared = 0;
  std::vector<std::string> names = {"serial"};
  for (const replay::InputVerdict& v : result.verify->inputs) {
    identical &= v.verdict() == replay::Verdict::kIdentical;
    compared = std::max(compared, v.compared_bytes);
    names.resize(1);
    for (const replay::FormVerdict& form : v.forms) names.push_back(form.name);
  }
  const std::string what =
      identical ? absl::StrCat(Enumerate(names), " leave identical memory")
                : absl::StrCat(Enumerate({names.begin() + 1, names.end()}),
                               " differ only where serial runs differ");
  return absl::StrCat(what, " on ", result.verify->inputs.size(), " inputs (",
                      Bytes(compared), ")");
}

}  // namespace heddle::tools
