// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/access/extents.h"
#include "runtime/replay/program_builder.h"

namespace heddle::replay {

using access::Extent;
using access::ExtentSet;
namespace {

// Device work that was run, whatever became of it.
bool IsWork(const trace::Record& record) {
  switch (record.type) {
    case fb::RecordType::kLaunch:
      return !record.As<fb::Launch>()->capturing();
    case fb::RecordType::kMemcpy:
      return !record.As<fb::Memcpy>()->capturing();
    case fb::RecordType::kMemset:
      return !record.As<fb::Memset>()->capturing();
    case fb::RecordType::kMemOp:
      return !record.As<fb::MemOp>()->capturing();
    case fb::RecordType::kGraphLaunch:
      return !record.As<fb::GraphLaunch>()->capturing();
    default:
      return false;
  }
}

// The last snapshot of which only records without work lie between it and the
// step's first work; else the last one before the step.
uint64_t FindSnapshot(const trace::Reader& reader, const StepBounds& bounds) {
  const auto records = reader.records();
  uint64_t last = kNoRecord;
  for (uint64_t i = 0; i < bounds.end_record; ++i) {
    if (i >= bounds.first_record && IsWork(records[i])) break;
    if (records[i].type == fb::RecordType::kSnapshot) last = i;
  }
  return last;
}

// Memory as the program had it once the step's work was done.
uint64_t FindEndSnapshot(const trace::Reader& reader,
                         const StepBounds& bounds) {
  const auto records = reader.records();
  uint64_t found = kNoRecord;
  for (uint64_t i = bounds.first_record; i < records.size(); ++i) {
    if (IsWork(records[i])) {
      if (i >= bounds.end_record) break;
      found = kNoRecord;
    } else if (const auto* s = records[i].As<fb::Snapshot>();
               s != nullptr && s->when() == fb::SnapshotWhen::kStepEnd &&
               found == kNoRecord) {
      found = i;
    }
  }
  return found;
}

struct SnapshotContent {
  std::vector<Content> ranges;
  bool complete = false;
  std::string policy;
};

absl::StatusOr<SnapshotContent> ReadSnapshot(const trace::Reader& reader,
                                             uint64_t index) {
  const auto records = reader.records();
  const auto* snapshot = records[index].As<fb::Snapshot>();
  SnapshotContent result;
  if (snapshot->policy() != nullptr) {
    result.policy = snapshot->policy()->str();
  }
  for (uint64_t i = index + 1; i < records.size(); ++i) {
    if (records[i].type == fb::RecordType::kSnapshot) break;
    const auto* range = records[i].As<fb::MemoryRange>();
    if (range == nullptr || range->snapshot() != snapshot->id()) continue;
    Content content;
    content.address = range->address();
    content.size = range->size();
    content.fill = range->fill();
    content.likely = range->likely();
    content.mean = range->mean();
    content.stddev = range->stddev();
    if (range->hash() != nullptr) {
      content.hash = {range->hash()->lo(), range->hash()->hi()};
    }
    if (content.size > ~uint64_t{0} - content.address) {
      return absl::InvalidArgumentError(absl::StrCat(
          "record ", i, ": memory range of ", content.size, " bytes at 0x",
          absl::Hex(content.address), " wraps around: the trace is damaged"));
    }
    if (content.size != 0) result.ranges.push_back(content);
  }
  result.complete =
      snapshot->complete() && result.ranges.size() >= snapshot->ranges();
  std::stable_sort(
      result.ranges.begin(), result.ranges.end(),
      [](const Content& a, const Content& b) { return a.address < b.address; });
  return result;
}

ExtentSet AllocatedExtents(const Program& program, bool at_start) {
  std::vector<Extent> extents;
  for (const Allocation& a : program.allocations) {
    if (!at_start || !a.inside) extents.push_back({a.address, a.size});
  }
  return ExtentSet(std::move(extents));
}

ExtentSet ContentExtents(const Program& program) {
  std::vector<Extent> extents;
  for (const Content& c : program.content) {
    extents.push_back({c.address, c.size});
  }
  return ExtentSet(std::move(extents));
}

// Memory that the snapshot saw and no allocation record covers: allocated
// before recording began.
void AddUnrecordedAllocations(Program& program) {
  std::vector<Extent> variables;
  for (const ModuleVariable& v : program.variables) {
    variables.push_back({v.address, v.size});
  }
  const ExtentSet unrecorded =
      ContentExtents(program)
          .Minus(AllocatedExtents(program, /*at_start=*/false))
          .Minus(ExtentSet(std::move(variables)));
  for (const Extent& extent : unrecorded.extents()) {
    program.allocations.push_back(
        {extent.address, extent.size, fb::MemoryKind::kDevice, false});
  }
  std::sort(program.allocations.begin(), program.allocations.end(),
            [](const Allocation& a, const Allocation& b) {
              return a.address < b.address;
            });
}

absl::Status TakeContent(const trace::Reader& reader, const StepBounds& bounds,
                         Program& program) {
  if (program.snapshot_record != kNoRecord) {
    absl::StatusOr<SnapshotContent> snapshot =
        ReadSnapshot(reader, program.snapshot_record);
    if (!snapshot.ok()) return snapshot.status();
    program.content = std::move(snapshot->ranges);
    program.memory_policy = snapshot->policy;
    if (!snapshot->complete) {
      program.warnings.push_back(
          "the memory snapshot is not complete: recording was cut off in it");
    }
    AddUnrecordedAllocations(program);
  } else {
    program.warnings.push_back(
        "no memory snapshot lies before the step: its memory is what the "
        "operations from the beginning of the trace leave");
  }
  const bool described = std::any_of(
      program.content.begin(), program.content.end(),
      [](const Content& c) { return c.fill == fb::FillKind::kDescribed; });
  if (described) program.exact = false;
  const uint64_t unknown = AllocatedExtents(program, /*at_start=*/true)
                               .Minus(ContentExtents(program))
                               .bytes();
  if (unknown != 0) {
    program.exact = false;
    program.warnings.push_back(
        absl::StrCat("the content of ", unknown,
                     " bytes is not in the trace: they start as zeros"));
  }
  if (!program.exact) return absl::OkStatus();
  const uint64_t end = FindEndSnapshot(reader, bounds);
  if (end == kNoRecord) return absl::OkStatus();
  absl::StatusOr<SnapshotContent> after = ReadSnapshot(reader, end);
  if (!after.ok()) return after.status();
  program.after = std::move(after->ranges);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> BuildProgram(const trace::Reader& reader,
                                     const StepBounds& bounds) {
  const auto records = reader.records();
  if (bounds.first_record > bounds.end_record ||
      bounds.end_record > records.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "step [", bounds.first_record, ", ", bounds.end_record, ") of ",
        reader.path(), ", which has ", records.size(), " records"));
  }
  Program program;
  program.exact = true;
  program.snapshot_record = bounds.snapshot_record != kNoRecord
                                ? bounds.snapshot_record
                                : FindSnapshot(reader, bounds);
  if (program.snapshot_record != kNoRecord &&
      (program.snapshot_record >= records.size() ||
       records[program.snapshot_record].type != fb::RecordType::kSnapshot)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "record ", program.snapshot_record, " is not a memory snapshot"));
  }
  const uint64_t start =
      program.snapshot_record == kNoRecord
          ? 0
          : std::min(program.snapshot_record, bounds.end_record);
  ProgramBuilder builder(program);
  for (uint64_t i = 0; i < bounds.end_record; ++i) {
    const ProgramBuilder::Part part =
        i >= bounds.first_record ? ProgramBuilder::Part::kStep
        : i >= start             ? ProgramBuilder::Part::kPrefix
                                 : ProgramBuilder::Part::kBefore;
    if (absl::Status s = builder.Visit(records[i], part); !s.ok()) return s;
  }
  if (absl::Status s = builder.Finish(); !s.ok()) return s;
  if (absl::Status s = TakeContent(reader, bounds, program); !s.ok()) return s;
  if (program.step.operations.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "records ", bounds.first_record, "-", bounds.end_record, " of ",
        reader.path(), " hold no device work: choose another step"));
  }
  return program;
}

}  // namespace heddle::replay
