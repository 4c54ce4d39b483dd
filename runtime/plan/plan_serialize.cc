// SPDX-License-Identifier: Apache-2.0
// Writing plan files.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "heddle/plan_generated.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_format.h"
#include "runtime/trace/format.h"

namespace heddle::plan {
namespace {

namespace fb = planfb;

fb::Dim3 ToDim3(const std::array<uint32_t, 3>& size) {
  return fb::Dim3(size[0], size[1], size[2]);
}

class Builder {
 public:
  explicit Builder(const PlanFile& file) : file_(file) {}

  std::vector<uint8_t> Payload() {
    fb::PlanT plan;
    plan.binding = Binding();
    plan.level = static_cast<fb::Level>(file_.plan.level);
    plan.style = static_cast<fb::Style>(file_.plan.style);
    plan.max_branches = file_.max_branches;
    plan.branches = file_.plan.branches;
    plan.full_edge_us = file_.costs.full_us;
    plan.early_edge_us = file_.costs.early_us;
    plan.branch_edge_us = file_.costs.branch_us;
    plan.durations_from = file_.durations_from;
    plan.graph_us = file_.plan.graph_us;
    plan.estimate_us = file_.plan.estimate_us;
    for (size_t i = 0; i < file_.operations.size(); ++i) {
      plan.nodes.push_back(Node(file_.operations[i], file_.plan.nodes[i]));
    }
    plan.binding->images = images_;
    for (const PlannedEdge& edge : file_.plan.edges) {
      plan.edges.push_back(Edge(edge));
    }
    plan.notes = file_.plan.notes;
    plan.heddle_version = HEDDLE_VERSION;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::Plan::Pack(builder, &plan));
    return {builder.GetBufferPointer(),
            builder.GetBufferPointer() + builder.GetSize()};
  }

 private:
  std::unique_ptr<fb::BindingT> Binding() const {
    auto binding = std::make_unique<fb::BindingT>();
    binding->trace = std::make_unique<fb::Uuid>(
        flatbuffers::span<const uint8_t, 16>(file_.binding.trace.data(), 16));
    binding->first_record = file_.binding.first_record;
    binding->end_record = file_.binding.end_record;
    binding->device_name = file_.binding.device_name;
    binding->compute_major = file_.binding.compute_major;
    binding->compute_minor = file_.binding.compute_minor;
    binding->multiprocessors = file_.binding.multiprocessors;
    binding->driver_version = file_.binding.driver_version;
    return binding;
  }

  std::unique_ptr<fb::NodeT> Node(const OperationIdentity& operation,
                                  const PlannedNode& planned) {
    auto node = std::make_unique<fb::NodeT>();
    node->kind = static_cast<fb::NodeKind>(operation.kind);
    node->name = operation.name;
    if (operation.kind == OperationKind::kKernel) {
      const auto [known, added] = image_index_.insert(
          {operation.image, static_cast<int32_t>(images_.size())});
      if (added) images_.emplace_back(operation.image.lo, operation.image.hi);
      node->image = known->second;
      node->grid = std::make_unique<fb::Dim3>(ToDim3(operation.grid));
      node->block = std::make_unique<fb::Dim3>(ToDim3(operation.block));
      node->shared_bytes = operation.shared_bytes;
      node->param_bytes = operation.param_bytes;
    }
    node->prologue = static_cast<fb::Prologue>(planned.prologue);
    node->branch = planned.branch;
    node->duration_us = planned.duration_us;
    node->start_us = planned.start_us;
    return node;
  }

  static std::unique_ptr<fb::EdgeT> Edge(const PlannedEdge& planned) {
    auto edge = std::make_unique<fb::EdgeT>();
    edge->from = planned.edge.from;
    edge->to = planned.edge.to;
    edge->type = planned.edge.type;
    edge->from_port = planned.edge.from_port;
    edge->to_port = planned.edge.to_port;
    edge->mechanism = static_cast<fb::Mechanism>(MechanismOf(planned.edge));
    for (const Reason& reason : planned.reasons) {
      auto& out = edge->reasons.emplace_back(std::make_unique<fb::ReasonT>());
      out->hazard = static_cast<fb::Hazard>(reason.hazard);
      out->address = reason.first.address;
      out->size = reason.first.size;
      out->bytes = reason.bytes;
    }
    return edge;
  }

  const PlanFile& file_;
  absl::flat_hash_map<trace::Hash128, int32_t> image_index_;
  std::vector<fb::Hash128> images_;
};

absl::Status FileError(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

bool WriteAll(int fd, absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> SerializePlan(const PlanFile& file) {
  if (file.operations.size() != file.plan.nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a plan for ", file.plan.nodes.size(),
                     " operations that names ", file.operations.size()));
  }
  const std::vector<uint8_t> payload = Builder(file).Payload();
  PlanHeader header{};
  header.magic = kPlanMagic;
  header.version = kPlanVersion;
  header.min_reader_version = kMinPlanReaderVersion;
  header.payload_bytes = payload.size();
  header.payload_checksum = trace::HashBytes64(payload.data(), payload.size());
  header.checksum = trace::HashBytes64(&header, offsetof(PlanHeader, checksum));
  std::vector<uint8_t> bytes(sizeof(header) + payload.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), payload.data(), payload.size());
  // Nothing is written that a replay would have to refuse.
  if (absl::Status s = ParsePlan(bytes, "the plan").status(); !s.ok()) {
    return absl::InvalidArgumentError(s.message());
  }
  return bytes;
}

absl::Status WritePlanFile(const PlanFile& file, const std::string& path) {
  const absl::StatusOr<std::vector<uint8_t>> bytes = SerializePlan(file);
  if (!bytes.ok()) return bytes.status();
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no regular file: choose another name"));
  }
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".partial");
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return FileError("create", temporary);
  absl::Status result;
  if (!WriteAll(fd, *bytes) || fsync(fd) != 0) {
    result = FileError("write", temporary);
  }
  if (close(fd) != 0 && result.ok()) result = FileError("write", temporary);
  if (result.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    result = FileError("rename a file to", path);
  }
  if (!result.ok()) unlink(temporary.c_str());
  return result;
}

}  // namespace heddle::plan
