// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/step_sources.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/trace/step_repeat.h"

namespace heddle::trace {
namespace {

std::string Text(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

// Half-open range of record indices.
using RecordRange = std::pair<uint64_t, uint64_t>;

// All closed NVTX ranges by name, each in order of its end. Push and pop pair
// up within a thread and domain, start and end by id.
absl::flat_hash_map<std::string, std::vector<RecordRange>> NvtxRanges(
    const Reader& reader) {
  struct Open {
    std::string name;
    uint64_t record;
  };
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, std::vector<Open>> stacks;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, Open> started;
  absl::flat_hash_map<std::string, std::vector<RecordRange>> ranges;
  for (const Record& record : reader.records()) {
    const auto* range = record.As<fb::Range>();
    if (range == nullptr) continue;
    const uint32_t thread =
        range->stamp() == nullptr ? 0 : range->stamp()->thread();
    auto& stack = stacks[{thread, range->domain()}];
    switch (range->op()) {
      case fb::RangeOp::kPush:
        stack.push_back({Text(range->name()), record.index});
        break;
      case fb::RangeOp::kPop:
        if (stack.empty()) break;
        ranges[stack.back().name].emplace_back(stack.back().record,
                                               record.index + 1);
        stack.pop_back();
        break;
      case fb::RangeOp::kStart:
        started[{range->domain(), range->id()}] = {Text(range->name()),
                                                   record.index};
        break;
      case fb::RangeOp::kEnd: {
        const auto found = started.find({range->domain(), range->id()});
        if (found == started.end()) break;
        ranges[found->second.name].emplace_back(found->second.record,
                                                record.index + 1);
        started.erase(found);
        break;
      }
      case fb::RangeOp::kMark:
        break;
    }
  }
  return ranges;
}

// Drops ranges without kernels and ranges inside or across others.
std::vector<RecordRange> Disjoint(const Work& work,
                                  std::vector<RecordRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RecordRange& a, const RecordRange& b) {
              return a.first != b.first ? a.first < b.first
                                        : a.second > b.second;
            });
  std::vector<RecordRange> kept;
  for (const RecordRange& range : ranges) {
    if (!kept.empty() && range.first < kept.back().second) continue;
    if (work.Kernels(work.OperationAt(range.first),
                     work.OperationAt(range.second)) > 0) {
      kept.push_back(range);
    }
  }
  return kept;
}

}  // namespace

Work::Work(const Reader& reader)
    : reader_(reader),
      operations_(ListOperations(reader)),
      kernels_(operations_.size() + 1) {
  for (size_t i = 0; i < operations_.size(); ++i) {
    kernels_[i + 1] = kernels_[i] + operations_[i].kernels;
  }
}

uint64_t Work::OperationAt(uint64_t record) const {
  const auto found =
      std::lower_bound(operations_.begin(), operations_.end(), record,
                       [](const Operation& operation, uint64_t value) {
                         return operation.record < value;
                       });
  return static_cast<uint64_t>(found - operations_.begin());
}

Step Work::MakeStep(uint64_t first_record, uint64_t end_record,
                    std::string source, bool by_kind) const {
  const uint64_t begin = OperationAt(first_record);
  const uint64_t end = OperationAt(end_record);
  Step step;
  step.first_record = first_record;
  step.end_record = end_record;
  step.source = std::move(source);
  step.launches = Kernels(begin, end);
  for (uint64_t i = begin; i < end; ++i) {
    step.signature = MixHash(
        step.signature, by_kind ? operations_[i].kind : operations_[i].shape);
  }
  return step;
}

std::vector<Step> RecordedSteps(const Work& work) {
  std::vector<Step> steps;
  absl::flat_hash_map<uint32_t, uint64_t> open;  // by index
  for (const Record& record : work.reader().records()) {
    const auto* mark = record.As<fb::Step>();
    if (mark == nullptr) continue;
    if (mark->op() == fb::StepOp::kBegin) {
      open[mark->index()] = record.index;
      continue;
    }
    const auto found = open.find(mark->index());
    if (found == open.end()) continue;
    if (steps.empty() || found->second >= steps.back().end_record) {
      steps.push_back(work.MakeStep(found->second, record.index + 1, "recorded",
                                    /*by_kind=*/false));
    }
    open.erase(found);
  }
  return steps;
}

std::vector<Step> NvtxSteps(const Work& work, const std::string& name,
                            bool strict) {
  struct Candidate {
    std::string name;
    std::vector<RecordRange> ranges;
    uint64_t kernels = 0;
    // More than a pair of repeats first, then the larger unit, then the outer
    // one of two with the same work, then the name, so that the choice does
    // not depend on the order of a hash table.
    std::tuple<bool, uint64_t, uint64_t, std::string> Rank() const {
      return {ranges.size() > 2, kernels / ranges.size(),
              ranges[0].second - ranges[0].first, name};
    }
  };
  Candidate best;
  for (auto& [range_name, all] : NvtxRanges(work.reader())) {
    if (!name.empty() && range_name != name) continue;
    Candidate candidate;
    candidate.name = range_name;
    candidate.ranges = Disjoint(work, std::move(all));
    if (candidate.ranges.empty()) continue;
    for (const RecordRange& range : candidate.ranges) {
      candidate.kernels += work.Kernels(work.OperationAt(range.first),
                                        work.OperationAt(range.second));
    }
    if (strict) {
      const uint64_t span =
          work.Kernels(work.OperationAt(candidate.ranges.front().first),
                       work.OperationAt(candidate.ranges.back().second));
      if (candidate.ranges.size() < 2 || candidate.kernels * 10 < span * 9 ||
          candidate.kernels * 2 < work.total_kernels()) {
        continue;
      }
    }
    if (best.ranges.empty() || candidate.Rank() > best.Rank()) {
      best = std::move(candidate);
    }
  }
  std::vector<Step> steps;
  for (const RecordRange& range : best.ranges) {
    steps.push_back(work.MakeStep(range.first, range.second,
                                  absl::StrCat("nvtx:", best.name),
                                  /*by_kind=*/false));
  }
  return steps;
}

std::vector<Step> GraphSteps(const Work& work, bool strict) {
  // By structure, not by handle: a program may instantiate its graph anew.
  struct Uses {
    uint64_t kernels = 0;
    uint64_t launches = 0;
  };
  absl::flat_hash_map<uint64_t, Uses> by_shape;
  std::pair<uint64_t, uint64_t> best;  // kernels, shape
  for (const Operation& operation : work.operations()) {
    const Record& record = work.reader().records()[operation.record];
    if (record.type != fb::RecordType::kGraphLaunch) continue;
    Uses& uses = by_shape[operation.shape];
    uses.kernels += operation.kernels;
    ++uses.launches;
    best = std::max(best, {uses.kernels, operation.shape});
  }
  std::vector<Step> steps;
  const auto found = by_shape.find(best.second);
  if (found == by_shape.end()) return steps;
  if (strict && (found->second.launches < 2 ||
                 found->second.kernels * 2 <= work.total_kernels())) {
    return steps;
  }
  for (const Operation& operation : work.operations()) {
    const Record& record = work.reader().records()[operation.record];
    if (record.type == fb::RecordType::kGraphLaunch &&
        operation.shape == best.second) {
      steps.push_back(work.MakeStep(operation.record, operation.record + 1,
                                    "graph", /*by_kind=*/false));
    }
  }
  return steps;
}

std::vector<Step> RepeatedSteps(const Work& work, uint64_t period,
                                bool* by_kind) {
  // Where the recorder began a step there may be a snapshot to start from.
  std::vector<uint64_t> preferred;
  for (const Record& record : work.reader().records()) {
    const auto* mark = record.As<fb::Step>();
    const auto* snapshot = record.As<fb::Snapshot>();
    if ((mark != nullptr && mark->op() == fb::StepOp::kBegin) ||
        (snapshot != nullptr &&
         snapshot->when() == fb::SnapshotWhen::kStepBegin)) {
      preferred.push_back(work.OperationAt(record.index));
    }
  }
  const std::vector<Operation>& operations = work.operations();
  const RepeatedUnit unit = FindRepeatedUnit(operations, preferred, period);
  *by_kind = unit.by_kind;
  std::vector<Step> steps;
  for (const uint64_t start : unit.starts) {
    steps.push_back(
        work.MakeStep(operations[start].record,
                      operations[start + unit.period - 1].record + 1, "repeat",
                      unit.by_kind));
  }
  return steps;
}

void AttachSnapshots(const Work& work, std::vector<Step>* steps) {
  // Last snapshot taken before the operation of that index, after the one
  // before it.
  absl::flat_hash_map<uint64_t, uint64_t> snapshots;
  for (const Record& record : work.reader().records()) {
    const auto* snapshot = record.As<fb::Snapshot>();
    if (snapshot == nullptr || snapshot->when() == fb::SnapshotWhen::kStepEnd) {
      continue;
    }
    snapshots[work.OperationAt(record.index)] = record.index;
  }
  for (Step& step : *steps) {
    const uint64_t begin = work.OperationAt(step.first_record);
    const auto found = snapshots.find(begin);
    if (found != snapshots.end() && found->second < step.end_record) {
      step.snapshot_record = found->second;
    }
  }
}

}  // namespace heddle::trace
