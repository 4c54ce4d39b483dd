// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/common/cudart_gpu.h"

#include <cuda_runtime_api.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/common/status_macros.h"

// Returns the error of a runtime call; the call's text becomes the message.
#define APPS_RETURN_IF_CUDA_ERROR(call)              \
  do {                                               \
    absl::Status status_ = CheckCuda((call), #call); \
    if (!status_.ok()) return status_;               \
  } while (false)

namespace apps {
namespace {

absl::Status CheckCuda(cudaError_t result, absl::string_view call) {
  if (result == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": ", cudaGetErrorName(result),
                                          " ", static_cast<int>(result), " (",
                                          cudaGetErrorString(result), ")"));
}

class CudartGpu : public Gpu {
 public:
  CudartGpu() = default;
  CudartGpu(const CudartGpu&) = delete;
  CudartGpu& operator=(const CudartGpu&) = delete;

  // Errors of the clean-up have nowhere to go: the program is over.
  ~CudartGpu() override {
    if (stream_ == nullptr) return;
    cudaStreamSynchronize(stream_);
    DropGraph();
    for (auto& [id, timer] : timers_) {
      cudaEventDestroy(timer.first);
      cudaEventDestroy(timer.second);
    }
    for (void* memory : memory_) cudaFree(memory);
    cudaStreamDestroy(stream_);
  }

  absl::Status Initialize(int ordinal) {
    int count = 0;
    APPS_RETURN_IF_CUDA_ERROR(cudaGetDeviceCount(&count));
    if (ordinal < 0 || ordinal >= count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--device ", ordinal, ": there are ", count, " CUDA devices"));
    }
    APPS_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal));
    cudaDeviceProp properties = {};
    APPS_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, ordinal));
    name_ = properties.name;
    APPS_RETURN_IF_CUDA_ERROR(
        cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    return absl::OkStatus();
  }

  std::string Describe() const override {
    return absl::StrCat(name_, ", static runtime API");
  }

  absl::StatusOr<void*> Allocate(size_t bytes, const char* what) override {
    void* memory = nullptr;
    absl::Status status =
        CheckCuda(cudaMalloc(&memory, bytes),
                  absl::StrCat("cudaMalloc of ", bytes, " bytes for ", what));
    if (!status.ok()) return status;
    memory_.push_back(memory);
    APPS_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(memory, 0, bytes, stream_));
    return memory;
  }

  absl::Status CopyToDevice(void* to, const void* from, size_t bytes) override {
    // On the stream and waited for: a plain cudaMemcpy from pageable memory is
    // not ordered with a non-blocking stream.
    APPS_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
    return Synchronize();
  }

  absl::Status CopyToHost(void* to, const void* from, size_t bytes) override {
    APPS_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
    return Synchronize();
  }

  absl::Status CopyRows(void* to, size_t to_pitch, const void* from,
                        size_t from_pitch, size_t width, size_t rows) override {
    APPS_RETURN_IF_CUDA_ERROR(
        cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows,
                          cudaMemcpyDeviceToDevice, stream_));
    return absl::OkStatus();
  }

  absl::Status Synchronize() override {
    APPS_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
    return absl::OkStatus();
  }

  absl::Status BeginCapture() override {
    DropGraph();
    APPS_RETURN_IF_CUDA_ERROR(
        cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    return absl::OkStatus();
  }

  absl::Status EndCapture() override {
    APPS_RETURN_IF_CUDA_ERROR(cudaStreamEndCapture(stream_, &graph_));
    APPS_RETURN_IF_CUDA_ERROR(
        cudaGraphGetNodes(graph_, nullptr, &graph_nodes_));
    APPS_RETURN_IF_CUDA_ERROR(cudaGraphInstantiate(&graph_exec_, graph_, 0));
    return absl::OkStatus();
  }

  size_t graph_nodes() const override { return graph_nodes_; }

  absl::Status LaunchGraph() override {
    if (graph_exec_ == nullptr) {
      return absl::FailedPreconditionError("no graph was captured");
    }
    APPS_RETURN_IF_CUDA_ERROR(cudaGraphLaunch(graph_exec_, stream_));
    return absl::OkStatus();
  }

  absl::Status StartTimer(int id) override {
    auto timer = timers_.find(id);
    if (timer == timers_.end()) {
      cudaEvent_t start = nullptr;
      cudaEvent_t stop = nullptr;
      APPS_RETURN_IF_CUDA_ERROR(cudaEventCreate(&start));
      absl::Status status =
          CheckCuda(cudaEventCreate(&stop), "cudaEventCreate(&stop)");
      if (!status.ok()) {
        cudaEventDestroy(start);
        return status;
      }
      timer = timers_.emplace(id, std::make_pair(start, stop)).first;
    }
    APPS_RETURN_IF_CUDA_ERROR(cudaEventRecord(timer->second.first, stream_));
    return absl::OkStatus();
  }

  absl::Status StopTimer(int id) override {
    const auto timer = timers_.find(id);
    if (timer == timers_.end()) return NoTimer(id);
    APPS_RETURN_IF_CUDA_ERROR(cudaEventRecord(timer->second.second, stream_));
    return absl::OkStatus();
  }

  absl::StatusOr<float> Milliseconds(int id) override {
    const auto timer = timers_.find(id);
    if (timer == timers_.end()) return NoTimer(id);
    const auto [start, stop] = timer->second;
    APPS_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(stop));
    float milliseconds = 0;
    APPS_RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, start, stop));
    return milliseconds;
  }

  void* native_stream() override { return stream_; }

 private:
  static absl::Status NoTimer(int id) {
    return absl::FailedPreconditionError(
        absl::StrCat("timer ", id, " was never started"));
  }

  void DropGraph() {
    if (graph_exec_ != nullptr) cudaGraphExecDestroy(graph_exec_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    graph_exec_ = nullptr;
    graph_ = nullptr;
    graph_nodes_ = 0;
  }

  std::string name_;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> memory_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t graph_exec_ = nullptr;
  size_t graph_nodes_ = 0;
  std::map<int, std::pair<cudaEvent_t, cudaEvent_t>> timers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Gpu>> CreateCudartGpu(int ordinal) {
  auto gpu = std::make_unique<CudartGpu>();
  APPS_RETURN_IF_ERROR(gpu->Initialize(ordinal));
  return std::unique_ptr<Gpu>(std::move(gpu));
}

}  // namespace apps
