// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPORT_ACTIVITY_H_
#define HEDDLE_RUNTIME_REPORT_ACTIVITY_H_

// What a device did and when, whatever told it: CUPTI, the host device, or
// events around launches.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/driver.h"

namespace heddle::report {

enum class ActivityKind { kKernel, kMemcpy, kMemset, kOther };

struct Activity {
  ActivityKind kind = ActivityKind::kKernel;
  std::string name;  // kernels: mangled; copies: "Memcpy HtoD (...)"
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t device = 0;
  uint32_t context = 0;
  uint64_t stream = 0;       // the source's number of it
  uint64_t correlation = 0;  // order of the API calls that submitted it
  uint64_t graph = 0;        // 0 = not from a graph
  uint64_t graph_node = 0;   // grows in the order in which nodes were added
  // Position in the order of submission (serial) or of node creation (graph),
  // from 0. See NumberActivities.
  uint64_t order = 0;

  // Kernels.
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};
  uint32_t registers = 0;  // per thread, 0 = not known
  uint32_t static_shared = 0;
  uint32_t dynamic_shared = 0;
  // Copies and fills.
  uint64_t bytes = 0;

  uint64_t duration_ns() const {
    return end_ns > start_ns ? end_ns - start_ns : 0;
  }
};

struct DeviceProperties {
  std::string name;
  int ordinal = 0;
  uint64_t total_memory = 0;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  int max_threads_per_multiprocessor = 0;
  int max_blocks_per_multiprocessor = 0;
  int max_threads_per_block = 0;
  int registers_per_multiprocessor = 0;
  int shared_per_multiprocessor = 0;
  int shared_per_block_reserved = 0;
  int warp_size = 32;
};
absl::StatusOr<DeviceProperties> QueryDevice(const device::Driver& driver,
                                             CUdevice device);

// One run, as it is shown: "serial" or "graph".
struct Timeline {
  std::string name;
  std::string source;                // "CUPTI 13.0", "host device", "events"
  std::vector<Activity> activities;  // by start
};

// Sorts by start and fills in `order`: by node in graphs, else by correlation,
// so that the operation of a step has the same number in both modes.
void NumberActivities(std::vector<Activity>& activities);

// Where activities come from. One source records at a time.
class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  virtual std::string name() const = 0;
  // Forgets what was seen and begins to record. Graphs should be instantiated
  // after Start.
  virtual absl::Status Start() = 0;
  // Ends recording. The device must be idle. Sorted and numbered.
  virtual absl::StatusOr<std::vector<Activity>> Stop() = 0;
};

// The host device if `driver` is one, else CUPTI. Errors: Unavailable, with
// where CUPTI was looked for.
absl::StatusOr<std::unique_ptr<ActivitySource>> CreateActivitySource(
    const device::Driver& driver);

// Opens CUPTI: the file or folder $HEDDLE_CUPTI, the loader's search path,
// $CUDA_HOME and $CUDA_PATH, /usr/local/cuda. Not linked: the CUPTI of the
// machine belongs to its driver.
absl::StatusOr<std::unique_ptr<ActivitySource>> CreateCuptiSource();
// nullptr if `driver` is a real one.
std::unique_ptr<ActivitySource> CreateHostDeviceSource(
    const device::Driver& driver);

}  // namespace heddle::report

#endif  // HEDDLE_RUNTIME_REPORT_ACTIVITY_H_
