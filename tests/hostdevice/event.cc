// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

constexpr unsigned kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;

CUresult RecordEvent(CUevent hEvent, CUstream hStream, unsigned flags) {
  HD_ENTER(kContext);
  Event* event = Device::Get().events.Find(hEvent);
  Stream* stream = FindStream(call.context(), hStream);
  if (event == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream->capture != nullptr) {
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
      return CaptureWork(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                         EventRecordWork{event}, false);
    }
    return CaptureRecord(stream, event);
  }
  if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;
  HD_TRY(CheckLegacy(stream));
  Record(event, stream);
  return CUDA_SUCCESS;
}

CUresult ElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  HD_ENTER(kContext);
  const Event* start = Device::Get().events.Find(hStart);
  const Event* end = Device::Get().events.Find(hEnd);
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pMilliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const Event* event : {start, end}) {
    if (!event->recorded || (event->flags & CU_EVENT_DISABLE_TIMING) != 0) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (!Scheduler::Reached(start->last) || !Scheduler::Reached(end->last)) {
    return CUDA_ERROR_NOT_READY;
  }
  const auto at = [](const Event* event) {
    return static_cast<double>(event->last.op->activity.end_ns);
  };
  *pMilliseconds = static_cast<float>((at(end) - at(start)) * 1e-6);
  return CUDA_SUCCESS;
}

}  // namespace

void Record(Event* event, Stream* stream) {
  // A marker beside the stream's order: it waits for everything before it, and
  // nothing behind it waits for it.
  auto marker = std::make_shared<Op>();
  marker->activity.name = "event record";
  marker->activity.stream_id = stream->id;
  DependOnStream(stream, marker, false);
  Device::Get().scheduler().Submit(marker);
  event->recorded = true;
  event->capture = nullptr;
  event->capture_points.clear();
  event->last = Dependency{std::move(marker)};
}

HD_API(cuEventCreate, (CUevent * phEvent, unsigned int Flags)) {
  HD_ENTER(kContext);
  if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((Flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if ((Flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  Event* event = Device::Get().events.New();
  event->context = call.context();
  event->flags = Flags;
  *phEvent = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

HD_API(cuEventDestroy_v2, (CUevent hEvent)) {
  HD_ENTER(kContext);
  Event* event = Device::Get().events.Find(hEvent);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Device::Get().events.Delete(event);
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuEventRecord, (CUevent hEvent, CUstream hStream),
              (hEvent, hStream)) {
  return RecordEvent(hEvent, hStream, 0);
}

HD_STREAM_API(cuEventRecordWithFlags,
              (CUevent hEvent, CUstream hStream, unsigned int flags),
              (hEvent, hStream, flags)) {
  return RecordEvent(hEvent, hStream, flags);
}

HD_API(cuEventQuery, (CUevent hEvent)) {
  HD_ENTER(kContext);
  Event* event = Device::Get().events.Find(hEvent);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HD_TRY(CheckUnsafe());
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (!event->recorded || Scheduler::Reached(event->last)) return CUDA_SUCCESS;
  const Dependency last = event->last;
  HD_TRY(Device::Get().scheduler().Progress());
  return Scheduler::Reached(last) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

HD_API(cuEventSynchronize, (CUevent hEvent)) {
  HD_ENTER(kContext);
  Event* event = Device::Get().events.Find(hEvent);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HD_TRY(CheckUnsafe());
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (!event->recorded) return CUDA_SUCCESS;
  const Dependency last = event->last;
  return Device::Get().scheduler().Wait(last);
}

HD_API(cuEventElapsedTime,
       (float* pMilliseconds, CUevent hStart, CUevent hEnd)) {
  return ElapsedTime(pMilliseconds, hStart, hEnd);
}

#if CUDA_VERSION >= 12080
HD_API(cuEventElapsedTime_v2,
       (float* pMilliseconds, CUevent hStart, CUevent hEnd)) {
  return ElapsedTime(pMilliseconds, hStart, hEnd);
}
#endif

HD_STREAM_API(cuStreamWaitEvent,
              (CUstream hStream, CUevent hEvent, unsigned int Flags),
              (hStream, hEvent, Flags)) {
  HD_ENTER(kContext);
  Event* event = Device::Get().events.Find(hEvent);
  Stream* stream = FindStream(call.context(), hStream);
  if (event == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((Flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (Flags == CU_EVENT_WAIT_EXTERNAL) {
    if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    return CaptureWork(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                       EventWaitWork{event}, false);
  }
  if (stream->capture != nullptr || event->capture != nullptr) {
    return CaptureWait(stream, event);
  }
  HD_TRY(CheckLegacy(stream));
  if (event->recorded) stream->tails.push_back({event->last, true});
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
