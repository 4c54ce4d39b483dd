// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/timeline.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/control.h"
#include "tests/hostdevice/device.h"
#include "tests/hostdevice/scheduler.h"

using heddle::hostdevice::Device;

HD_EXPORT void heddleHostDeviceEnableTimeline(int enable) {
  std::lock_guard<std::mutex> lock(Device::mutex());
  Device::Get().scheduler().timeline_enabled = enable != 0;
}

HD_EXPORT void heddleHostDeviceClearTimeline() {
  std::lock_guard<std::mutex> lock(Device::mutex());
  Device::Get().scheduler().timeline.clear();
}

HD_EXPORT int heddleHostDeviceGetTimeline(HeddleHostDeviceActivity* out,
                                          int max) {
  std::lock_guard<std::mutex> lock(Device::mutex());
  const std::vector<HeddleHostDeviceActivity>& timeline =
      Device::Get().scheduler().timeline;
  const size_t count =
      std::min(timeline.size(), static_cast<size_t>(std::max(max, 0)));
  std::copy_n(timeline.begin(), count, out);
  return static_cast<int>(timeline.size());
}

HD_EXPORT uint64_t heddleHostDeviceNow() {
  std::lock_guard<std::mutex> lock(Device::mutex());
  return Device::Get().scheduler().now_ns();
}

HD_EXPORT void heddleHostDeviceSetSeed(uint64_t seed) {
  std::lock_guard<std::mutex> lock(Device::mutex());
  Device::Get().scheduler().Reseed(seed);
}
