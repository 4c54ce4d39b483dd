// SPDX-License-Identifier: Apache-2.0
// Reading plan files. Nothing in them is believed: a wrong plan, run, is a
// wrong result without a word.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "heddle/plan_generated.h"
#include "runtime/plan/graph_shape.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_format.h"
#include "runtime/trace/file_kind.h"
#include "runtime/trace/format.h"

namespace heddle::plan {
namespace {

namespace fb = planfb;

// Tables in a payload; more than kMaxPlanBytes could hold of any use.
constexpr flatbuffers::uoffset_t kMaxTables = 1u << 24;

std::string TextOf(const flatbuffers::String* text) {
  return text == nullptr ? "" : text->str();
}

std::array<uint32_t, 3> ToArray(const fb::Dim3* size) {
  if (size == nullptr) return {};
  return {size->x(), size->y(), size->z()};
}

bool IsTime(double us) { return std::isfinite(us) && us >= 0; }

// The payload of a file, already verified as a FlatBuffer.
class PayloadParser {
 public:
  PayloadParser(const fb::Plan& in, const std::string& name)
      : in_(in), name_(name) {}

  absl::StatusOr<PlanFile> Parse() {
    if (absl::Status s = ParseHead(); !s.ok()) return s;
    const auto* nodes = in_.nodes();
    for (uint32_t i = 0; nodes != nullptr && i < nodes->size(); ++i) {
      if (absl::Status s = ParseNode(i, *nodes->Get(i)); !s.ok()) return s;
    }
    const auto* edges = in_.edges();
    for (uint32_t i = 0; edges != nullptr && i < edges->size(); ++i) {
      if (absl::Status s = ParseEdge(i, *edges->Get(i)); !s.ok()) return s;
    }
    if (absl::Status s = CheckGraph(); !s.ok()) return s;
    for (uint32_t i = 0; in_.notes() != nullptr && i < in_.notes()->size();
         ++i) {
      out_.plan.notes.push_back(TextOf(in_.notes()->Get(i)));
    }
    return std::move(out_);
  }

 private:
  template <typename... Parts>
  absl::Status Wrong(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(
        name_, " contradicts itself: ", parts..., "; make the plan again"));
  }
  absl::Status Unknown(absl::string_view what, int value) const {
    return absl::UnimplementedError(
        absl::StrCat(name_, " uses a ", what, " (", value,
                     ") that this version does not know: update heddle"));
  }

  absl::Status ParseHead() {
    const fb::Binding* binding = in_.binding();
    if (binding == nullptr || binding->trace() == nullptr) {
      return Wrong("it does not say what trace it is for");
    }
    PlanBinding& to = out_.binding;
    std::copy_n(binding->trace()->bytes()->begin(), to.trace.size(),
                to.trace.begin());
    to.first_record = binding->first_record();
    to.end_record = binding->end_record();
    to.device_name = TextOf(binding->device_name());
    to.compute_major = binding->compute_major();
    to.compute_minor = binding->compute_minor();
    to.multiprocessors = binding->multiprocessors();
    to.driver_version = binding->driver_version();
    if (in_.level() < fb::Level::MIN || in_.level() > fb::Level::MAX) {
      return Unknown("level", static_cast<int>(in_.level()));
    }
    if (in_.style() > fb::Style::MAX) {
      return Unknown("style", static_cast<int>(in_.style()));
    }
    out_.plan.level = static_cast<Level>(in_.level());
    out_.plan.style = static_cast<Style>(in_.style());
    out_.plan.branches = in_.branches();
    out_.max_branches = in_.max_branches();
    out_.costs = {in_.full_edge_us(), in_.early_edge_us(),
                  in_.branch_edge_us()};
    out_.plan.graph_us = in_.graph_us();
    out_.plan.estimate_us = in_.estimate_us();
    for (const double us :
         {out_.costs.full_us, out_.costs.early_us, out_.costs.branch_us,
          out_.plan.graph_us, out_.plan.estimate_us}) {
      if (!IsTime(us)) return Wrong("a time of ", us, " us");
    }
    if (out_.plan.branches < 1 || out_.plan.branches > kMaxBranches) {
      return Wrong(out_.plan.branches, " branches");
    }
    out_.durations_from = TextOf(in_.durations_from());
    return absl::OkStatus();
  }

  absl::Status ParseNode(uint32_t index, const fb::Node& node) {
    OperationIdentity& operation = out_.operations.emplace_back();
    PlannedNode& planned = out_.plan.nodes.emplace_back();
    if (node.kind() > fb::NodeKind::MAX) {
      return Unknown("kind of node", static_cast<int>(node.kind()));
    }
    if (node.prologue() > fb::Prologue::MAX) {
      return Unknown("prologue", static_cast<int>(node.prologue()));
    }
    operation.kind = static_cast<OperationKind>(node.kind());
    operation.name = TextOf(node.name());
    planned.prologue = static_cast<cubin::Prologue>(node.prologue());
    planned.branch = node.branch();
    planned.duration_us = node.duration_us();
    planned.start_us = node.start_us();
    if (operation.kind == OperationKind::kKernel) {
      const auto* images = in_.binding()->images();
      if (images == nullptr || node.image() < 0 ||
          static_cast<uint32_t>(node.image()) >= images->size()) {
        return Wrong("node ", index, " is from image ", node.image(),
                     ", which it does not list");
      }
      const fb::Hash128& hash =
          *images->Get(static_cast<uint32_t>(node.image()));
      operation.image = {hash.lo(), hash.hi()};
      operation.grid = ToArray(node.grid());
      operation.block = ToArray(node.block());
      operation.shared_bytes = node.shared_bytes();
      operation.param_bytes = node.param_bytes();
    } else if (planned.prologue != cubin::Prologue::kNone) {
      return Wrong("node ", index, " is no kernel and has a prologue");
    }
    if (planned.branch >= out_.plan.branches) {
      return Wrong("node ", index, " is on branch ", planned.branch, " of ",
                   out_.plan.branches);
    }
    if (!IsTime(planned.duration_us) || !IsTime(planned.start_us)) {
      return Wrong("node ", index, " starts at ", planned.start_us,
                   " us and takes ", planned.duration_us, " us");
    }
    return absl::OkStatus();
  }

  absl::Status ParseEdge(uint32_t index, const fb::Edge& edge) {
    PlannedEdge& planned = out_.plan.edges.emplace_back();
    if (edge.mechanism() > fb::Mechanism::MAX) {
      return Unknown("mechanism of an edge",
                     static_cast<int>(edge.mechanism()));
    }
    planned.edge = {edge.from(), edge.to(), edge.type(), edge.from_port(),
                    edge.to_port()};
    if (static_cast<fb::Mechanism>(MechanismOf(planned.edge)) !=
        edge.mechanism()) {
      return Wrong("edge ", index, " has type ", edge.type(), " and port ",
                   edge.from_port(), ", which is not its mechanism");
    }
    out_.plan.converted += IsFull(planned.edge) ? 0 : 1;
    out_.plan.launch_order +=
        planned.edge.from_port == kPortLaunchOrder ? 1 : 0;
    const auto* reasons = edge.reasons();
    for (uint32_t i = 0; reasons != nullptr && i < reasons->size(); ++i) {
      const fb::Reason& reason = *reasons->Get(i);
      if (reason.hazard() > fb::Hazard::MAX) {
        return Unknown("hazard", static_cast<int>(reason.hazard()));
      }
      planned.reasons.push_back({static_cast<Hazard>(reason.hazard()),
                                 {reason.address(), reason.size()},
                                 reason.bytes()});
    }
    return absl::OkStatus();
  }

  // Indices, cycles, doubled edges and edge data.
  absl::Status CheckGraph() const {
    std::vector<Node> nodes(out_.operations.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].kernel = out_.operations[i].kind == OperationKind::kKernel;
    }
    const auto shape = ShapeOf(nodes, out_.plan.Overlap().edges);
    return shape.ok() ? absl::OkStatus() : Wrong(shape.status().message());
  }

  const fb::Plan& in_;
  const std::string& name_;
  PlanFile out_;
};

absl::Status CheckHeader(absl::Span<const uint8_t> bytes,
                         const std::string& name) {
  if (bytes.size() < kPlanMagic.size() ||
      !std::equal(kPlanMagic.begin(), kPlanMagic.end(), bytes.begin())) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is not a heddle plan: it ", trace::DescribeFile(bytes)));
  }
  PlanHeader header{};
  if (bytes.size() < sizeof(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is cut within its header: it has ", bytes.size(),
                     " of ", sizeof(header), " bytes; make the plan again"));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.checksum !=
      trace::HashBytes64(bytes.data(), offsetof(PlanHeader, checksum))) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        ": the header is damaged (its checksum does not match); make the "
        "plan again"));
  }
  if (header.min_reader_version > kPlanVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " has plan version ", header.version,
        " and needs a reader of version ", header.min_reader_version,
        " at least; this is version ", kPlanVersion, ": update heddle"));
  }
  const uint64_t present = bytes.size() - sizeof(header);
  if (present != header.payload_bytes || present > kMaxPlanBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is ", present < header.payload_bytes ? "cut" : "too long", ": ",
        present, " bytes after the header, which says ", header.payload_bytes,
        "; make the plan again"));
  }
  if (header.payload_checksum !=
      trace::HashBytes64(bytes.data() + sizeof(header), present)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " is damaged (its checksum does not match); make the plan again"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanFile> ParsePlan(absl::Span<const uint8_t> bytes,
                                   const std::string& name) {
  if (absl::Status s = CheckHeader(bytes, name); !s.ok()) return s;
  // FlatBuffers reads aligned words.
  const std::vector<uint8_t> payload(bytes.begin() + sizeof(PlanHeader),
                                     bytes.end());
  flatbuffers::Verifier verifier(payload.data(), payload.size(),
                                 /*max_depth=*/16, kMaxTables);
  if (!verifier.VerifyBuffer<fb::Plan>(nullptr)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " holds no well-formed plan; make the plan again"));
  }
  return PayloadParser(*flatbuffers::GetRoot<fb::Plan>(payload.data()), name)
      .Parse();
}

absl::StatusOr<PlanFile> ReadPlanFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = file ? static_cast<int64_t>(file.tellg()) : -1;
  if (size < 0) {
    const std::string why = absl::StrCat(
        "cannot read ", path, ": ", std::strerror(errno == 0 ? EIO : errno));
    return errno == ENOENT ? absl::NotFoundError(why)
                           : absl::UnavailableError(why);
  }
  if (static_cast<uint64_t>(size) > kMaxPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a heddle plan: it has ", size, " bytes"));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) {
    return absl::UnavailableError(
        absl::StrCat("cannot read ", path, ": it is no regular file"));
  }
  return ParsePlan(bytes, path);
}

}  // namespace heddle::plan
