// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/live_access.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/rewrite/graph_access.h"

namespace heddle::live {
namespace {

using access::Extent;
using access::ExtentSet;

// The program's blocks; those that touch or overlap by being seen twice
// (managed memory) are one.
class BlockIndex {
 public:
  explicit BlockIndex(const std::vector<record::MemoryBlock>& blocks) {
    std::vector<Extent> all;
    for (const record::MemoryBlock& block : blocks) {
      if (block.size > 0) all.push_back({block.address, block.size});
    }
    std::sort(all.begin(), all.end(), [](const Extent& a, const Extent& b) {
      return a.address < b.address;
    });
    for (const Extent& extent : all) {
      if (!extents_.empty() && extent.address < extents_.back().end()) {
        extents_.back().size = std::max(extents_.back().end(), extent.end()) -
                               extents_.back().address;
      } else {
        extents_.push_back(extent);
      }
    }
  }

  const Extent* Find(uint64_t address) const {
    auto it = std::upper_bound(extents_.begin(), extents_.end(), address,
                               [](uint64_t value, const Extent& extent) {
                                 return value < extent.address;
                               });
    if (it == extents_.begin()) return nullptr;
    --it;
    return address < it->end() ? &*it : nullptr;
  }

 private:
  std::vector<Extent> extents_;
};

}  // namespace

void LiveAccess::AddTensorMap(absl::Span<const uint8_t> map,
                              access::TensorMaps::Shape shape) {
  std::lock_guard<std::mutex> lock(maps_mutex_);
  maps_.Add(map, std::move(shape));
}

void LiveAccess::ReplaceTensorMap(absl::Span<const uint8_t> before,
                                  absl::Span<const uint8_t> map,
                                  uint64_t address) {
  std::lock_guard<std::mutex> lock(maps_mutex_);
  maps_.Replace(before, map, address);
}

void LiveAccess::Mapped(uint64_t address, CUmemGenericAllocationHandle handle) {
  std::lock_guard<std::mutex> lock(mapped_mutex_);
  mapped_[address] = handle;
}

bool LiveAccess::IsMappedTwice(const std::vector<Extent>& allocations) {
  std::lock_guard<std::mutex> lock(mapped_mutex_);
  absl::flat_hash_set<CUmemGenericAllocationHandle> handles;
  for (const record::MemoryBlock& block : memory_.Blocks()) {
    if (block.kind != fb::MemoryKind::kMapped) continue;
    const bool used = std::any_of(allocations.begin(), allocations.end(),
                                  [&block](const Extent& extent) {
                                    return extent.address <= block.address &&
                                           block.address < extent.end();
                                  });
    const auto it = mapped_.find(block.address);
    if (used && it != mapped_.end() && !handles.insert(it->second).second) {
      return true;
    }
  }
  return false;
}

GraphEffects LiveAccess::Find(const rewrite::GraphModel& model) {
  const auto start = std::chrono::steady_clock::now();
  std::lock_guard<std::mutex> lock(book_mutex_);
  if (book_ == nullptr) {
    folder_ = access::OpenFootprintFolder(cubin::CacheFolder::DefaultPath());
    book_ = std::make_unique<access::AnalysisBook>(folder_.get());
  }
  GraphEffects found;
  const BlockIndex blocks(memory_.Blocks());
  access::MemoryView view;
  view.allocation = [&](uint64_t address) -> std::optional<Extent> {
    const Extent* block = blocks.Find(address);
    if (block == nullptr) return std::nullopt;
    if (found.rests_on.empty() || !(found.rests_on.back() == *block)) {
      found.rests_on.push_back(*block);
    }
    return *block;
  };
  view.tensor_map = [this](absl::Span<const uint8_t> map) {
    std::lock_guard<std::mutex> maps_lock(maps_mutex_);
    return maps_.Find(map);
  };
  absl::flat_hash_map<const rewrite::DeviceCode*, ExtentSet> variables;
  const auto variables_of = [&](const rewrite::DeviceCode& code) {
    const auto [it, first] = variables.try_emplace(&code);
    if (first && code.has_variables) {
      std::vector<Extent> extents;
      for (const LoadedCode::Variable& variable : code_.VariablesOf(code)) {
        extents.push_back({variable.address, variable.size});
      }
      it->second = ExtentSet(std::move(extents));
    }
    return it->second;
  };
  const std::vector<access::AccessSet> sets =
      rewrite::FindAccesses(driver_, model, book_.get(), view, variables_of);
  for (size_t i = 0; i < sets.size(); ++i) {
    found.nodes.push_back(plan::EffectsOf(sets[i]));
    if (sets[i].reads_known() && sets[i].writes_known()) continue;
    ++found.unknown;
    if (!found.why.empty()) continue;
    found.why = absl::StrCat(model.nodes[i].source.name, ": ",
                             sets[i].writes_known() ? sets[i].unknown_reads
                                                    : sets[i].unknown_writes);
  }
  std::sort(
      found.rests_on.begin(), found.rests_on.end(),
      [](const Extent& a, const Extent& b) { return a.address < b.address; });
  found.rests_on.erase(
      std::unique(found.rests_on.begin(), found.rests_on.end()),
      found.rests_on.end());
  if (IsMappedTwice(found.rests_on)) {
    // Addresses do not say then which nodes share memory.
    for (plan::Effects& effects : found.nodes) {
      effects.reads_anything = effects.writes_anything = true;
    }
    found.unknown = static_cast<uint32_t>(found.nodes.size());
    found.why = "they use memory that is mapped at two addresses";
  }
  book_->Save();
  found.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return found;
}

}  // namespace heddle::live
