// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/trace/operations.h"
#include "tools/command.h"
#include "tools/names.h"
#include "tools/progress.h"
#include "tools/trace_args.h"
#include "tools/trace_output.h"
#include "tools/trim.h"

namespace heddle::tools {
namespace {

// zstd level of blobs that are written anew; copied ones stay as they are.
constexpr int kLevel = 1;

struct TrimFlags {
  int64_t step = -1;
  std::string calls;
  std::string by = "auto";
  std::string output;
  std::string images = "all";
  std::string memory = "all";
  bool prefix = true;
};

// What to keep, and a name for it.
struct Part {
  TrimRequest request;
  std::string name;
  uint32_t index = 0;
  bool has_marks = false;  // the recorder marked it
};

absl::StatusOr<Part> PartOfStep(const trace::Reader& reader,
                                const TrimFlags& options) {
  absl::StatusOr<trace::StepList> list =
      trace::FindSteps(reader, {.by = options.by});
  if (!list.ok()) return list.status();
  const auto count = static_cast<int64_t>(list->steps.size());
  if (options.step >= count) {
    return absl::OutOfRangeError(
        count == 0
            ? absl::StrCat("no steps were found in ", reader.path(),
                           "; choose records with --calls")
            : absl::StrCat("there is no step ", options.step, " in ",
                           reader.path(), ", which has ", count, ", 0 to ",
                           count - 1, " (see `heddle info`)"));
  }
  const trace::Step& step = list->steps[options.step];
  Part part;
  part.request.first_record = step.first_record;
  part.request.end_record = step.end_record;
  part.request.contains = [](uint64_t) { return true; };
  part.name = absl::StrCat("step ", options.step);
  part.index = static_cast<uint32_t>(options.step);
  part.has_marks = step.source == "recorded";
  return part;
}

absl::StatusOr<Part> PartOfCalls(const trace::Reader& reader,
                                 const TrimFlags& options) {
  absl::StatusOr<CallSet> calls = CallSet::Parse(options.calls, [&] {
    return trace::FindSteps(reader, {.by = options.by});
  });
  if (!calls.ok()) return calls.status();
  const uint64_t records = reader.records().size();
  Part part;
  part.request.first_record = records;
  for (uint64_t i = 0; i < records; ++i) {
    if (!calls->Contains(i)) continue;
    part.request.first_record = std::min(part.request.first_record, i);
    part.request.end_record = i + 1;
  }
  if (part.request.end_record == 0) {
    return absl::OutOfRangeError(absl::StrCat("--calls: ", options.calls,
                                              " selects none of the ", records,
                                              " records of ", reader.path()));
  }
  const auto set = std::make_shared<CallSet>(*std::move(calls));
  part.request.contains = [set](uint64_t record) {
    return set->Contains(record);
  };
  part.name = absl::StrCat("calls ", options.calls);
  return part;
}

// Steps cannot be found by their repetition where one is alone, so it is
// marked.
void AddMark(fb::StepOp op, const Part& part, const trace::Record& near,
             TraceOutput* output) {
  fb::StepT mark;
  const fb::Stamp* stamp = StampOf(near);
  mark.stamp =
      std::make_unique<fb::Stamp>(stamp == nullptr ? fb::Stamp() : *stamp);
  mark.op = op;
  mark.index = part.index;
  mark.source = "trim";
  output->writer().AppendObject(mark);
}

void CopyRecords(const trace::Reader& reader, const TrimPlan& plan,
                 const Part& part, bool images, TraceOutput* output) {
  const TrimRequest& request = part.request;
  Progress progress("trimming", reader.records().size());
  for (const trace::Record& record : reader.records()) {
    progress.Update(record.index);
    if (!part.has_marks && record.index == request.first_record) {
      AddMark(fb::StepOp::kBegin, part, record, output);
    }
    const bool mark = part.has_marks && record.type == fb::RecordType::kStep &&
                      (record.index == request.first_record ||
                       record.index + 1 == request.end_record);
    if (plan.keep[record.index] || mark) {
      const auto* image = record.As<fb::Image>();
      if (image != nullptr && !images && image->stored()) {
        fb::ImageT changed;
        image->UnPackTo(&changed);
        changed.stored = false;
        output->writer().AppendObject(changed);
      } else {
        output->Copy(record);
      }
    }
    if (!part.has_marks && record.index + 1 == request.end_record) {
      AddMark(fb::StepOp::kEnd, part, record, output);
    }
  }
}

void Report(const trace::Reader& reader, const TrimFlags& options,
            const Part& part, const TrimPlan& plan, uint64_t size,
            uint64_t records, std::optional<uint64_t> step) {
  std::printf("%s: %s of %s, %s of %s\n", options.output.c_str(),
              part.name.c_str(), reader.path().c_str(), Bytes(size).c_str(),
              Bytes(reader.file_size()).c_str());
  std::printf("  %s operations, %s records of %s\n",
              absl::StrCat(plan.operations).c_str(),
              absl::StrCat(records).c_str(),
              absl::StrCat(reader.records().size()).c_str());
  if (plan.prefix_operations > 0) {
    std::printf(
        "  and %s operations before them, since memory was %s (--no-prefix "
        "leaves them out)\n",
        absl::StrCat(plan.prefix_operations).c_str(),
        plan.snapshot_record.has_value()
            ? absl::StrCat("kept at record ", *plan.snapshot_record).c_str()
            : "not kept");
  } else if (!plan.snapshot_record.has_value()) {
    std::printf("  without memory: a replay starts from made-up content\n");
  }
  if (step.has_value()) {
    std::printf("  `heddle replay %s --step %s` runs it\n",
                options.output.c_str(), absl::StrCat(*step).c_str());
  }
}

// Which step of the new trace the part is.
std::optional<uint64_t> FindPart(const trace::Reader& after,
                                 uint64_t operations_before) {
  absl::StatusOr<trace::StepList> list = trace::FindSteps(after, {});
  if (!list.ok()) return std::nullopt;
  const std::vector<trace::Operation> operations = trace::ListOperations(after);
  if (operations_before >= operations.size()) return std::nullopt;
  const uint64_t first = operations[operations_before].record;
  for (uint64_t i = 0; i < list->steps.size(); ++i) {
    const trace::Step& step = list->steps[i];
    if (first >= step.first_record && first < step.end_record) return i;
  }
  return std::nullopt;
}

absl::StatusOr<int> Run(Invocation& call) {
  TrimFlags options;
  call.flags()
      .Int("step", "N", &options.step, "the step to keep, from 0")
      .String("calls", "SET", &options.calls, "the records to keep")
      .String("by", "SOURCE", &options.by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], "
              "repeat[:N]")
      .String("output", "FILE", &options.output, "the new trace")
      .Short('o')
      .Choice("images", {"all", "none"}, &options.images,
              "none: without code, which a replay then finds by its hash in "
              "the libraries that are installed")
      .Choice("memory", {"all", "none"}, &options.memory,
              "none: without contents of memory")
      .Bool("prefix", &options.prefix,
            "keep the work between the last snapshot of memory and the step");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (call.flags().WasSet("step") == call.flags().WasSet("calls")) {
    return call.UsageError("what to keep? give either --step N or --calls SET");
  }
  if (call.flags().WasSet("step") && options.step < 0) {
    return call.UsageError("--step: steps are counted from 0");
  }
  if (options.output.empty()) {
    return call.UsageError("where to? give the new trace with -o FILE");
  }
  const std::string& path = call.positional()[0];
  auto reader = OpenTrace(path);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<Part> part = call.flags().WasSet("step")
                                  ? PartOfStep(**reader, options)
                                  : PartOfCalls(**reader, options);
  if (!part.ok()) return part.status();
  part->request.images = options.images == "all";
  part->request.memory = options.memory == "all";
  part->request.prefix = options.prefix;
  const TrimPlan plan = PlanTrim(**reader, part->request);
  if (plan.operations == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(part->name, " of ", path, " has no device work"));
  }
  auto output = TraceOutput::Create(options.output, **reader, kLevel);
  if (!output.ok()) return output.status();
  CopyRecords(**reader, plan, *part, part->request.images, output->get());
  uint64_t size = 0;
  uint64_t records = 0;
  std::optional<uint64_t> step;
  absl::Status status = (*output)->Commit([&](const trace::Reader& after) {
    size = after.file_size();
    records = after.records().size();
    step = FindPart(after, plan.prefix_operations);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  Report(**reader, options, *part, plan, size, records, step);
  return kExitOk;
}

}  // namespace

const Command& TrimCommand() {
  static const std::string& help = *new std::string(absl::StrCat(
      "Writes a new trace with one step, or the records of a call set, and the "
      "state that\nit needs to run: live allocations, kernels with their "
      "modules and images, graphs,\nstreams, tensor maps, and the snapshot of "
      "memory that it starts from. Records are\ncopied as they are.\n\n",
      kCallSetHelp));
  static const Command kCommand = {
      .name = "trim",
      .synopsis = "cut a step out of a trace",
      .arguments = "--step N | --calls SET -o FILE TRACE",
      .help = help.c_str(),
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
