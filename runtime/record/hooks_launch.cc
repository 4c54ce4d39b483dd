// SPDX-License-Identifier: Apache-2.0
// Hooks of every call that runs a kernel on a stream.

#include "runtime/record/hooks.h"
#include "runtime/record/launch_record.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

void Record(const LaunchCall& call, CUresult result) {
  WithRecorder(
      [&](Recorder& recorder) { RecordLaunch(recorder, call, result); });
}

template <typename S>
CUresult LaunchKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y,
                      unsigned int grid_z, unsigned int block_x,
                      unsigned int block_y, unsigned int block_z,
                      unsigned int shared_bytes, CUstream stream, void** params,
                      void** extra) {
  const CUresult result = S::Real(f, grid_x, grid_y, grid_z, block_x, block_y,
                                  block_z, shared_bytes, stream, params, extra);
  Record({.function = f,
          .grid = {grid_x, grid_y, grid_z},
          .block = {block_x, block_y, block_z},
          .shared_bytes = shared_bytes,
          .stream = stream,
          .per_thread = S::kPerThread,
          .params = params,
          .extra = extra},
         result);
  return result;
}

template <typename S>
CUresult LaunchKernelEx(const CUlaunchConfig* config, CUfunction f,
                        void** params, void** extra) {
  const CUresult result = S::Real(config, f, params, extra);
  if (config != nullptr) {
    Record({.function = f,
            .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
            .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
            .shared_bytes = config->sharedMemBytes,
            .stream = config->hStream,
            .per_thread = S::kPerThread,
            .params = params,
            .extra = extra,
            .attributes = config->attrs,
            .attribute_count = config->attrs == nullptr ? 0 : config->numAttrs},
           result);
  }
  return result;
}

template <typename S>
CUresult LaunchCooperativeKernel(CUfunction f, unsigned int grid_x,
                                 unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z,
                                 unsigned int shared_bytes, CUstream stream,
                                 void** params) {
  const CUresult result = S::Real(f, grid_x, grid_y, grid_z, block_x, block_y,
                                  block_z, shared_bytes, stream, params);
  Record({.function = f,
          .grid = {grid_x, grid_y, grid_z},
          .block = {block_x, block_y, block_z},
          .shared_bytes = shared_bytes,
          .stream = stream,
          .per_thread = S::kPerThread,
          .params = params,
          .cooperative = true},
         result);
  return result;
}

void Refuse(const char* api, const char* detail) {
  WithRecorder([&](Recorder& recorder) { recorder.Unsupported(api, detail); });
}

template <typename S>
CUresult LaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* params,
                                            unsigned int devices,
                                            unsigned int flags) {
  Refuse(S::kName, "launches over several devices are not recorded");
  return S::Real(params, devices, flags);
}

// The launch forms of CUDA 3 (cuFuncSetBlockShape, cuParamSet*): parameters are
// set call by call and cannot be told from here.
template <typename S>
CUresult Launch(CUfunction f) {
  Refuse(S::kName, "the launch interface of CUDA 3 is not recorded");
  return S::Real(f);
}
template <typename S>
CUresult LaunchGrid(CUfunction f, int width, int height) {
  Refuse(S::kName, "the launch interface of CUDA 3 is not recorded");
  return S::Real(f, width, height);
}
template <typename S>
CUresult LaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  Refuse(S::kName, "the launch interface of CUDA 3 is not recorded");
  return S::Real(f, width, height, stream);
}

}  // namespace

void AddLaunchHooks(HookList* list) {
  HEDDLE_HOOK_PTSZ(list, cuLaunchKernel, LaunchKernel);
  HEDDLE_HOOK_PTSZ(list, cuLaunchKernelEx, LaunchKernelEx);
  HEDDLE_HOOK_PTSZ(list, cuLaunchCooperativeKernel, LaunchCooperativeKernel);
  HEDDLE_HOOK(list, cuLaunchCooperativeKernelMultiDevice,
              LaunchCooperativeKernelMultiDevice);
  HEDDLE_HOOK(list, cuLaunch, Launch);
  HEDDLE_HOOK(list, cuLaunchGrid, LaunchGrid);
  HEDDLE_HOOK(list, cuLaunchGridAsync, LaunchGridAsync);
}

}  // namespace heddle::record
