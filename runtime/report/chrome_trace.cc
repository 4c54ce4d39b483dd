// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/report/report.h"
#include "runtime/report/summary.h"

namespace heddle::report {
namespace {

using nlohmann::json;

double Us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

double Rounded(double value) { return std::round(value * 100) / 100; }

json KernelArguments(const DeviceProperties& device, const Activity& a) {
  const uint64_t blocks = uint64_t{a.grid[0]} * a.grid[1] * a.grid[2];
  const uint64_t threads = uint64_t{a.block[0]} * a.block[1] * a.block[2];
  const auto warps = static_cast<double>(
      (threads + static_cast<uint64_t>(device.warp_size) - 1) /
      static_cast<uint64_t>(device.warp_size));
  json args = {
      {"registers per thread", a.registers},
      {"shared memory", uint64_t{a.static_shared} + uint64_t{a.dynamic_shared}},
      {"grid", a.grid},
      {"block", a.block}};
  if (device.multiprocessors > 0) {
    const double per_multiprocessor =
        static_cast<double>(blocks) /
        static_cast<double>(device.multiprocessors);
    args["blocks per SM"] = Rounded(per_multiprocessor);
    args["warps per SM"] = Rounded(per_multiprocessor * warps);
  }
  if (const int occupancy = EstimatedOccupancy(device, a); occupancy >= 0) {
    args["est. achieved occupancy %"] = occupancy;
  }
  return args;
}

json Event(const DeviceProperties& device, const Activity& a, size_t process,
           uint64_t origin) {
  json args = json::object();
  const char* category = "kernel";
  if (a.kind == ActivityKind::kKernel) {
    args = KernelArguments(device, a);
  } else {
    category = a.kind == ActivityKind::kMemcpy   ? "gpu_memcpy"
               : a.kind == ActivityKind::kMemset ? "gpu_memset"
                                                 : "gpu_user_annotation";
    args["bytes"] = a.bytes;
    if (a.duration_ns() != 0) {
      args["memory bandwidth (GB/s)"] = Rounded(
          static_cast<double>(a.bytes) / static_cast<double>(a.duration_ns()));
    }
  }
  // The number of the operation in the step: the same in every timeline.
  args["External id"] = a.order + 1;
  args["device"] = a.device;
  args["context"] = a.context;
  args["stream"] = a.stream;
  args["correlation"] = a.correlation;
  if (a.graph_node != 0) {
    args["graph id"] = a.graph;
    args["graph node id"] = a.graph_node;
  }
  return {{"ph", "X"},
          {"cat", category},
          {"name", Demangle(a.name)},
          {"pid", process},
          {"tid", a.stream},
          {"ts", Us(a.start_ns - origin)},
          {"dur", Us(a.duration_ns())},
          {"args", std::move(args)}};
}

json Metadata(const char* name, size_t process, const json& thread, json args) {
  json event = {{"ph", "M"},     {"name", name}, {"pid", process},
                {"tid", thread}, {"ts", 0},      {"args", std::move(args)}};
  return event;
}

}  // namespace

json ToChromeTrace(const Report& report) {
  const DeviceProperties& device = report.device;
  json events = json::array();
  for (size_t i = 0; i < report.timelines.size(); ++i) {
    const Timeline& timeline = report.timelines[i];
    events.push_back(Metadata(
        "process_name", i, 0,
        {{"name", absl::StrCat(timeline.name, " (", device.name, ")")}}));
    events.push_back(
        Metadata("process_labels", i, 0, {{"labels", timeline.source}}));
    events.push_back(Metadata("process_sort_index", i, 0, {{"sort_index", i}}));
    std::set<uint64_t> streams;
    for (const Activity& a : timeline.activities) streams.insert(a.stream);
    for (const uint64_t stream : streams) {
      events.push_back(Metadata("thread_name", i, stream,
                                {{"name", absl::StrCat("stream ", stream)}}));
      events.push_back(
          Metadata("thread_sort_index", i, stream, {{"sort_index", stream}}));
    }
    const uint64_t origin =
        timeline.activities.empty() ? 0 : timeline.activities[0].start_ns;
    for (const Activity& a : timeline.activities) {
      events.push_back(Event(device, a, i, origin));
    }
  }
  return {
      {"schemaVersion", 1},
      {"displayTimeUnit", "ns"},
      {"traceName", report.title},
      {"deviceProperties",
       {{{"id", device.ordinal},
         {"name", device.name},
         {"totalGlobalMem", device.total_memory},
         {"computeMajor", device.compute_major},
         {"computeMinor", device.compute_minor},
         {"maxThreadsPerBlock", device.max_threads_per_block},
         {"maxThreadsPerMultiprocessor", device.max_threads_per_multiprocessor},
         {"regsPerMultiprocessor", device.registers_per_multiprocessor},
         {"warpSize", device.warp_size},
         {"sharedMemPerMultiprocessor", device.shared_per_multiprocessor},
         {"numSms", device.multiprocessors}}}},
      {"traceEvents", std::move(events)}};
}

}  // namespace heddle::report
