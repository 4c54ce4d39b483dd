// SPDX-License-Identifier: Apache-2.0
//
// What `heddle plan` prints.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/rewrite/rewriter.h"
#include "tools/names.h"
#include "tools/plan_run.h"

namespace heddle::tools {
namespace {

using nlohmann::json;

std::string ReasonText(const plan::Reason& reason) {
  std::string text(plan::HazardName(reason.hazard));
  if (reason.bytes == 0) return text;
  absl::StrAppend(&text, " of ", Bytes(reason.bytes), " at ",
                  Hex(reason.first.address));
  if (reason.first.size != reason.bytes) absl::StrAppend(&text, " and on");
  return text;
}

std::string ReasonsText(const plan::Boundary& boundary) {
  if (boundary.reasons.empty()) {
    return boundary.relation == plan::Relation::kEdge
               ? "no bytes force it (a branch is a line)"
               : "no bytes force it";
  }
  return absl::StrJoin(boundary.reasons, ", ",
                       [](std::string* out, const plan::Reason& reason) {
                         absl::StrAppend(out, ReasonText(reason));
                       });
}

json ReasonsJson(const std::vector<plan::Reason>& reasons) {
  json out = json::array();
  for (const plan::Reason& reason : reasons) {
    json item = {{"hazard", absl::StrCat(plan::HazardName(reason.hazard))}};
    if (reason.bytes != 0) {
      item["bytes"] = reason.bytes;
      item["first"] = {{"address", Hex(reason.first.address)},
                       {"size", reason.first.size}};
    }
    out.push_back(std::move(item));
  }
  return out;
}

// How the later of a boundary's operations waits.
std::string HowText(const plan::Boundary& boundary) {
  if (boundary.relation != plan::Relation::kEdge) {
    return absl::StrCat(plan::RelationName(boundary.relation));
  }
  return absl::StrCat(plan::MechanismName(boundary.mechanism));
}

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

void AppendBoundaries(const PlanRunResult& result, std::string& out) {
  absl::StrAppend(&out, "\n");
  for (const plan::Boundary& boundary : result.boundaries) {
    absl::StrAppendFormat(
        &out, "#%-5d %s -> %s\n       %s; %s; %+.2f us\n", boundary.later,
        Printable(Demangle(result.names[boundary.earlier])),
        Printable(Demangle(result.names[boundary.later])), HowText(boundary),
        ReasonsText(boundary), boundary.gain_us);
  }
}

json BoundariesJson(const PlanRunResult& result) {
  json out = json::array();
  for (const plan::Boundary& boundary : result.boundaries) {
    json item = {{"earlier", boundary.earlier},
                 {"later", boundary.later},
                 {"earlier_name", Demangle(result.names[boundary.earlier])},
                 {"later_name", Demangle(result.names[boundary.later])},
                 {"relation", absl::StrCat(RelationName(boundary.relation))},
                 {"reasons", ReasonsJson(boundary.reasons)},
                 {"gain_us", boundary.gain_us}};
    if (boundary.relation == plan::Relation::kEdge) {
      item["mechanism"] = absl::StrCat(MechanismName(boundary.mechanism));
    }
    out.push_back(std::move(item));
  }
  return out;
}

uint64_t KernelsOf(const plan::PlanFile& file) {
  return static_cast<uint64_t>(
      std::count_if(file.operations.begin(), file.operations.end(),
                    [](const plan::OperationIdentity& operation) {
                      return operation.kind == plan::OperationKind::kKernel;
                    }));
}

uint64_t PatchedOf(const plan::Plan& plan) {
  return static_cast<uint64_t>(std::count_if(
      plan.nodes.begin(), plan.nodes.end(), [](const plan::PlannedNode& node) {
        return node.prologue != cubin::Prologue::kNone;
      }));
}

}  // namespace

std::string PlanToText(const PlanRunResult& result) {
  const plan::Plan& plan = result.file.plan;
  std::string out = FileName(result.trace);
  if (result.step.index >= 0) {
    absl::StrAppend(&out, ", step ", result.step.index, " (",
                    result.step.source, ", ", result.step.total, " in all)");
  }
  absl::StrAppend(&out, ": ", plan.nodes.size(), " operations, ",
                  KernelsOf(result.file), " of them kernels\n");
  absl::StrAppend(&out, plan::LevelName(plan.level), " ",
                  rewrite::StyleName(plan.style), ": ");
  if (plan.level == plan::Level::kO2) {
    absl::StrAppend(&out, plan.branches,
                    plan.branches == 1 ? " branch" : " branches", " (",
                    result.file.max_branches, " allowed), ");
  }
  absl::StrAppend(&out, plan.edges.size(), " edges, ", plan.converted,
                  " of them early");
  if (plan.launch_order != 0) {
    absl::StrAppend(&out, " (", plan.launch_order, " by launch order)");
  }
  absl::StrAppend(&out, ", ", PatchedOf(plan), " kernels with a prologue\n");
  absl::StrAppendFormat(
      &out, "estimate: %.1f us, the program's graph %.1f us (x%.3f)\n",
      plan.estimate_us, plan.graph_us,
      plan.estimate_us > 0 ? plan.graph_us / plan.estimate_us : 1.0);
  absl::StrAppend(&out, "durations: ", result.file.durations_from, "\n");
  for (const std::string& note : plan.notes) {
    absl::StrAppend(&out, "  ", Printable(note), "\n");
  }
  if (!result.boundaries.empty()) AppendBoundaries(result, out);
  return out;
}

json PlanToJson(const PlanRunResult& result) {
  const plan::Plan& plan = result.file.plan;
  json out = {{"schema", 1},
              {"trace", result.trace},
              {"step",
               {{"index", result.step.index},
                {"total", result.step.total},
                {"source", result.step.source},
                {"first_record", result.step.bounds.first_record},
                {"end_record", result.step.bounds.end_record}}},
              {"level", absl::StrCat(plan::LevelName(plan.level))},
              {"style", absl::StrCat(rewrite::StyleName(plan.style))},
              {"branches", plan.branches},
              {"max_branches", result.file.max_branches},
              {"operations", plan.nodes.size()},
              {"kernels", KernelsOf(result.file)},
              {"patched", PatchedOf(plan)},
              {"edges",
               {{"total", plan.edges.size()},
                {"early", plan.converted},
                {"launch_order", plan.launch_order}}},
              {"graph_us", plan.graph_us},
              {"estimate_us", plan.estimate_us},
              {"durations_from", result.file.durations_from},
              {"notes", plan.notes}};
  if (!result.boundaries.empty()) out["boundaries"] = BoundariesJson(result);
  return out;
}

}  // namespace heddle::tools
