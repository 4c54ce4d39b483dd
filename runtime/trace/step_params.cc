// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/step_params.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "runtime/trace/kernel_runs.h"

namespace heddle::trace {
namespace {

uint64_t Load(const uint8_t* bytes, uint32_t size) {
  uint64_t value = 0;
  std::memcpy(&value, bytes, size);  // little endian, as the device
  return value;
}

uint64_t Wrap(uint64_t value, uint32_t size) {
  return size >= 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1);
}

int64_t SignExtend(uint64_t value, uint32_t size) {
  const int shift = 64 - 8 * static_cast<int>(size);
  return static_cast<int64_t>(value << shift) >> shift;
}

absl::Span<const uint8_t> Params(const fb::Launch& launch) {
  if (launch.params() == nullptr) return {};
  return absl::MakeConstSpan(launch.params()->data(), launch.params()->size());
}

// One word and what its value seems to do.
struct Word {
  uint32_t offset;
  uint32_t size;
  int64_t slope = 0;
  bool affine = true;
  bool varies() const { return slope != 0 || !affine; }
};

// A stretch of a parameter: one word, or eight bytes that may be one word or
// two, which their values decide.
struct Unit {
  uint32_t param;
  std::vector<Word> words;  // one, or {whole, low half, high half}
  bool varies() const { return words[0].varies(); }
};

void AddUnits(uint32_t param, uint32_t begin, uint32_t size,
              std::vector<Unit>* units) {
  const uint32_t end = begin + size;
  const bool single = size == 8 || size == 4;
  for (uint32_t at = begin; at < end;) {
    if (at + 8 <= end && at % 8 == 0) {
      Unit unit{param, {{at, 8}}};
      if (!single) {
        unit.words.push_back({at, 4});
        unit.words.push_back({at + 4, 4});
      }
      units->push_back(std::move(unit));
      at += 8;
    } else {
      const uint32_t length = std::min({end - at, 4 - at % 4, uint32_t{4}});
      units->push_back({param, {{at, length}}});
      at += length;
    }
  }
}

class Comparison {
 public:
  explicit Comparison(const Reader& reader) {
    for (const Record& record : reader.records()) {
      if (const auto* kernel = record.As<fb::Kernel>(); kernel != nullptr) {
        kernels_[kernel->id()] = kernel;
      } else if (const auto* alloc = record.As<fb::Alloc>(); alloc != nullptr) {
        uint64_t& size = memory_[alloc->address()];
        size = std::max(size, alloc->size());
      }
    }
  }

  // `step` is its position in the list.
  void AddStep(uint64_t step, const std::vector<const fb::Launch*>& launches) {
    if (steps_ == 0) {
      first_step_ = step;
      base_ = launches;
      units_.resize(launches.size());
    }
    const size_t count = std::min(base_.size(), launches.size());
    for (size_t i = 0; steps_ > 0 && i < count; ++i) {
      const absl::Span<const uint8_t> base = Params(*base_[i]);
      const absl::Span<const uint8_t> now = Params(*launches[i]);
      if (units_[i].empty()) {
        if (base == now) continue;
        units_[i] = UnitsOf(*base_[i]);
      }
      for (Unit& unit : units_[i]) {
        for (Word& word : unit.words) {
          Update(base, now, step - first_step_, &word);
        }
      }
    }
    ++steps_;
  }

  StepParams Finish() {
    StepParams result;
    result.steps = steps_;
    result.launches = base_.size();
    for (size_t i = 0; i < base_.size(); ++i) {
      // Parameters of this launch by their worst word.
      absl::flat_hash_map<uint32_t, Variation> worst;
      for (const Unit& unit : units_[i]) {
        if (unit.varies()) Report(i, unit, &result, &worst);
      }
      for (const auto& [param, variation] : worst) {
        ++(variation == Variation::kAffine ? result.affine : result.other);
      }
      result.constant += ParamCount(*base_[i]) - worst.size();
    }
    return result;
  }

 private:
  const fb::Kernel* KernelOf(const fb::Launch& launch) const {
    if (launch.head() == nullptr) return nullptr;
    const auto found = kernels_.find(launch.head()->kernel());
    return found == kernels_.end() ? nullptr : found->second;
  }

  uint64_t ParamCount(const fb::Launch& launch) const {
    const fb::Kernel* kernel = KernelOf(launch);
    if (kernel == nullptr || kernel->params() == nullptr) {
      return Params(launch).empty() ? 0 : 1;
    }
    return kernel->params()->size();
  }

  std::vector<Unit> UnitsOf(const fb::Launch& launch) const {
    std::vector<Unit> units;
    const auto size = static_cast<uint32_t>(Params(launch).size());
    const fb::Kernel* kernel = KernelOf(launch);
    if (kernel == nullptr || kernel->params() == nullptr) {
      AddUnits(~uint32_t{0}, 0, size, &units);
      return units;
    }
    for (uint32_t i = 0; i < kernel->params()->size(); ++i) {
      const fb::ParamInfo* info = kernel->params()->Get(i);
      if (info->offset() > size) continue;  // not what was launched
      AddUnits(i, info->offset(), std::min(info->size(), size - info->offset()),
               &units);
    }
    return units;
  }

  // Whether an allocation of the trace, live or not, has this address.
  bool IsAddress(uint64_t value) const {
    const auto next = memory_.upper_bound(value);
    if (next == memory_.begin()) return false;
    const auto& [address, size] = *std::prev(next);
    return value - address < size;
  }

  void Update(absl::Span<const uint8_t> base, absl::Span<const uint8_t> now,
              uint64_t distance, Word* word) const {
    if (!word->affine) return;
    if (now.size() != base.size()) {
      word->affine = false;
      return;
    }
    const uint64_t from = Load(base.data() + word->offset, word->size);
    const uint64_t value = Load(now.data() + word->offset, word->size);
    if (steps_ == 1) {
      const int64_t difference = SignExtend(value - from, word->size);
      word->slope = difference / static_cast<int64_t>(distance);
    }
    const uint64_t expected =
        from + static_cast<uint64_t>(word->slope) * distance;
    if (value != Wrap(expected, word->size)) word->affine = false;
  }

  void Report(size_t launch, const Unit& unit, StepParams* result,
              absl::flat_hash_map<uint32_t, Variation>* worst) const {
    absl::Span<const Word> words(unit.words);
    if (words.size() == 3) {
      // Two words if that explains the values, or if nothing does; but what
      // points into memory is one.
      const uint64_t whole =
          Load(Params(*base_[launch]).data() + words[0].offset, 8);
      const bool pointer = words[0].affine && IsAddress(whole);
      const bool halves = !pointer && ((words[1].affine && words[2].affine) ||
                                       !words[0].affine);
      words = halves ? words.subspan(1) : words.subspan(0, 1);
    }
    const fb::Launch& base = *base_[launch];
    for (const Word& word : words) {
      if (!word.varies()) continue;
      VaryingWord varying;
      varying.launch = launch;
      varying.kernel = base.head() == nullptr ? 0 : base.head()->kernel();
      varying.param = unit.param;
      varying.offset = word.offset;
      varying.size = word.size;
      // Any two values lie on a line.
      if (word.affine && steps_ > 2) {
        varying.variation = Variation::kAffine;
        varying.slope = word.slope;
        varying.first =
            Wrap(Load(Params(base).data() + word.offset, word.size) -
                     static_cast<uint64_t>(word.slope) * first_step_,
                 word.size);
      }
      Variation& seen =
          worst->try_emplace(unit.param, Variation::kAffine).first->second;
      seen = std::max(seen, varying.variation);
      result->varying.push_back(varying);
    }
  }

  absl::flat_hash_map<uint32_t, const fb::Kernel*> kernels_;
  std::map<uint64_t, uint64_t> memory_;  // sizes by address
  uint64_t steps_ = 0;
  uint64_t first_step_ = 0;
  std::vector<const fb::Launch*> base_;
  std::vector<std::vector<Unit>> units_;  // per launch; empty = constant so far
};

}  // namespace

StepParams CompareStepParams(const Reader& reader, const StepList& list) {
  Comparison comparison(reader);
  GraphState graphs;
  uint64_t at = 0;
  std::vector<const fb::Launch*> launches;
  for (uint64_t i = 0; i < list.steps.size(); ++i) {
    const Step& step = list.steps[i];
    if (step.signature != list.signature) continue;
    launches.clear();
    for (; at < step.end_record; ++at) {
      const Record& record = reader.records()[at];
      graphs.Follow(record);
      if (at < step.first_record) continue;
      if (const auto* launch = record.As<fb::Launch>(); launch != nullptr) {
        if (!launch->capturing() && launch->status() == 0) {
          launches.push_back(launch);
        }
      } else if (const auto* start = record.As<fb::GraphLaunch>();
                 start != nullptr) {
        if (start->capturing() || start->status() != 0) continue;
        const auto kernels = graphs.Kernels(*start);
        launches.insert(launches.end(), kernels.begin(), kernels.end());
      }
    }
    comparison.AddStep(i, launches);
  }
  return comparison.Finish();
}

}  // namespace heddle::trace
