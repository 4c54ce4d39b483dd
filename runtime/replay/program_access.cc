// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/program_access.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "runtime/access/launch_access.h"
#include "runtime/access/tensor_maps.h"
#include "runtime/replay/kernel_book.h"

namespace heddle::replay {
namespace {

using access::AccessSet;
using access::Extent;
using access::ExtentSet;
using access::Mode;
using access::Provenance;

// Rows of a plane or box: beyond this many pieces their hull is kept.
constexpr uint64_t kMaxRows = 65536;

ExtentSet Rows(uint64_t address, uint64_t width, uint64_t height,
               uint64_t depth, uint64_t pitch, uint64_t slice) {
  if (width == 0 || height == 0 || depth == 0) return {};
  if (height > kMaxRows / depth) {
    return ExtentSet(
        {Extent{address, (depth - 1) * slice + (height - 1) * pitch + width}});
  }
  std::vector<Extent> rows;
  rows.reserve(height * depth);
  for (uint64_t z = 0; z < depth; ++z) {
    for (uint64_t y = 0; y < height; ++y) {
      rows.push_back({address + z * slice + y * pitch, width});
    }
  }
  return ExtentSet(std::move(rows));
}

AccessSet CopyAccess(const CopyWork& copy, const std::string& label) {
  AccessSet set;
  // The host sees what arrives there, and may count on when.
  set.ordering_point = copy.dst.host;
  if (!copy.src.host) {
    set.accesses.push_back(
        {Mode::kRead, Provenance::kDeclared, BytesOf(copy.src, copy), label});
  }
  if (!copy.dst.host) {
    set.accesses.push_back(
        {Mode::kWrite, Provenance::kDeclared, BytesOf(copy.dst, copy), label});
  }
  return set;
}

// What pointers of launches can point into. Allocations may overlap (a graph's
// memory and what was there before); then both together count.
class AllocationIndex {
 public:
  explicit AllocationIndex(const Program& program) {
    std::vector<Extent> all;
    for (const Allocation& allocation : program.allocations) {
      all.push_back({allocation.address, allocation.size});
    }
    for (const ModuleVariable& variable : program.variables) {
      all.push_back({variable.address, variable.size});
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

  std::optional<Extent> Find(uint64_t address) const {
    auto it = std::upper_bound(extents_.begin(), extents_.end(), address,
                               [](uint64_t value, const Extent& extent) {
                                 return value < extent.address;
                               });
    if (it == extents_.begin()) return std::nullopt;
    --it;
    if (address >= it->end()) return std::nullopt;
    return *it;
  }

 private:
  std::vector<Extent> extents_;
};

ExtentSet VariablesOf(const Program& program, uint32_t module) {
  std::vector<Extent> variables;
  for (const ModuleVariable& variable : program.variables) {
    if (variable.module == module) {
      variables.push_back({variable.address, variable.size});
    }
  }
  return ExtentSet(std::move(variables));
}

// Maps that got another address by cuTensorMapReplaceAddress have no shape of
// their own in a trace and stay unknown.
void AddTensorMap(const fb::TensorMap& map, access::TensorMaps* maps) {
  if (map.bytes() == nullptr || map.dims() == nullptr ||
      map.dims()->size() < map.rank()) {
    return;
  }
  access::TensorMaps::Shape shape;
  shape.data_type = map.data_type();
  shape.address = map.address();
  shape.dims.assign(map.dims()->begin(), map.dims()->begin() + map.rank());
  if (map.strides() != nullptr) {
    shape.strides.assign(map.strides()->begin(), map.strides()->end());
  }
  maps->Add({map.bytes()->data(), map.bytes()->size()}, std::move(shape));
}

}  // namespace

ExtentSet BytesOf(const CopyEnd& end, const CopyWork& copy) {
  return Rows(end.address, copy.width, copy.height, copy.depth, end.pitch,
              end.slice);
}

ExtentSet BytesOf(const FillWork& fill) {
  return Rows(fill.address, fill.width * fill.element_size, fill.height, 1,
              fill.pitch, 0);
}

absl::StatusOr<StepAccess> FindAccesses(const trace::Reader& reader,
                                        const Program& program,
                                        const std::string& cache_folder) {
  StepAccess result;
  access::TensorMaps tensor_maps;
  for (const trace::Record& record : reader.records()) {
    if (const auto* map = record.As<fb::TensorMap>()) {
      AddTensorMap(*map, &tensor_maps);
    }
  }
  const AllocationIndex allocations(program);
  access::MemoryView memory;
  memory.allocation = [&allocations](uint64_t address) {
    return allocations.Find(address);
  };
  memory.tensor_map = [&tensor_maps](absl::Span<const uint8_t> map) {
    return tensor_maps.Find(map);
  };
  const std::unique_ptr<cubin::CacheFolder> folder =
      access::OpenFootprintFolder(cache_folder);
  KernelBook book(reader, program, folder.get());
  for (const Operation& operation : program.step.operations) {
    AccessSet set;
    if (const CopyWork* copy = operation.copy()) {
      set = CopyAccess(*copy, operation.label);
    } else if (const FillWork* fill = operation.fill()) {
      set.accesses.push_back({Mode::kWrite, Provenance::kDeclared,
                              BytesOf(*fill), operation.label});
    } else if (const LaunchWork* launch = operation.launch()) {
      memory.variables =
          VariablesOf(program, program.kernels[launch->kernel].module);
      set = book.AccessOf(*launch, memory);
    } else {
      const auto* nothing = std::get_if<EmptyWork>(&operation.work);
      set.ordering_point = nothing == nullptr || !nothing->joins;
    }
    result.operations.push_back(std::move(set));
  }
  result.reused = book.reused();
  result.notes = book.notes();
  return result;
}

}  // namespace heddle::replay
