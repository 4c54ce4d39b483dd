// SPDX-License-Identifier: Apache-2.0
// Whether a plan is for this trace, step and device.

#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/plan_file.h"

namespace heddle::plan {
namespace {

std::string Hex(const std::array<uint8_t, 16>& uuid) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(uuid.data()), uuid.size()));
}

std::string Shape(const std::array<uint32_t, 3>& size) {
  return absl::StrJoin(size, "x");
}

std::string Describe(const OperationIdentity& operation) {
  if (operation.kind != OperationKind::kKernel) return operation.name;
  return absl::StrCat(operation.name, " of image ", operation.image.ToHex(),
                      ", grid ", Shape(operation.grid), ", block ",
                      Shape(operation.block), ", ", operation.shared_bytes,
                      " bytes of shared memory, ", operation.param_bytes,
                      " of parameters");
}

}  // namespace

absl::Status CheckBinding(const PlanBinding& plan, const PlanBinding& here,
                          const std::string& name) {
  if (plan.trace != here.trace) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " was made for the trace with id ", Hex(plan.trace),
        ", and this one has id ", Hex(here.trace),
        ": give the trace that it was made from, or plan this one"));
  }
  if (plan.first_record != here.first_record ||
      plan.end_record != here.end_record) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " was made for records ", plan.first_record, " to ",
        plan.end_record, ", and this step has records ", here.first_record,
        " to ", here.end_record,
        ": choose the step that it was made for (--step), or plan this one"));
  }
  std::vector<std::string> differences;
  const auto compare = [&](absl::string_view what, const auto& of_plan,
                           const auto& of_here, bool known) {
    if (known && of_plan != of_here) {
      differences.push_back(
          absl::StrCat(what, " ", of_plan, ", and this one ", of_here));
    }
  };
  const auto chip = [](const PlanBinding& binding) {
    return absl::StrCat("sm_", binding.compute_major, binding.compute_minor);
  };
  compare("is", chip(plan), chip(here),
          plan.compute_major != 0 && here.compute_major != 0);
  compare("has multiprocessors:", plan.multiprocessors, here.multiprocessors,
          plan.multiprocessors != 0 && here.multiprocessors != 0);
  compare("is called", plan.device_name, here.device_name,
          !plan.device_name.empty() && !here.device_name.empty());
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      name, " was made for another device: that one ",
      absl::StrJoin(differences, "; that one "),
      ": choose that device (--device), or plan for this one (heddle plan "
      "--device)"));
}

absl::Status CheckOperations(absl::Span<const OperationIdentity> plan,
                             absl::Span<const OperationIdentity> here,
                             const std::string& name) {
  if (plan.size() != here.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " is for ", plan.size(), " operations, and the step has ",
        here.size(), ": plan it again"));
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i] == here[i]) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        name, " is for another step: operation ", i, " is ", Describe(plan[i]),
        " there, and ", Describe(here[i]), " here: plan it again"));
  }
  return absl::OkStatus();
}

}  // namespace heddle::plan
