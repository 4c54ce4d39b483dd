// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/graph_access.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::rewrite {
namespace {

using access::Access;
using access::AccessSet;
using access::ExtentSet;
using access::Mode;
using access::Provenance;

AccessSet Anything(const std::string& why) {
  AccessSet set;
  set.unknown_reads = set.unknown_writes = why;
  return set;
}

struct CopyEnd {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  uint64_t x, y, z;  // bytes, rows, planes
  uint64_t pitch;    // bytes; 0: rows follow each other
  uint64_t height;   // rows of a plane; 0: those of the copy
};

// nullopt: memory that has no addresses (arrays).
std::optional<ExtentSet> BytesOf(const CopyEnd& end,
                                 const CUDA_MEMCPY3D& copy) {
  uint64_t base = 0;
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      base = reinterpret_cast<uint64_t>(end.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      base = end.device;
      break;
    default:
      return std::nullopt;
  }
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) {
    return ExtentSet();
  }
  const uint64_t pitch = end.pitch != 0 ? end.pitch : copy.WidthInBytes;
  const uint64_t slice = pitch * (end.height != 0 ? end.height : copy.Height);
  return access::BoxOf(base + end.z * slice + end.y * pitch + end.x,
                       copy.WidthInBytes, {copy.Height, copy.Depth},
                       {pitch, slice});
}

AccessSet AccessOfKernel(const GraphNode& node, bool cooperative,
                         access::AnalysisBook* book,
                         const access::MemoryView& memory) {
  if (node.source.code == nullptr) {
    return Anything(node.reason.empty() ? "its code is not known"
                                        : node.reason);
  }
  const CUDA_KERNEL_NODE_PARAMS& shape = node.launch.shape();
  const std::vector<uint8_t> params = node.launch.Block();
  const DeviceCode& code = *node.source.code;
  return book->AccessOf(
      {.key =
           absl::StrCat(code.image_hash.ToHex(), "-sm", code.major, code.minor),
       .origin = "",
       .read = [&code] { return code.Unpack(); }},
      {.kernel = node.source.name,
       .grid = {shape.gridDimX, shape.gridDimY, shape.gridDimZ},
       .block = {shape.blockDimX, shape.blockDimY, shape.blockDimZ},
       .params = params,
       .cooperative = cooperative},
      memory);
}

}  // namespace

AccessSet AccessOf(const CUDA_MEMCPY3D& copy) {
  const auto source = BytesOf(
      {copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
       copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight},
      copy);
  const auto target = BytesOf(
      {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
       copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight},
      copy);
  AccessSet set;
  if (source.has_value()) {
    set.accesses.push_back(
        {Mode::kRead, Provenance::kDeclared, *source, "copy"});
  } else {
    set.unknown_reads = "copies from an array";
  }
  if (target.has_value()) {
    set.accesses.push_back(
        {Mode::kWrite, Provenance::kDeclared, *target, "copy"});
  } else {
    set.unknown_writes = "copies to an array";
  }
  // The host sees what arrives there, and may count on when.
  set.ordering_point = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  return set;
}

AccessSet AccessOf(const CUDA_MEMSET_NODE_PARAMS& fill) {
  AccessSet set;
  const uint64_t width = uint64_t{fill.width} * fill.elementSize;
  set.accesses.push_back(
      {Mode::kWrite, Provenance::kDeclared,
       access::BoxOf(fill.dst, width, {uint64_t{fill.height}},
                     {uint64_t{fill.pitch}}),
       "fill"});
  return set;
}

std::vector<AccessSet> FindAccesses(
    const device::Driver& driver, const GraphModel& model,
    access::AnalysisBook* book, access::MemoryView memory,
    const std::function<ExtentSet(const DeviceCode&)>& variables) {
  std::vector<AccessSet> sets;
  sets.reserve(model.nodes.size());
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const GraphNode& node = model.nodes[i];
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        memory.variables = node.source.code == nullptr
                               ? ExtentSet()
                               : variables(*node.source.code);
        sets.push_back(AccessOfKernel(
            node, model.graph.nodes[i].needs.cooperative, book, memory));
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY: {
        CUDA_MEMCPY3D copy{};
        sets.push_back(
            driver.GraphMemcpyNodeGetParams(node.handle, &copy) == CUDA_SUCCESS
                ? AccessOf(copy)
                : Anything("the driver does not say what it copies"));
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS fill{};
        sets.push_back(driver.GraphMemsetNodeGetParams(node.handle, &fill) ==
                               CUDA_SUCCESS
                           ? AccessOf(fill)
                           : Anything("the driver does not say what it fills"));
        break;
      }
      case CU_GRAPH_NODE_TYPE_EMPTY:
        sets.emplace_back();  // joins others: order comes from what they touch
        break;
      default:
        sets.push_back(Anything("a node that is no kernel, copy or fill"));
        sets.back().ordering_point = true;
        break;
    }
  }
  return sets;
}

}  // namespace heddle::rewrite
