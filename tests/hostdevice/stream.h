// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_STREAM_H_
#define HEDDLE_TESTS_HOSTDEVICE_STREAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/hostdevice/device.h"
#include "tests/hostdevice/scheduler.h"
#include "tests/hostdevice/work.h"

namespace heddle::hostdevice {

struct Capture;
struct GraphNode;

// A node that a capturing stream's next node will depend on, and how.
struct CapturePoint {
  GraphNode* node = nullptr;
  CUgraphEdgeData data{};
};

struct Stream {
  Context* context = nullptr;
  uint64_t id = 0;
  CUstream handle = nullptr;  // what the program calls it
  unsigned flags = CU_STREAM_DEFAULT;
  int priority = 0;
  bool is_default = false;  // legacy or per-thread: cannot be destroyed
  // Attributes that are kept and returned, without effect here.
  CUaccessPolicyWindow access_window{};
  CUsynchronizationPolicy sync_policy = CU_SYNC_POLICY_AUTO;
  CUlaunchMemSyncDomain sync_domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
  CUlaunchMemSyncDomainMap sync_domain_map{0, 1};

  // What the next operation has to wait for. Everything that the stream was
  // given is here or was waited for by something that is.
  struct Tail {
    Dependency dependency;
    bool foreign = false;  // from cuStreamWaitEvent
  };
  std::vector<Tail> tails;

  // While the stream is capturing; see capture.h.
  std::shared_ptr<Capture> capture;
  std::vector<CapturePoint> capture_points;

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  Dependency last;     // what the last record stands for
  uint64_t order = 0;  // counts records
  // While the last record was made in a capture.
  std::shared_ptr<Capture> capture;
  std::vector<CapturePoint> capture_points;
};

// The stream that `handle` means for `context` and this thread; handles of the
// default streams make them when first used. nullptr: no such stream.
Stream* FindStream(Context* context, CUstream handle);

// How a launch follows what is before it in its stream.
struct SubmitOptions {
  // Programmatic stream serialization: only the previous kernel's trigger.
  bool programmatic = false;
  uint64_t graph_exec_id = 0;
  uint64_t graph_node_id = 0;
};

// Puts an operation at the end of a stream.
void Submit(Stream* stream, const std::shared_ptr<Op>& op,
            const SubmitOptions& options = {});
// Adds what an operation at the end of `stream` would wait for.
void DependOnStream(Stream* stream, const std::shared_ptr<Op>& op,
                    bool programmatic);
// Makes `op` the stream's end, after DependOnStream and Submit.
void Advance(Stream* stream, const std::shared_ptr<Op>& op, bool programmatic);

// Waits until a stream has done everything.
CUresult Synchronize(Stream* stream);
bool Idle(Stream* stream);
// Everything in a context.
CUresult SynchronizeContext(Context* context);

// Records: what is at the end of the stream now.
void Record(Event* event, Stream* stream);

// Submits or captures, whichever the stream is at. A host-synchronous call
// passes `op` and waits for it.
CUresult Enqueue(Stream* stream, Work work, std::shared_ptr<Op>* op = nullptr,
                 const SubmitOptions& options = {});

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_STREAM_H_
