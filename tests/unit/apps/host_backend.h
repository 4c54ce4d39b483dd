// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_APPS_HOST_BACKEND_H_
#define HEDDLE_TESTS_UNIT_APPS_HOST_BACKEND_H_

// A GPU and a launcher without a device or a driver: memory is host memory, and
// a launch runs the decoder's host kernels at once, block after block in a
// random order. Dynamic shared memory starts as NaN, so a kernel that reads
// what it did not write is found.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/decode/launcher.h"

namespace decode {

class HostBackend : public apps::Gpu, public Launcher {
 public:
  explicit HostBackend(uint32_t seed = 1) : random_(seed) {}

  std::string Describe() const override { return "host kernels"; }
  absl::StatusOr<void*> Allocate(size_t bytes, const char* what) override;
  absl::Status CopyToDevice(void* to, const void* from, size_t bytes) override;
  absl::Status CopyToHost(void* to, const void* from, size_t bytes) override;
  absl::Status CopyRows(void* to, size_t to_pitch, const void* from,
                        size_t from_pitch, size_t width, size_t rows) override;
  absl::Status LaunchRaw(Kernel kernel, const LaunchShape& shape,
                         void** params) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::Status BeginCapture() override;
  absl::Status EndCapture() override;
  size_t graph_nodes() const override { return graph_.size(); }
  absl::Status LaunchGraph() override;
  absl::Status StartTimer(int) override { return absl::OkStatus(); }
  absl::Status StopTimer(int) override { return absl::OkStatus(); }
  absl::StatusOr<float> Milliseconds(int id) override {
    return static_cast<float>(id + 1);
  }
  void* native_stream() override { return nullptr; }

  // Launches that were run, not captured.
  int launches() const { return launches_; }

 private:
  // A launch with its own copy of the parameters.
  struct Node {
    Kernel kernel;
    LaunchShape shape;
    std::vector<std::vector<char>> params;
  };

  void RunLaunch(Kernel kernel, const LaunchShape& shape, void* const* params);

  std::mt19937 random_;
  std::vector<std::unique_ptr<char[]>> memory_;
  bool capturing_ = false;
  std::vector<Node> graph_;
  int launches_ = 0;
};

}  // namespace decode

#endif  // HEDDLE_TESTS_UNIT_APPS_HOST_BACKEND_H_
