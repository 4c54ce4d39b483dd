// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/common/driver_gpu.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/common/status_macros.h"

// Returns the error of a driver call; the call's text becomes the message.
#define APPS_RETURN_IF_CUDA_ERROR(call)                         \
  do {                                                          \
    absl::Status status_ = api_.Check((api_.call), "cu" #call); \
    if (!status_.ok()) return status_;                          \
  } while (false)

namespace apps {
namespace {

class DriverGpu : public Gpu {
 public:
  explicit DriverGpu(const DriverApi& api) : api_(api) {}
  DriverGpu(const DriverGpu&) = delete;
  DriverGpu& operator=(const DriverGpu&) = delete;

  // Errors of the clean-up have nowhere to go: the program is over.
  ~DriverGpu() override {
    if (!current_) return;
    if (stream_ != nullptr) api_.StreamSynchronize(stream_);
    DropGraph();
    for (auto& [id, timer] : timers_) {
      api_.EventDestroy(timer.first);
      api_.EventDestroy(timer.second);
    }
    for (CUdeviceptr memory : memory_) api_.MemFree(memory);
    if (stream_ != nullptr) api_.StreamDestroy(stream_);
    api_.DevicePrimaryCtxRelease(device_);
  }

  absl::Status Initialize(int ordinal) {
    APPS_RETURN_IF_CUDA_ERROR(Init(0));
    int count = 0;
    APPS_RETURN_IF_CUDA_ERROR(DeviceGetCount(&count));
    if (ordinal < 0 || ordinal >= count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--device ", ordinal, ": there are ", count, " CUDA devices"));
    }
    APPS_RETURN_IF_CUDA_ERROR(DeviceGet(&device_, ordinal));
    char name[256] = {};
    APPS_RETURN_IF_CUDA_ERROR(DeviceGetName(name, sizeof(name) - 1, device_));
    name_ = name;
    CUcontext context = nullptr;
    APPS_RETURN_IF_CUDA_ERROR(DevicePrimaryCtxRetain(&context, device_));
    current_ = true;
    APPS_RETURN_IF_CUDA_ERROR(CtxSetCurrent(context));
    APPS_RETURN_IF_CUDA_ERROR(StreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    return absl::OkStatus();
  }

  std::string Describe() const override {
    return absl::StrCat(name_, ", driver API");
  }

  absl::StatusOr<void*> Allocate(size_t bytes, const char* what) override {
    CUdeviceptr memory = 0;
    absl::Status status =
        api_.Check(api_.MemAlloc(&memory, bytes),
                   absl::StrCat("cuMemAlloc of ", bytes, " bytes for ", what));
    if (!status.ok()) return status;
    memory_.push_back(memory);
    APPS_RETURN_IF_CUDA_ERROR(MemsetD8Async(memory, 0, bytes, stream_));
    // CUdeviceptr is an integer of the size of a pointer.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void*>(memory);
  }

  absl::Status CopyToDevice(void* to, const void* from, size_t bytes) override {
    // On the stream and waited for: a plain cuMemcpyHtoD from pageable memory
    // is not ordered with a non-blocking stream.
    APPS_RETURN_IF_CUDA_ERROR(MemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to),
                                              from, bytes, stream_));
    return Synchronize();
  }

  absl::Status CopyToHost(void* to, const void* from, size_t bytes) override {
    APPS_RETURN_IF_CUDA_ERROR(MemcpyDtoHAsync(
        to, reinterpret_cast<CUdeviceptr>(from), bytes, stream_));
    return Synchronize();
  }

  absl::Status CopyRows(void* to, size_t to_pitch, const void* from,
                        size_t from_pitch, size_t width, size_t rows) override {
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = reinterpret_cast<CUdeviceptr>(from);
    copy.srcPitch = from_pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = reinterpret_cast<CUdeviceptr>(to);
    copy.dstPitch = to_pitch;
    copy.WidthInBytes = width;
    copy.Height = rows;
    APPS_RETURN_IF_CUDA_ERROR(Memcpy2DAsync(&copy, stream_));
    return absl::OkStatus();
  }

  absl::Status Synchronize() override {
    APPS_RETURN_IF_CUDA_ERROR(StreamSynchronize(stream_));
    return absl::OkStatus();
  }

  absl::Status BeginCapture() override {
    DropGraph();
    APPS_RETURN_IF_CUDA_ERROR(
        StreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    return absl::OkStatus();
  }

  absl::Status EndCapture() override {
    APPS_RETURN_IF_CUDA_ERROR(StreamEndCapture(stream_, &graph_));
    APPS_RETURN_IF_CUDA_ERROR(GraphGetNodes(graph_, nullptr, &graph_nodes_));
    APPS_RETURN_IF_CUDA_ERROR(
        GraphInstantiateWithFlags(&graph_exec_, graph_, 0));
    return absl::OkStatus();
  }

  size_t graph_nodes() const override { return graph_nodes_; }

  absl::Status LaunchGraph() override {
    if (graph_exec_ == nullptr) {
      return absl::FailedPreconditionError("no graph was captured");
    }
    APPS_RETURN_IF_CUDA_ERROR(GraphLaunch(graph_exec_, stream_));
    return absl::OkStatus();
  }

  absl::Status StartTimer(int id) override {
    auto timer = timers_.find(id);
    if (timer == timers_.end()) {
      CUevent start = nullptr;
      CUevent stop = nullptr;
      APPS_RETURN_IF_CUDA_ERROR(EventCreate(&start, CU_EVENT_DEFAULT));
      absl::Status status = api_.Check(
          api_.EventCreate(&stop, CU_EVENT_DEFAULT), "cuEventCreate");
      if (!status.ok()) {
        api_.EventDestroy(start);
        return status;
      }
      timer = timers_.emplace(id, std::make_pair(start, stop)).first;
    }
    APPS_RETURN_IF_CUDA_ERROR(EventRecord(timer->second.first, stream_));
    return absl::OkStatus();
  }

  absl::Status StopTimer(int id) override {
    const auto timer = timers_.find(id);
    if (timer == timers_.end()) return NoTimer(id);
    APPS_RETURN_IF_CUDA_ERROR(EventRecord(timer->second.second, stream_));
    return absl::OkStatus();
  }

  absl::StatusOr<float> Milliseconds(int id) override {
    const auto timer = timers_.find(id);
    if (timer == timers_.end()) return NoTimer(id);
    const auto [start, stop] = timer->second;
    APPS_RETURN_IF_CUDA_ERROR(EventSynchronize(stop));
    float milliseconds = 0;
    APPS_RETURN_IF_CUDA_ERROR(EventElapsedTime(&milliseconds, start, stop));
    return milliseconds;
  }

  void* native_stream() override { return stream_; }

 private:
  static absl::Status NoTimer(int id) {
    return absl::FailedPreconditionError(
        absl::StrCat("timer ", id, " was never started"));
  }

  void DropGraph() {
    if (graph_exec_ != nullptr) api_.GraphExecDestroy(graph_exec_);
    if (graph_ != nullptr) api_.GraphDestroy(graph_);
    graph_exec_ = nullptr;
    graph_ = nullptr;
    graph_nodes_ = 0;
  }

  const DriverApi api_;
  CUdevice device_ = 0;
  bool current_ = false;  // the primary context is retained
  std::string name_;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> memory_;
  CUgraph graph_ = nullptr;
  CUgraphExec graph_exec_ = nullptr;
  size_t graph_nodes_ = 0;
  std::map<int, std::pair<CUevent, CUevent>> timers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Gpu>> CreateDriverGpu(const DriverApi& api,
                                                     int ordinal) {
  auto gpu = std::make_unique<DriverGpu>(api);
  APPS_RETURN_IF_ERROR(gpu->Initialize(ordinal));
  return std::unique_ptr<Gpu>(std::move(gpu));
}

}  // namespace apps
