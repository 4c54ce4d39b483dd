// SPDX-License-Identifier: Apache-2.0
#include "tools/diff.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/trace/kernel_runs.h"
#include "runtime/trace/operations.h"
#include "tools/align.h"
#include "tools/record_text.h"

namespace heddle::tools {
namespace {

// Numbers in this range look like addresses of a 48-bit space.
constexpr uint64_t kLowAddress = uint64_t{1} << 32;
constexpr uint64_t kHighAddress = uint64_t{1} << 48;
// Of a struct, that are shown.
constexpr int kMaxWords = 4;

bool LooksLikeAddress(uint64_t value) {
  return value >= kLowAddress && value < kHighAddress;
}

// One of the two traces, read up to a record.
class Side {
 public:
  Side(const trace::Reader& reader, const std::function<bool(uint64_t)>& in,
       bool mangled)
      : reader_(reader), context_(reader, mangled) {
    for (const trace::Operation& operation : trace::ListOperations(reader)) {
      if (in != nullptr && !in(operation.record)) continue;
      operations_.push_back(operation);
      kinds_.push_back(operation.kind);
    }
  }

  const std::vector<trace::Operation>& operations() const {
    return operations_;
  }
  const std::vector<uint64_t>& kinds() const { return kinds_; }
  const RecordContext& context() const { return context_; }
  const trace::GraphState& graphs() const { return graphs_; }

  // Reads on to just before the operation and returns its record.
  const trace::Record& Go(uint64_t operation) {
    const uint64_t record = operations_[operation].record;
    for (; next_ < record; ++next_) {
      context_.Follow(reader_.records()[next_]);
      graphs_.Follow(reader_.records()[next_]);
    }
    return reader_.records()[record];
  }

  // Number of a stream in the order of first use.
  uint64_t StreamNumber(uint64_t handle) {
    return streams_.try_emplace(handle, streams_.size()).first->second;
  }

 private:
  const trace::Reader& reader_;
  RecordContext context_;
  trace::GraphState graphs_;
  std::vector<trace::Operation> operations_;
  std::vector<uint64_t> kinds_;
  absl::flat_hash_map<uint64_t, uint64_t> streams_;
  uint64_t next_ = 0;
};

std::string DimText(const fb::Dim3& dim) {
  return absl::StrCat("(", dim.x(), ",", dim.y(), ",", dim.z(), ")");
}

absl::Span<const uint8_t> ParamsOf(const fb::Launch& launch) {
  if (launch.params() == nullptr) return {};
  return absl::MakeConstSpan(launch.params()->data(), launch.params()->size());
}

uint64_t LoadWord(absl::Span<const uint8_t> bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min<size_t>(8, bytes.size()));
  return value;
}

class Comparer {
 public:
  Comparer(Side& a, Side& b, bool exact) : a_(a), b_(b), exact_(exact) {}

  std::vector<std::string> Compare(const trace::Record& a,
                                   const trace::Record& b) {
    changes_.clear();
    if (const auto* launch = a.As<fb::Launch>(); launch != nullptr) {
      const auto* other = b.As<fb::Launch>();
      if (launch->head() == nullptr || other->head() == nullptr) return {};
      Streams(launch->head()->stream(), other->head()->stream());
      Launches("", *launch, *other);
    } else if (const auto* copy = a.As<fb::Memcpy>(); copy != nullptr) {
      Copies(*copy, *b.As<fb::Memcpy>());
    } else if (const auto* fill = a.As<fb::Memset>(); fill != nullptr) {
      Fills(*fill, *b.As<fb::Memset>());
    } else if (const auto* start = a.As<fb::GraphLaunch>(); start != nullptr) {
      GraphLaunches(*start, *b.As<fb::GraphLaunch>());
    }
    return std::move(changes_);
  }

 private:
  void Change(absl::string_view what, absl::string_view from,
              absl::string_view to) {
    if (from != to) {
      changes_.push_back(absl::StrCat(what, " ", from, " -> ", to));
    }
  }

  void Number(absl::string_view what, uint64_t from, uint64_t to) {
    Change(what, absl::StrCat(from), absl::StrCat(to));
  }

  void Streams(uint64_t from, uint64_t to) {
    Number("stream #", a_.StreamNumber(from), b_.StreamNumber(to));
  }

  void Address(absl::string_view what, uint64_t from, uint64_t to) {
    if (!SameAddress(from, to)) {
      Change(what, Shown(from, a_), Shown(to, b_));
    }
  }

  // `loose`: an address that is in no buffer equals any other.
  bool SameAddress(uint64_t from, uint64_t to, bool loose = true) const {
    if (from == to) return true;
    if (exact_) return false;
    const auto place_a = a_.context().buffers().Locate(from);
    const auto place_b = b_.context().buffers().Locate(to);
    if (place_a.has_value() || place_b.has_value()) return place_a == place_b;
    return loose && LooksLikeAddress(from) && LooksLikeAddress(to);
  }

  static std::string Shown(uint64_t address, const Side& side) {
    return side.context().buffers().Locate(address).value_or(Hex(address));
  }

  void Launches(const std::string& where, const fb::Launch& a,
                const fb::Launch& b) {
    const fb::LaunchHead& head_a = *a.head();
    const fb::LaunchHead& head_b = *b.head();
    Change(absl::StrCat(where, "grid"), DimText(head_a.grid()),
           DimText(head_b.grid()));
    Change(absl::StrCat(where, "block"), DimText(head_a.block()),
           DimText(head_b.block()));
    Number(absl::StrCat(where, "shared memory"), head_a.shared_bytes(),
           head_b.shared_bytes());
    Number(absl::StrCat(where, "cooperative"), a.cooperative() ? 1 : 0,
           b.cooperative() ? 1 : 0);
    Attributes(where, a, b);
    const auto params_a = ParamsOf(a);
    const auto params_b = ParamsOf(b);
    if (params_a.size() != params_b.size()) {
      Number(absl::StrCat(where, "parameter bytes"), params_a.size(),
             params_b.size());
      return;
    }
    const fb::Kernel* kernel = a_.context().names().Find(head_a.kernel());
    if (kernel == nullptr || kernel->params() == nullptr) {
      Param(absl::StrCat(where, "parameters"), 0, params_a, params_b);
      return;
    }
    for (uint32_t i = 0; i < kernel->params()->size(); ++i) {
      const fb::ParamInfo* info = kernel->params()->Get(i);
      if (info->offset() >= params_a.size()) continue;
      Param(absl::StrCat(where, "parameter ", i), info->offset(),
            params_a.subspan(info->offset(), info->size()),
            params_b.subspan(info->offset(), info->size()));
    }
  }

  void Attributes(const std::string& where, const fb::Launch& a,
                  const fb::Launch& b) {
    const auto list = [](const fb::Launch& launch) {
      std::vector<uint32_t> ids;
      if (launch.attributes() != nullptr) {
        for (const auto* attribute : *launch.attributes()) {
          ids.push_back(attribute->id());
        }
      }
      return ids;
    };
    // Values hold handles and addresses; which ones there are is comparable.
    if (list(a) != list(b)) {
      changes_.push_back(absl::StrCat(where, "launch attributes differ"));
    }
  }

  void Param(const std::string& what, uint32_t offset,
             absl::Span<const uint8_t> a, absl::Span<const uint8_t> b) {
    if (a.size() > 8) {
      Struct(what, offset, a, b);
    } else if (a.size() == 8) {
      const uint64_t from = LoadWord(a);
      const uint64_t to = LoadWord(b);
      // The same number may be another place.
      if (!SameAddress(from, to) || (!exact_ && !SamePlace(from, to))) {
        Word(what, offset, a, b);
      }
    } else if (a != b) {
      Word(what, offset, a, b);
    }
  }

  void Word(const std::string& what, uint32_t offset,
            absl::Span<const uint8_t> a, absl::Span<const uint8_t> b) {
    const std::string from = ParamToText(a, offset, a_.context().buffers());
    const std::string to = ParamToText(b, offset, b_.context().buffers());
    if (from != to) return Change(what, from, to);
    Change(what, HexBytes(a), HexBytes(b));
  }

  // Word by word; what is not aligned or not whole, byte by byte.
  void Struct(const std::string& what, uint32_t offset,
              absl::Span<const uint8_t> a, absl::Span<const uint8_t> b) {
    int shown = 0;
    for (size_t at = 0; at < a.size();) {
      const bool word = (offset + at) % 8 == 0 && at + 8 <= a.size();
      const size_t size = word ? 8 : 1;
      const auto part_a = a.subspan(at, size);
      const auto part_b = b.subspan(at, size);
      const bool same = part_a == part_b ||
                        (word && SameAddress(LoadWord(part_a), LoadWord(part_b),
                                             /*loose=*/false));
      if (!same && ++shown > kMaxWords) {
        changes_.push_back(absl::StrCat(what, " differs further on"));
        return;
      }
      if (!same) StructWord(what, offset, at, part_a, part_b);
      at += size;
    }
  }

  // Eight bytes that are no address are more likely two numbers.
  void StructWord(const std::string& what, uint32_t offset, size_t at,
                  absl::Span<const uint8_t> a, absl::Span<const uint8_t> b) {
    const bool place = a_.context().buffers().Find(LoadWord(a)) != nullptr ||
                       b_.context().buffers().Find(LoadWord(b)) != nullptr;
    const size_t size = a.size() == 8 && !place ? 4 : a.size();
    for (size_t part = 0; part < a.size(); part += size) {
      const auto part_a = a.subspan(part, size);
      const auto part_b = b.subspan(part, size);
      if (part_a == part_b) continue;
      Word(absl::StrCat(what, " byte ", at + part), offset, part_a, part_b);
    }
  }

  bool SamePlace(uint64_t from, uint64_t to) const {
    return a_.context().buffers().Locate(from) ==
           b_.context().buffers().Locate(to);
  }

  void Copies(const fb::Memcpy& a, const fb::Memcpy& b) {
    Streams(a.stream(), b.stream());
    Address("destination", a.dst(), b.dst());
    Address("source", a.src(), b.src());
    Number("width", a.width(), b.width());
    Number("height", a.height(), b.height());
    Number("depth", a.depth(), b.depth());
    const bool known = a.data() != nullptr && b.data() != nullptr;
    if (known && (a.data()->lo() != b.data()->lo() ||
                  a.data()->hi() != b.data()->hi())) {
      changes_.push_back("copied bytes differ");
    }
  }

  void Fills(const fb::Memset& a, const fb::Memset& b) {
    Streams(a.stream(), b.stream());
    Address("destination", a.dst(), b.dst());
    Number("value", a.value(), b.value());
    Number("width", a.width(), b.width());
    Number("height", a.height(), b.height());
  }

  void GraphLaunches(const fb::GraphLaunch& a, const fb::GraphLaunch& b) {
    Streams(a.stream(), b.stream());
    const auto kernels_a = a_.graphs().Kernels(a);
    const auto kernels_b = b_.graphs().Kernels(b);
    Number("kernels", kernels_a.size(), kernels_b.size());
    if (kernels_a.size() != kernels_b.size()) return;
    for (size_t i = 0; i < kernels_a.size(); ++i) {
      if (kernels_a[i]->head() == nullptr || kernels_b[i]->head() == nullptr) {
        continue;
      }
      Launches(
          absl::StrCat(
              "kernel ", i, " ",
              a_.context().names().Name(kernels_a[i]->head()->kernel()), ": "),
          *kernels_a[i], *kernels_b[i]);
    }
  }

  Side& a_;
  Side& b_;
  const bool exact_;
  std::vector<std::string> changes_;
};

std::string TextOf(const trace::Record& record, const Side& side) {
  std::string text = RecordToText(record, side.context());
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

DiffResult DiffTraces(const trace::Reader& a, const trace::Reader& b,
                      const DiffOptions& options) {
  Side side_a(a, options.in_a, options.mangled);
  Side side_b(b, options.in_b, options.mangled);
  Comparer comparer(side_a, side_b, options.exact);
  DiffResult result;
  result.operations_a = side_a.operations().size();
  result.operations_b = side_b.operations().size();

  uint64_t next_a = 0;
  uint64_t next_b = 0;
  const auto unmatched = [&](uint64_t end_a, uint64_t end_b) {
    for (; next_a < end_a; ++next_a) {
      const trace::Record& record = side_a.Go(next_a);
      result.differences.push_back({Difference::Kind::kRemoved,
                                    record.index,
                                    std::nullopt,
                                    TextOf(record, side_a),
                                    "",
                                    {}});
      ++result.removed;
    }
    for (; next_b < end_b; ++next_b) {
      const trace::Record& record = side_b.Go(next_b);
      result.differences.push_back({Difference::Kind::kAdded,
                                    std::nullopt,
                                    record.index,
                                    "",
                                    TextOf(record, side_b),
                                    {}});
      ++result.added;
    }
  };
  for (const auto& [in_a, in_b] : Align(side_a.kinds(), side_b.kinds())) {
    unmatched(in_a, in_b);
    const trace::Record& record_a = side_a.Go(in_a);
    const trace::Record& record_b = side_b.Go(in_b);
    std::vector<std::string> changes = comparer.Compare(record_a, record_b);
    if (!changes.empty()) {
      result.differences.push_back({Difference::Kind::kChanged, record_a.index,
                                    record_b.index, TextOf(record_a, side_a),
                                    TextOf(record_b, side_b),
                                    std::move(changes)});
      ++result.changed;
    }
    next_a = in_a + 1;
    next_b = in_b + 1;
  }
  unmatched(side_a.operations().size(), side_b.operations().size());
  return result;
}

}  // namespace heddle::tools
