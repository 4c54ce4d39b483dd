// SPDX-License-Identifier: Apache-2.0
#include "runtime/report/activity.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace heddle::report {

void NumberActivities(std::vector<Activity>& activities) {
  std::stable_sort(activities.begin(), activities.end(),
                   [](const Activity& a, const Activity& b) {
                     return std::tie(a.start_ns, a.end_ns) <
                            std::tie(b.start_ns, b.end_ns);
                   });
  std::vector<size_t> order(activities.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Activity& x = activities[a];
    const Activity& y = activities[b];
    return std::tie(x.correlation, x.graph_node) <
           std::tie(y.correlation, y.graph_node);
  });
  for (size_t i = 0; i < order.size(); ++i) activities[order[i]].order = i;
}

absl::StatusOr<DeviceProperties> QueryDevice(const device::Driver& driver,
                                             CUdevice device) {
  DeviceProperties properties;
  properties.ordinal = device;
  char name[256] = {};
  if (absl::Status s =
          driver.Check(driver.DeviceGetName(name, sizeof(name) - 1, device),
                       "cuDeviceGetName");
      !s.ok()) {
    return s;
  }
  properties.name = name;
  size_t memory = 0;
  if (driver.DeviceTotalMem(&memory, device) == CUDA_SUCCESS) {
    properties.total_memory = memory;
  }
  const std::pair<CUdevice_attribute, int*> wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &properties.compute_major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &properties.compute_minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &properties.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
       &properties.max_threads_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
       &properties.max_blocks_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
       &properties.max_threads_per_block},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
       &properties.registers_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &properties.shared_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
       &properties.shared_per_block_reserved},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &properties.warp_size},
  };
  for (const auto& [attribute, value] : wanted) {
    // A device that does not know one has 0 there: it is left out.
    if (driver.DeviceGetAttribute(value, attribute, device) != CUDA_SUCCESS) {
      *value = 0;
    }
  }
  if (properties.warp_size <= 0) properties.warp_size = 32;
  return properties;
}

absl::StatusOr<std::unique_ptr<ActivitySource>> CreateActivitySource(
    const device::Driver& driver) {
  if (std::unique_ptr<ActivitySource> source = CreateHostDeviceSource(driver)) {
    return source;
  }
  return CreateCuptiSource();
}

}  // namespace heddle::report
