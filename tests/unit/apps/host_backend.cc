// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/apps/host_backend.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/hostdevice/host_kernel.h"

#define DECLARE_HOST_KERNEL(name, symbol)                            \
  extern "C" void heddle_host_##symbol(const HeddleHostBlock* block, \
                                       void* const* params);
DECODE_KERNELS(DECLARE_HOST_KERNEL)
#undef DECLARE_HOST_KERNEL

namespace decode {
namespace {

template <typename... P>
std::vector<size_t> ParameterSizes(void (*)(P...)) {
  return {sizeof(P)...};
}

struct HostKernel {
  HeddleHostKernelFn function;
  std::vector<size_t> parameter_sizes;
};

const HostKernel& Find(Kernel kernel) {
  static const auto* const kKernels = new std::vector<HostKernel>{
#define HOST_KERNEL(name, symbol) \
  {heddle_host_##symbol, ParameterSizes(static_cast<name##Fn*>(nullptr))},
      DECODE_KERNELS(HOST_KERNEL)
#undef HOST_KERNEL
  };
  return (*kKernels)[static_cast<size_t>(kernel)];
}

void Ignore(const HeddleHostBlock*) {}

}  // namespace

absl::StatusOr<void*> HostBackend::Allocate(size_t bytes, const char*) {
  memory_.push_back(std::make_unique<char[]>(bytes));
  return memory_.back().get();
}

absl::Status HostBackend::CopyToDevice(void* to, const void* from,
                                       size_t bytes) {
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status HostBackend::CopyToHost(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status HostBackend::CopyRows(void* to, size_t to_pitch, const void* from,
                                   size_t from_pitch, size_t width,
                                   size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  }
  return absl::OkStatus();
}

absl::Status HostBackend::LaunchRaw(Kernel kernel, const LaunchShape& shape,
                                    void** params) {
  if (!capturing_) {
    RunLaunch(kernel, shape, params);
    return absl::OkStatus();
  }
  Node node{kernel, shape, {}};
  const std::vector<size_t>& sizes = Find(kernel).parameter_sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const char* bytes = static_cast<const char*>(params[i]);
    node.params.emplace_back(bytes, bytes + sizes[i]);
  }
  graph_.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status HostBackend::BeginCapture() {
  graph_.clear();
  capturing_ = true;
  return absl::OkStatus();
}

absl::Status HostBackend::EndCapture() {
  capturing_ = false;
  return absl::OkStatus();
}

absl::Status HostBackend::LaunchGraph() {
  for (Node& node : graph_) {
    std::vector<void*> params;
    for (std::vector<char>& bytes : node.params) params.push_back(bytes.data());
    RunLaunch(node.kernel, node.shape, params.data());
  }
  return absl::OkStatus();
}

void HostBackend::RunLaunch(Kernel kernel, const LaunchShape& shape,
                            void* const* params) {
  ++launches_;
  std::vector<uint32_t> order(shape.grid_x * shape.grid_y);
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random_);
  for (const uint32_t i : order) {
    std::vector<float> shared(shape.shared_bytes / sizeof(float),
                              std::numeric_limits<float>::quiet_NaN());
    HeddleHostBlock block = {};
    block.grid[0] = shape.grid_x;
    block.grid[1] = shape.grid_y;
    block.grid[2] = 1;
    block.block[0] = shape.block_x;
    block.block[1] = shape.block_y;
    block.block[2] = 1;
    block.block_index[0] = i % shape.grid_x;
    block.block_index[1] = i / shape.grid_x;
    block.shared = shared.data();
    block.shared_bytes = shape.shared_bytes;
    block.grid_dependency_wait = Ignore;
    block.launch_dependents = Ignore;
    Find(kernel).function(&block, params);
  }
}

}  // namespace decode
