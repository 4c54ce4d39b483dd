// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/work.h"

#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

// More than any device has: larger extents are damage, and smaller ones can
// be multiplied without a thought.
constexpr uint64_t kMaxExtent = uint64_t{1} << 44;

std::string Name(const flatbuffers::String* api, const char* otherwise) {
  return api == nullptr || api->size() == 0 ? otherwise : api->str();
}

bool Multiply(uint64_t a, uint64_t b, uint64_t* product) {
  return !__builtin_mul_overflow(a, b, product) && *product <= kMaxExtent;
}

template <typename T>
T ValueAs(const LaunchAttribute& attribute, size_t offset = 0) {
  T value{};
  if (attribute.value.size() >= offset + sizeof(T)) {
    std::memcpy(&value, attribute.value.data() + offset, sizeof(T));
  }
  return value;
}

}  // namespace

absl::StatusOr<LaunchWork> ToLaunch(const fb::Launch& launch,
                                    const Kernel& kernel, uint32_t index) {
  const fb::LaunchHead* head = launch.head();
  if (head == nullptr) {
    return absl::InvalidArgumentError("a launch record has no head");
  }
  LaunchWork work;
  work.kernel = index;
  const auto set = [](uint32_t(&out)[3], const fb::Dim3& dim) {
    out[0] = dim.x();
    out[1] = dim.y();
    out[2] = dim.z();
  };
  set(work.grid, head->grid());
  set(work.block, head->block());
  work.shared_bytes = head->shared_bytes();
  work.cooperative = launch.cooperative();
  if (launch.params() != nullptr) {
    work.params.assign(launch.params()->begin(), launch.params()->end());
  }
  if (work.params.size() < kernel.param_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "launch of ", kernel.name, " holds ", work.params.size(),
        " bytes of parameters, the kernel takes ", kernel.param_bytes));
  }
  if (launch.attributes() != nullptr) {
    for (const fb::LaunchAttribute* attribute : *launch.attributes()) {
      LaunchAttribute copy;
      copy.id = attribute->id();
      copy.value.assign(attribute->value()->begin(), attribute->value()->end());
      if (copy.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        work.cooperative |= ValueAs<int>(copy) != 0;
        continue;
      }
      work.attributes.push_back(std::move(copy));
    }
  }
  return work;
}

absl::StatusOr<PendingCopy> ToCopy(const fb::Memcpy& copy,
                                   const IsDeviceAddress& is_device) {
  const std::string api = Name(copy.api(), "memcpy");
  PendingCopy result;
  CopyWork& work = result.work;
  work.width = copy.width();
  work.height = copy.height();
  work.depth = copy.depth();
  uint64_t rows = 0;
  uint64_t bytes = 0;
  if (!Multiply(work.height, work.depth, &rows) ||
      !Multiply(work.width, rows, &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        api, " of ", work.width, " x ", work.height, " x ", work.depth,
        " bytes: no device has that much, the trace is damaged"));
  }
  switch (copy.kind()) {
    case fb::MemcpyKind::kHtoD:
      work.src.host = true;
      break;
    case fb::MemcpyKind::kDtoH:
      work.dst.host = true;
      break;
    case fb::MemcpyKind::kDtoD:
    case fb::MemcpyKind::kPeer:
      break;
    case fb::MemcpyKind::kHtoH:
      work.src.host = work.dst.host = true;
      break;
    case fb::MemcpyKind::kUnknown:
    case fb::MemcpyKind::kDefault:
      work.src.host = !is_device(copy.src());
      work.dst.host = !is_device(copy.dst());
      break;
    default:
      return absl::UnimplementedError(absl::StrCat(
          api, " moves data of a CUDA array: replay knows linear memory only"));
  }
  work.src.address = copy.src();
  work.src.pitch = copy.src_pitch();
  work.src.slice = copy.src_slice();
  work.dst.address = copy.dst();
  work.dst.pitch = copy.dst_pitch();
  work.dst.slice = copy.dst_slice();
  for (const CopyEnd* end : {&work.src, &work.dst}) {
    if (work.height > 1 && end->pitch < work.width) {
      return absl::InvalidArgumentError(absl::StrCat(
          api, ": rows of ", work.width, " bytes at a pitch of ", end->pitch));
    }
    if (work.depth > 1 && (end->pitch == 0 || end->slice % end->pitch != 0 ||
                           end->slice / end->pitch < work.height)) {
      return absl::InvalidArgumentError(
          absl::StrCat(api, ": slices of ", work.height, " rows at ",
                       end->slice, " bytes, pitch ", end->pitch));
    }
    if (end->pitch > kMaxExtent || end->slice > kMaxExtent) {
      return absl::InvalidArgumentError(
          absl::StrCat(api, ": pitch ", end->pitch, ", slice ", end->slice,
                       ": the trace is damaged"));
    }
  }
  if (copy.data() != nullptr) {
    result.data = {copy.data()->lo(), copy.data()->hi()};
    result.has_data = result.data != trace::Hash128{};
  }
  return result;
}

absl::StatusOr<FillWork> ToFill(const fb::Memset& fill) {
  const std::string api = Name(fill.api(), "memset");
  FillWork work;
  work.address = fill.dst();
  work.value = fill.value();
  work.element_size = fill.element_size();
  work.width = fill.width();
  work.height = fill.height();
  work.pitch = fill.pitch();
  if (work.element_size != 1 && work.element_size != 2 &&
      work.element_size != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat(api, " with elements of ", work.element_size, " bytes"));
  }
  uint64_t row = 0;
  uint64_t bytes = 0;
  if (!Multiply(work.width, work.element_size, &row) ||
      !Multiply(row, work.height, &bytes) ||
      (work.height > 1 && (work.pitch < row || work.pitch > kMaxExtent))) {
    return absl::InvalidArgumentError(
        absl::StrCat(api, " of ", work.height, " rows of ", work.width,
                     " elements at a pitch of ", work.pitch));
  }
  return work;
}

absl::StatusOr<MemOpWork> ToMemOp(const fb::MemOp& memop) {
  MemOpWork result;
  const size_t bytes =
      memop.operations() == nullptr ? 0 : memop.operations()->size();
  if (bytes / sizeof(CUstreamBatchMemOpParams) < memop.count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Name(memop.api(), "cuStreamBatchMemOp"), ": ", memop.count(),
        " operations in ", bytes, " bytes: the trace is damaged"));
  }
  for (uint32_t i = 0; i < memop.count(); ++i) {
    CUstreamBatchMemOpParams params;
    std::memcpy(&params, memop.operations()->data() + i * sizeof(params),
                sizeof(params));
    size_t size = 0;
    if (params.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) size = 4;
    if (params.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) size = 8;
    if (size == 0) {
      ++result.waits;
      continue;
    }
    MemOpWork::Write write;
    write.address = params.writeValue.address;
    write.bytes.resize(size);
    std::memcpy(write.bytes.data(), &params.writeValue.value64, size);
    result.writes.push_back(std::move(write));
  }
  return result;
}

bool SerializedEarly(const LaunchWork& launch) {
  return std::any_of(
      launch.attributes.begin(), launch.attributes.end(),
      [](const LaunchAttribute& a) {
        return a.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
               ValueAs<int>(a) != 0;
      });
}

std::vector<LaunchEvent> LaunchEvents(const LaunchWork& launch) {
  std::vector<LaunchEvent> events;
  for (const LaunchAttribute& a : launch.attributes) {
    if (a.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
      const int at_start = ValueAs<int>(a, 12);
      events.push_back(
          {ValueAs<uint64_t>(a),
           static_cast<uint8_t>(at_start != 0
                                    ? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
                                    : CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC),
           CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC});
    } else if (a.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      events.push_back({ValueAs<uint64_t>(a),
                        CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                        CU_GRAPH_DEPENDENCY_TYPE_DEFAULT});
    }
  }
  return events;
}

std::string Describe(const CopyWork& work) {
  return absl::StrCat("memcpy ", work.src.host ? "H" : "D", "to",
                      work.dst.host ? "H" : "D", " ", CopyBytes(work), " B");
}

std::string Describe(const FillWork& work) {
  return absl::StrCat("memset ", work.width * work.element_size * work.height,
                      " B");
}

}  // namespace heddle::replay
