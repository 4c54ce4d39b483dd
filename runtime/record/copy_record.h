// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_COPY_RECORD_H_
#define HEDDLE_RUNTIME_RECORD_COPY_RECORD_H_

// Copies in one form: `depth` slices of `height` rows of `width` bytes.

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "heddle/trace.h"
#include "runtime/record/recorder.h"

namespace heddle::record {

struct CopyCall {
  uint64_t dst = 0;  // first byte written
  uint64_t src = 0;  // first byte read
  uint64_t width = 0;
  uint64_t height = 1;
  uint64_t depth = 1;
  uint64_t dst_pitch = 0;
  uint64_t src_pitch = 0;
  uint64_t dst_slice = 0;
  uint64_t src_slice = 0;
  fb::MemcpyKind kind = fb::MemcpyKind::kUnknown;

  uint64_t bytes() const { return width * height * depth; }
};

CopyCall FromCopy2D(const CUDA_MEMCPY2D& copy);
CopyCall FromCopy3D(const CUDA_MEMCPY3D& copy);

// kDefault becomes what the addresses say (device blocks are known), unless
// they say nothing.
fb::MemcpyKind ResolveKind(const Recorder& recorder, const CopyCall& call);

// The record, with the host bytes that it moves to the device where the
// recorder's memory policy keeps them.
fb::MemcpyT MakeCopy(Recorder& recorder, const CopyCall& call);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_COPY_RECORD_H_
