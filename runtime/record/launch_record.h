// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_LAUNCH_RECORD_H_
#define HEDDLE_RUNTIME_RECORD_LAUNCH_RECORD_H_

// Builds Launch records, for launches on a stream and for kernel nodes alike.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/trace.h"
#include "runtime/record/recorder.h"

namespace heddle::record {

// A launch as the driver was given it.
struct LaunchCall {
  CUfunction function = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  CUstream stream = nullptr;
  bool per_thread = false;
  void** params = nullptr;
  void** extra = nullptr;
  const CUlaunchAttribute* attributes = nullptr;
  uint32_t attribute_count = 0;
  bool cooperative = false;
};

// Copies the parameters of `call` into `block` (info.param_bytes of it), from
// whichever of the two forms the program used. False if it used neither and the
// kernel has parameters.
bool CopyParams(const KernelInfo& info, void** params, void** extra,
                uint8_t* block);

// Writes the record of a finished driver call. The fast path, for a plain
// successful launch of a known kernel, takes no lock and allocates nothing.
void RecordLaunch(Recorder& recorder, const LaunchCall& call, CUresult result);

// The same content in FlatBuffers' object form, without a stamp's time.
std::unique_ptr<fb::LaunchT> MakeLaunch(Recorder& recorder,
                                        const LaunchCall& call);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_LAUNCH_RECORD_H_
