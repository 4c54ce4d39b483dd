// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_PLAN_FILE_H_
#define HEDDLE_RUNTIME_PLAN_PLAN_FILE_H_

// Plan files (.hplan): a plan with what it was made for. traces/FORMAT.md
// describes the bytes, plan.fbs the payload.
//
// What is read is whole and consistent in itself: sizes, indices, enumerators,
// edge data. Whether it is right for a step is another question, which
// CheckBinding, CheckOperations and CheckPlan (plan.h) answer; ask it before
// every use. Any thread.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/plan/plan.h"

namespace heddle::plan {

// Of the format that is written, and the oldest reader that understands it.
inline constexpr uint32_t kPlanVersion = 1;
inline constexpr uint32_t kMinPlanReaderVersion = 1;
// Larger files are no plans.
inline constexpr uint64_t kMaxPlanBytes = uint64_t{1} << 30;

// What a plan was made for.
struct PlanBinding {
  std::array<uint8_t, 16> trace{};  // trace::Header::uuid
  uint64_t first_record = 0;        // of the step
  uint64_t end_record = 0;          // half open
  std::string device_name;
  int32_t compute_major = 0;
  int32_t compute_minor = 0;
  uint32_t multiprocessors = 0;
  int32_t driver_version = 0;  // cuDriverGetVersion; 0: not known
};

enum class OperationKind : uint8_t { kEmpty, kKernel, kCopy, kFill };

// What an operation of the step must be.
struct OperationIdentity {
  OperationKind kind = OperationKind::kEmpty;
  std::string name;      // mangled kernel, or what the operation is
  trace::Hash128 image;  // kernels: of the image
  std::array<uint32_t, 3> grid{};
  std::array<uint32_t, 3> block{};
  uint32_t shared_bytes = 0;  // dynamic
  uint32_t param_bytes = 0;
  friend bool operator==(const OperationIdentity&,
                         const OperationIdentity&) = default;
};

struct PlanFile {
  PlanBinding binding;
  std::vector<OperationIdentity> operations;  // one for each plan.nodes
  Plan plan;
  uint32_t max_branches = 1;  // as asked for
  EdgeCosts costs;
  std::string durations_from;  // "measured on …", "all equal", for people
};

// The bytes of a file. InvalidArgument: a plan that could not be read again.
absl::StatusOr<std::vector<uint8_t>> SerializePlan(const PlanFile& file);

// Writes under a temporary name beside `path` and renames, so that `path` is a
// whole plan or what it was before. The error is the system's.
absl::Status WritePlanFile(const PlanFile& file, const std::string& path);

// `name` is for messages. InvalidArgument: no plan, damaged, or inconsistent;
// FailedPrecondition: needs a newer reader; Unimplemented: a mechanism or level
// that this version does not know.
absl::StatusOr<PlanFile> ParsePlan(absl::Span<const uint8_t> bytes,
                                   const std::string& name);

// NotFound and what else the system says, or as ParsePlan.
absl::StatusOr<PlanFile> ReadPlanFile(const std::string& path);

// FailedPrecondition if the plan `name` was made for another trace, step or
// device than `here`: the message says what differs and what to do. What is not
// known on one side (empty, 0) is not compared, nor is the driver's version: a
// plan stays right with another driver, if perhaps not the fastest.
absl::Status CheckBinding(const PlanBinding& plan, const PlanBinding& here,
                          const std::string& name);

// FailedPrecondition if the step's operations are not those of the plan `name`,
// naming the first that differs.
absl::Status CheckOperations(absl::Span<const OperationIdentity> plan,
                             absl::Span<const OperationIdentity> here,
                             const std::string& name);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_PLAN_FILE_H_
