// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_CAPTURE_H_
#define HEDDLE_TESTS_HOSTDEVICE_CAPTURE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/hostdevice/graph.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {

// One capture: begun on one stream, joined by others through events.
struct Capture {
  uint64_t id = 0;
  Graph* graph = nullptr;
  bool own_graph = true;  // made for the capture, not the program's
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  std::set<Stream*> streams;
};

// The error of an operation that no capture allows, on this stream: the capture
// is invalid from then on. CUDA_SUCCESS if the stream is not capturing.
CUresult RefuseInCapture(Stream* stream);

// For operations that may synchronize implicitly (allocation, event queries,
// ...): fails if a capture forbids them to this thread in its mode, and
// invalidates that capture.
CUresult CheckUnsafe();

// For work on the legacy stream: fails while a blocking stream of the context
// is capturing.
CUresult CheckLegacy(Stream* stream);

// Adds a node for work on a capturing stream.
CUresult CaptureWork(Stream* stream, CUgraphNodeType type, Work work,
                     bool programmatic, GraphNode** out = nullptr);

// cuMemAllocAsync on a capturing stream: a node that owns an address.
CUresult CaptureAlloc(Stream* stream, size_t size, CUdeviceptr* address);

// cuEventRecord and cuStreamWaitEvent where a capture takes part.
CUresult CaptureRecord(Stream* stream, Event* event);
CUresult CaptureWait(Stream* stream, Event* event);

// A stream that is destroyed while capturing.
void AbandonCapture(Stream* stream);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_CAPTURE_H_
