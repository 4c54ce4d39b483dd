// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/launch_access.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/access/tensor_maps.h"

namespace heddle::access {
namespace {

constexpr size_t kTensorMapBytes = 128;
// Pieces of one access that are told apart.
constexpr uint64_t kMaxPieces = 1024;

uint64_t PointerAt(const LaunchValues& launch, size_t index) {
  uint64_t value;
  std::memcpy(&value, launch.params.data() + launch.pointers[index],
              sizeof(value));
  return value;
}

std::string Where(const Footprint& footprint) {
  return absl::StrCat(footprint.name, " at 0x", absl::Hex(footprint.offset));
}

// The bytes of a bounded footprint whose pointer has the value `base`: none if
// no thread can come there. nullopt if the bounds are no addresses.
std::optional<ExtentSet> BytesOf(const Footprint& footprint, uint64_t base) {
  // Bounds that are too wide may begin below address 0.
  const Wide first = std::max<Wide>(0, Wide{base} + footprint.lo);
  const Wide end = Wide{base} + footprint.hi + footprint.bytes;
  if (end <= first || end > kSigned64.hi) return std::nullopt;
  const ExtentSet hull({Extent{static_cast<uint64_t>(first),
                               static_cast<uint64_t>(end - first)}});
  if (Wide{base} + footprint.lo < 0) return hull;
  // As a box, innermost first; what overlaps itself is one piece.
  std::vector<AddressTerm> terms = footprint.terms;
  std::sort(terms.begin(), terms.end(),
            [](const AddressTerm& a, const AddressTerm& b) {
              return std::abs(a.coefficient) < std::abs(b.coefficient);
            });
  // Where the box begins and ends: far outside of what is addressable, if its
  // terms are wide and only their sum is not.
  Wide low = Wide{base} + footprint.constant;
  Wide high = low + footprint.bytes;
  for (const AddressTerm& term : terms) {
    const Range part = Scale({term.lo, term.hi}, term.coefficient);
    low += part.lo;
    high += part.hi;
  }
  if (low < 0 || high > kSigned64.hi) return hull;
  uint64_t address = base + static_cast<uint64_t>(footprint.constant);
  uint64_t width = footprint.bytes;
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> strides;
  for (const AddressTerm& term : terms) {
    const auto stride = static_cast<uint64_t>(std::abs(term.coefficient));
    const uint64_t steps = static_cast<uint64_t>(term.hi - term.lo) + 1;
    address += static_cast<uint64_t>(term.coefficient) *
               static_cast<uint64_t>(term.coefficient > 0 ? term.lo : term.hi);
    if (stride > (uint64_t{1} << 40) || steps > (uint64_t{1} << 40)) {
      return hull;
    }
    if (sizes.empty() && stride <= width) {
      width += stride * (steps - 1);
      continue;
    }
    sizes.push_back(steps);
    strides.push_back(stride);
  }
  if (footprint.terms.empty()) return hull;
  return BoxOf(address, width, sizes, strides).Intersect(hull);
}

class Collector {
 public:
  Collector(const LaunchValues& launch, const MemoryView& memory)
      : launch_(launch), memory_(memory) {}

  void Add(const Footprint& footprint) {
    if (footprint.tensor_map != -1) {
      AddTensor(footprint);
    } else if (footprint.pointer >= 0) {
      AddThroughPointer(footprint);
    } else {
      AddOther(footprint);
    }
  }

  AccessSet Finish() {
    for (auto& [key, group] : groups_) {
      Access access;
      access.mode = std::get<0>(key);
      access.provenance = std::get<1>(key);
      access.bytes = ExtentSet(std::move(group.extents));
      access.evidence = std::move(group.evidence);
      if (group.instructions > 1) {
        absl::StrAppend(&access.evidence, " and ", group.instructions - 1,
                        " more");
      }
      if (!access.bytes.empty()) set_.accesses.push_back(std::move(access));
    }
    return std::move(set_);
  }

 private:
  struct Group {
    std::vector<Extent> extents;
    std::string evidence;
    uint32_t instructions = 0;
  };

  void Keep(const Footprint& footprint, Provenance provenance, int source,
            const ExtentSet& bytes, const std::string& through) {
    Group& group = groups_[{footprint.mode, provenance, source}];
    if (group.instructions++ == 0) {
      group.evidence = absl::StrCat(Where(footprint), ", ", through);
    }
    group.extents.insert(group.extents.end(), bytes.extents().begin(),
                         bytes.extents().end());
  }

  void Unknown(const Footprint& footprint, const std::string& why) {
    const std::string text = absl::StrCat(Where(footprint), " ", why);
    if (footprint.mode != Mode::kWrite && set_.unknown_reads.empty()) {
      set_.unknown_reads = text;
    }
    if (footprint.mode != Mode::kRead && set_.unknown_writes.empty()) {
      set_.unknown_writes = text;
    }
  }

  std::string Parameter(int pointer) const {
    return absl::StrCat("through the pointer at ", launch_.pointers[pointer],
                        " of its parameters");
  }

  void AddThroughPointer(const Footprint& footprint) {
    const uint64_t base = PointerAt(launch_, footprint.pointer);
    const std::optional<Extent> allocation = memory_.allocation(base);
    const std::string through = Parameter(footprint.pointer);
    if (!allocation.has_value()) {
      Unknown(footprint, absl::StrCat("goes ", through,
                                      ", and where it points is not "
                                      "known"));
      return;
    }
    if (footprint.bounded) {
      const std::optional<ExtentSet> bytes = BytesOf(footprint, base);
      if (bytes.has_value() && bytes->empty()) return;
      const ExtentSet inside =
          bytes.value_or(ExtentSet()).Intersect(ExtentSet({*allocation}));
      // What a valid program cannot do is left out; if all of it is, then the
      // program knows more of its memory than its allocations say.
      if (bytes.has_value() && (inside == *bytes || inside.empty())) {
        Keep(footprint, Provenance::kProved, footprint.pointer, *bytes,
             through);
        return;
      }
      if (bytes.has_value()) {
        Keep(footprint, Provenance::kAssumed, footprint.pointer, inside,
             through);
        return;
      }
    }
    Keep(footprint, Provenance::kAssumed, footprint.pointer,
         ExtentSet({*allocation}), through);
  }

  void AddOther(const Footprint& footprint) {
    const Origins pointers =
        footprint.origins & ~(kFromMemory | kFromVariable | kFromDriver);
    if (pointers == 0 && footprint.origins == kFromVariable &&
        footprint.mode == Mode::kRead) {
      // Who writes variables that the host did not ask for is unknown, and so
      // conflicts with this read whatever it is of.
      Keep(footprint, Provenance::kProved, -1, memory_.variables,
           "from a variable of its module");
      return;
    }
    if ((footprint.origins & kFromVariable) != 0) {
      Unknown(footprint, "goes through a variable of its module");
      return;
    }
    if (pointers == 0 && (footprint.origins & kFromMemory) == 0) {
      // A generic address made of what the driver says about shared and local
      // memory.
      if (footprint.generic && footprint.origins == kFromDriver) return;
      Unknown(footprint, "goes to an address that is not from its parameters");
      return;
    }
    if ((footprint.origins & kFromMemory) != 0) {
      Unknown(footprint, "goes to an address that was loaded from memory");
      return;
    }
    std::vector<Extent> allocations;
    for (size_t i = 0; i < launch_.pointers.size(); ++i) {
      if ((pointers >> i & 1) == 0) continue;
      const std::optional<Extent> allocation =
          memory_.allocation(PointerAt(launch_, i));
      if (!allocation.has_value()) {
        Unknown(footprint,
                "goes to one of several pointers, and where they "
                "point is not known");
        return;
      }
      allocations.push_back(*allocation);
    }
    Keep(footprint, Provenance::kAssumed, -2, ExtentSet(std::move(allocations)),
         "through one of several pointers");
  }

  // A map that nobody was seen making. That it is one shows in that all of its
  // tensor lies in one allocation.
  std::optional<ExtentSet> ReadMap(absl::Span<const uint8_t> map) const {
    const std::optional<TensorMaps::Shape> shape = TensorMaps::Decode(map);
    if (!shape.has_value()) return std::nullopt;
    const std::optional<Extent> allocation = memory_.allocation(shape->address);
    const std::optional<ExtentSet> bytes = TensorMaps::BytesOf(*shape);
    if (!allocation.has_value() || !bytes.has_value() ||
        !(bytes->Intersect(ExtentSet({*allocation})) == *bytes)) {
      return std::nullopt;
    }
    return bytes;
  }

  void AddTensor(const Footprint& footprint) {
    const absl::Span<const uint8_t> params = launch_.params;
    if (footprint.tensor_map >= 0) {
      const auto at = static_cast<size_t>(footprint.tensor_map);
      if (at + kTensorMapBytes <= params.size()) {
        const std::optional<ExtentSet> bytes =
            memory_.tensor_map(params.subspan(at, kTensorMapBytes));
        if (bytes.has_value()) {
          Keep(footprint, Provenance::kTensorMap, 1000 + footprint.tensor_map,
               *bytes,
               absl::StrCat("by the tensor map at ", footprint.tensor_map,
                            " of its parameters"));
          return;
        }
      }
      if (at + TensorMaps::kHardwareBytes <= params.size()) {
        const std::optional<ExtentSet> bytes =
            ReadMap(params.subspan(at, TensorMaps::kHardwareBytes));
        if (bytes.has_value()) {
          Keep(footprint, Provenance::kTensorMap, 1000 + footprint.tensor_map,
               *bytes,
               absl::StrCat("by what the tensor map at ", footprint.tensor_map,
                            " of its parameters says"));
          return;
        }
      }
      Unknown(footprint, "goes by a tensor map that was not seen being made");
      return;
    }
    // Which of the maps is chosen is open; they lie at multiples of 64 bytes.
    ExtentSet all;
    int maps = 0;
    for (size_t at = 0; at + TensorMaps::kHardwareBytes <= params.size();
         at += 8) {
      std::optional<ExtentSet> bytes =
          at + kTensorMapBytes <= params.size()
              ? memory_.tensor_map(params.subspan(at, kTensorMapBytes))
              : std::nullopt;
      if (bytes.has_value()) ++maps;
      // One that was not seen may be it, too. More than there is does no harm.
      if (!bytes.has_value() && at % 64 == 0) {
        bytes = ReadMap(params.subspan(at));
      }
      if (bytes.has_value()) all.Add(*bytes);
    }
    const bool from_parameters =
        (footprint.origins & ~(kFromDriver)) == 0 && maps > 0;
    if (!from_parameters) {
      Unknown(footprint, "goes by a tensor map that is not in its parameters");
      return;
    }
    Keep(
        footprint, Provenance::kTensorMap, 999, all,
        absl::StrCat("by one of the ", maps, " tensor maps in its parameters"));
  }

  const LaunchValues& launch_;
  const MemoryView& memory_;
  std::map<std::tuple<Mode, Provenance, int>, Group> groups_;
  AccessSet set_;
};

}  // namespace

ExtentSet BoxOf(uint64_t address, uint64_t width,
                absl::Span<const uint64_t> sizes,
                absl::Span<const uint64_t> strides) {
  // Pieces from the outermost dimension inwards, as long as they are few.
  std::vector<Extent> pieces = {{address, 0}};
  uint64_t inner = width;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return {};
    inner += strides[i] * (sizes[i] - 1);
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    if (pieces.size() > kMaxPieces / sizes[i]) break;
    inner -= strides[i] * (sizes[i] - 1);
    std::vector<Extent> next;
    next.reserve(pieces.size() * sizes[i]);
    for (const Extent& piece : pieces) {
      for (uint64_t step = 0; step < sizes[i]; ++step) {
        next.push_back({piece.address + step * strides[i], 0});
      }
    }
    pieces = std::move(next);
  }
  for (Extent& piece : pieces) piece.size = inner;
  return ExtentSet(std::move(pieces));
}

std::vector<uint32_t> FindPointers(absl::Span<const uint8_t> params,
                                   const MemoryView& memory, bool* too_many) {
  std::vector<uint32_t> pointers;
  *too_many = false;
  for (size_t at = 0; at + 8 <= params.size(); at += 8) {
    uint64_t value;
    std::memcpy(&value, params.data() + at, sizeof(value));
    if (!memory.allocation(value).has_value()) continue;
    if (pointers.size() == kMaxPointers) {
      *too_many = true;
      break;
    }
    pointers.push_back(static_cast<uint32_t>(at));
  }
  return pointers;
}

AccessSet AccessOfLaunch(const KernelFootprint& footprint,
                         const LaunchValues& launch, const MemoryView& memory) {
  if (!footprint.unknown.empty()) {
    AccessSet set;
    set.unknown_reads = set.unknown_writes = footprint.unknown;
    return set;
  }
  Collector collector(launch, memory);
  for (const Footprint& part : footprint.footprints) collector.Add(part);
  return collector.Finish();
}

}  // namespace heddle::access
