// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/module.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

// What the attributes of one launch ask for beyond what a node keeps.
struct LaunchExtras {
  bool programmatic = false;
  Event* event = nullptr;  // recorded by the launch itself
  Port event_port = Port::kComplete;
  bool event_programmatic = false;
};

// Events that launches record cannot tell the time.
CUresult CheckLaunchEvent(CUevent handle, int flags, Event** out) {
  Event* event = Device::Get().events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((event->flags & CU_EVENT_DISABLE_TIMING) == 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = event;
  return CUDA_SUCCESS;
}

CUresult ReadAttributes(const CUlaunchConfig& config, KernelWork* work,
                        LaunchExtras* extras) {
  if (config.numAttrs > 0 && config.attrs == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        extras->programmatic =
            attribute.value.programmaticStreamSerializationAllowed != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: {
        const auto& value = attribute.value.programmaticEvent;
        HD_TRY(CheckLaunchEvent(value.event, value.flags, &extras->event));
        extras->event_port =
            value.triggerAtBlockStart != 0 ? Port::kBegun : Port::kTriggered;
        extras->event_programmatic = true;
        break;
      }
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: {
        const auto& value = attribute.value.launchCompletionEvent;
        HD_TRY(CheckLaunchEvent(value.event, value.flags, &extras->event));
        extras->event_port = Port::kBegun;
        extras->event_programmatic = false;
        break;
      }
      default:
        HD_TRY(SetKernelAttribute(attribute, work));
    }
  }
  return CUDA_SUCCESS;
}

CUgraphEdgeData EdgeFor(const LaunchExtras& extras) {
  CUgraphEdgeData data{};
  data.from_port = static_cast<unsigned char>(extras.event_port);
  data.type = extras.event_programmatic ? CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                                        : CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
  return data;
}

CUresult Launch(const CUlaunchConfig& config, CUfunction f, CUstream hStream,
                void** kernel_params, void** extra) {
  HD_ENTER(kContext);
  Function* function = FindFunction(f);
  Stream* stream = FindStream(call.context(), hStream);
  if (function == nullptr || stream == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  KernelWork work;
  if (function->library != nullptr) {
    work.kernel = reinterpret_cast<CUkernel>(function);
    function = function->function;
  }
  work.function = function;
  work.context = stream->context;
  work.grid[0] = config.gridDimX;
  work.grid[1] = config.gridDimY;
  work.grid[2] = config.gridDimZ;
  work.block[0] = config.blockDimX;
  work.block[1] = config.blockDimY;
  work.block[2] = config.blockDimZ;
  work.shared_bytes = config.sharedMemBytes;
  work.attributes.priority = stream->priority;
  LaunchExtras extras;
  HD_TRY(ReadAttributes(config, &work, &extras));
  HD_TRY(CheckKernel(work));
  HD_TRY(ReadParams(kernel_params, extra, &work));

  if (stream->capture != nullptr) {
    GraphNode* node = nullptr;
    HD_TRY(CaptureWork(stream, CU_GRAPH_NODE_TYPE_KERNEL, std::move(work),
                       extras.programmatic, &node));
    if (extras.event != nullptr) {
      extras.event->recorded = true;
      extras.event->capture = stream->capture;
      extras.event->capture_points = {{node, EdgeFor(extras)}};
    }
    return CUDA_SUCCESS;
  }
  SubmitOptions options;
  options.programmatic = extras.programmatic;
  std::shared_ptr<Op> op;
  HD_TRY(Enqueue(stream, std::move(work), &op, options));
  if (extras.event != nullptr) {
    extras.event->recorded = true;
    extras.event->capture = nullptr;
    extras.event->last = {op, extras.event_port, extras.event_programmatic};
  }
  return CUDA_SUCCESS;
}

CUresult LaunchHost(CUstream hStream, HostWork work) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (work.host.fn == nullptr && work.callback == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream->capture != nullptr) {
    // Callbacks are older than graphs and have no node.
    if (work.callback != nullptr) return RefuseInCapture(stream);
    return CaptureWork(stream, CU_GRAPH_NODE_TYPE_HOST, std::move(work), false);
  }
  work.callback_stream = stream->handle;
  return Enqueue(stream, std::move(work));
}

}  // namespace

HD_STREAM_API(cuLaunchKernel,
              (CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
               unsigned int gridDimZ, unsigned int blockDimX,
               unsigned int blockDimY, unsigned int blockDimZ,
               unsigned int sharedMemBytes, CUstream hStream,
               void** kernelParams, void** extra),
              (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
               sharedMemBytes, hStream, kernelParams, extra)) {
  CUlaunchConfig config{};
  config.gridDimX = gridDimX;
  config.gridDimY = gridDimY;
  config.gridDimZ = gridDimZ;
  config.blockDimX = blockDimX;
  config.blockDimY = blockDimY;
  config.blockDimZ = blockDimZ;
  config.sharedMemBytes = sharedMemBytes;
  return Launch(config, f, hStream, kernelParams, extra);
}

HD_STREAM_API(cuLaunchCooperativeKernel,
              (CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
               unsigned int gridDimZ, unsigned int blockDimX,
               unsigned int blockDimY, unsigned int blockDimZ,
               unsigned int sharedMemBytes, CUstream hStream,
               void** kernelParams),
              (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
               sharedMemBytes, hStream, kernelParams)) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = gridDimX;
  config.gridDimY = gridDimY;
  config.gridDimZ = gridDimZ;
  config.blockDimX = blockDimX;
  config.blockDimY = blockDimY;
  config.blockDimZ = blockDimZ;
  config.sharedMemBytes = sharedMemBytes;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  return Launch(config, f, hStream, kernelParams, nullptr);
}

HD_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config,
                                            CUfunction f, void** kernelParams,
                                            void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Launch(*config, f, config->hStream, kernelParams, extra);
}

HD_EXPORT CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig* config,
                                                 CUfunction f,
                                                 void** kernelParams,
                                                 void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Launch(
      *config, f,
      config->hStream == nullptr ? CU_STREAM_PER_THREAD : config->hStream,
      kernelParams, extra);
}

HD_STREAM_API(cuLaunchHostFunc, (CUstream hStream, CUhostFn fn, void* userData),
              (hStream, fn, userData)) {
  HostWork work;
  work.host.fn = fn;
  work.host.userData = userData;
  return LaunchHost(hStream, work);
}

HD_STREAM_API(cuStreamAddCallback,
              (CUstream hStream, CUstreamCallback callback, void* userData,
               unsigned int flags),
              (hStream, callback, userData, flags)) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  HostWork work;
  work.callback = callback;
  work.host.userData = userData;
  return LaunchHost(hStream, work);
}

}  // namespace heddle::hostdevice
