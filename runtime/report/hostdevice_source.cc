// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <utility>

#include "runtime/report/activity.h"
#include "tests/hostdevice/timeline.h"

namespace heddle::report {
namespace {

// The simulated timeline of tests/hostdevice: what CUPTI is to a GPU.
class HostDeviceSource : public ActivitySource {
 public:
  decltype(&heddleHostDeviceEnableTimeline) enable = nullptr;
  decltype(&heddleHostDeviceClearTimeline) clear = nullptr;
  decltype(&heddleHostDeviceGetTimeline) get = nullptr;

  std::string name() const override { return "host device (simulated time)"; }

  absl::Status Start() override {
    clear();
    enable(1);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Activity>> Stop() override {
    enable(0);
    std::vector<HeddleHostDeviceActivity> raw(
        static_cast<size_t>(get(nullptr, 0)));
    get(raw.data(), static_cast<int>(raw.size()));
    std::vector<Activity> activities;
    for (const HeddleHostDeviceActivity& from : raw) {
      Activity activity;
      switch (from.kind) {
        case HEDDLE_HOST_DEVICE_KERNEL:
          activity.kind = ActivityKind::kKernel;
          break;
        case HEDDLE_HOST_DEVICE_MEMCPY:
          activity.kind = ActivityKind::kMemcpy;
          break;
        case HEDDLE_HOST_DEVICE_MEMSET:
          activity.kind = ActivityKind::kMemset;
          break;
        default:
          activity.kind = ActivityKind::kOther;
          break;
      }
      activity.name = from.name == nullptr ? "unknown" : from.name;
      activity.start_ns = from.start_ns;
      activity.end_ns = from.end_ns;
      activity.context = 1;
      activity.stream = from.stream_id;
      activity.correlation =
          from.graph_exec_id != 0 ? from.graph_exec_id : from.correlation;
      activity.graph = from.graph_exec_id;
      activity.graph_node = from.graph_node_id;
      for (int i = 0; i < 3; ++i) {
        activity.grid[i] = from.grid[i];
        activity.block[i] = from.block[i];
      }
      activity.bytes = from.bytes;
      activities.push_back(std::move(activity));
    }
    NumberActivities(activities);
    return activities;
  }
};

}  // namespace

std::unique_ptr<ActivitySource> CreateHostDeviceSource(
    const device::Driver& driver) {
  void* library = dlopen(driver.origin.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto source = std::make_unique<HostDeviceSource>();
  source->enable = reinterpret_cast<decltype(source->enable)>(
      dlsym(library, "heddleHostDeviceEnableTimeline"));
  source->clear = reinterpret_cast<decltype(source->clear)>(
      dlsym(library, "heddleHostDeviceClearTimeline"));
  source->get = reinterpret_cast<decltype(source->get)>(
      dlsym(library, "heddleHostDeviceGetTimeline"));
  dlclose(library);  // the driver table keeps it open
  if (source->enable == nullptr || source->clear == nullptr ||
      source->get == nullptr) {
    return nullptr;
  }
  return source;
}

}  // namespace heddle::report
