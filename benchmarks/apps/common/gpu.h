// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_GPU_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_GPU_H_

// The little of CUDA that the sample programs need besides their kernels, over
// the driver API (driver_gpu.cc) or the runtime API (cudart_gpu.cc). One
// device, one stream; everything is issued on it.
//
// Not thread-safe. Device memory belongs to the object and lives as long.

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace apps {

class Gpu {
 public:
  virtual ~Gpu() = default;

  // For people: the device and the way to it.
  virtual std::string Describe() const = 0;

  // `bytes` of zeroed device memory, aligned to 256. `what` is for messages.
  virtual absl::StatusOr<void*> Allocate(size_t bytes, const char* what) = 0;

  // Both copies are ordered with the stream and done on return.
  virtual absl::Status CopyToDevice(void* to, const void* from,
                                    size_t bytes) = 0;
  virtual absl::Status CopyToHost(void* to, const void* from, size_t bytes) = 0;

  // Asynchronous, on the device: `rows` rows of `width` bytes, `to_pitch` and
  // `from_pitch` bytes apart.
  virtual absl::Status CopyRows(void* to, size_t to_pitch, const void* from,
                                size_t from_pitch, size_t width,
                                size_t rows) = 0;

  virtual absl::Status Synchronize() = 0;

  // What is issued between the two is captured, not run. There is one graph; a
  // second capture replaces it.
  virtual absl::Status BeginCapture() = 0;
  virtual absl::Status EndCapture() = 0;
  // Kernel, copy and other nodes in the captured graph.
  virtual size_t graph_nodes() const = 0;
  virtual absl::Status LaunchGraph() = 0;

  // A timer is a pair of events around what is issued between Start and Stop.
  // Ids are small integers of the caller's choice. Milliseconds waits for Stop.
  virtual absl::Status StartTimer(int id) = 0;
  virtual absl::Status StopTimer(int id) = 0;
  virtual absl::StatusOr<float> Milliseconds(int id) = 0;

  // The CUstream (= cudaStream_t), for kernels and libraries.
  virtual void* native_stream() = 0;
};

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_GPU_H_
