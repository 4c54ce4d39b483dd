// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/plan_entry.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/plan/explain.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_format.h"
#include "runtime/trace/format.h"

namespace heddle::plan {
namespace {

void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "the plan reader broke a promise: %s\n", what);
  std::abort();
}

void Read(absl::Span<const uint8_t> bytes) {
  const absl::StatusOr<PlanFile> file = ParsePlan(bytes, "input");
  if (!file.ok()) {
    Require(absl::IsInvalidArgument(file.status()) ||
                absl::IsFailedPrecondition(file.status()) ||
                absl::IsUnimplemented(file.status()),
            "the status is a documented one");
    return;
  }
  const Plan& plan = file->plan;
  Require(plan.nodes.size() == file->operations.size(), "one node a operation");
  for (const PlannedEdge& edge : plan.edges) {
    Require(
        edge.edge.from < plan.nodes.size() && edge.edge.to < plan.nodes.size(),
        "edges are between nodes");
  }
  // What was read can be used, and written again.
  PlanInput input;
  for (const OperationIdentity& operation : file->operations) {
    input.graph.nodes.emplace_back().kernel =
        operation.kind == OperationKind::kKernel;
  }
  Require(
      ExplainPlan(input, plan, file->costs).ok() || plan.nodes.size() > 10000,
      "it can be explained");
  const absl::StatusOr<std::vector<uint8_t>> again = SerializePlan(*file);
  Require(again.ok(), "what was read can be written");
  const absl::StatusOr<PlanFile> second = ParsePlan(*again, "again");
  Require(second.ok(), "and read again");
  Require(second->operations == file->operations &&
              second->plan.edges.size() == plan.edges.size(),
          "and is the same");
}

}  // namespace

void FuzzPlanFile(absl::Span<const uint8_t> bytes) {
  Read(bytes);
  PlanHeader header{};
  header.magic = kPlanMagic;
  header.version = kPlanVersion;
  header.min_reader_version = kMinPlanReaderVersion;
  header.payload_bytes = bytes.size();
  header.payload_checksum = trace::HashBytes64(bytes.data(), bytes.size());
  header.checksum = trace::HashBytes64(&header, offsetof(PlanHeader, checksum));
  std::vector<uint8_t> file(sizeof(header) + bytes.size());
  std::memcpy(file.data(), &header, sizeof(header));
  if (!bytes.empty()) {
    std::memcpy(file.data() + sizeof(header), bytes.data(), bytes.size());
  }
  Read(file);
}

}  // namespace heddle::plan
