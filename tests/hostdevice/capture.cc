// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/capture.h"

#include <algorithm>
#include <utility>

#include "tests/hostdevice/api.h"

namespace heddle::hostdevice {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void Invalidate(Capture* capture) {
  capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

// All that are going on, in the whole process.
std::vector<std::shared_ptr<Capture>> OngoingCaptures() {
  std::vector<std::shared_ptr<Capture>> captures;
  for (Stream* stream : Device::Get().streams.All()) {
    if (stream->capture != nullptr && stream->capture->origin == stream) {
      captures.push_back(stream->capture);
    }
  }
  return captures;
}

void Join(Stream* stream, const std::shared_ptr<Capture>& capture) {
  stream->capture = capture;
  stream->capture_points.clear();
  capture->streams.insert(stream);
}

void Leave(Stream* stream) {
  if (stream->capture != nullptr) stream->capture->streams.erase(stream);
  stream->capture = nullptr;
  stream->capture_points.clear();
}

void AddPoint(std::vector<CapturePoint>* points, const CapturePoint& point) {
  const auto same = [&](const CapturePoint& p) {
    return p.node == point.node && p.data.from_port == point.data.from_port &&
           p.data.type == point.data.type;
  };
  if (std::none_of(points->begin(), points->end(), same)) {
    points->push_back(point);
  }
}

CUresult CheckActive(const Stream* stream) {
  return stream->capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE
             ? CUDA_SUCCESS
             : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

}  // namespace

CUresult RefuseInCapture(Stream* stream) {
  if (stream->capture == nullptr) return CUDA_SUCCESS;
  Invalidate(stream->capture.get());
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult CheckUnsafe() {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : OngoingCaptures()) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbids =
        own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
            : thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                  capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!forbids) continue;
    Invalidate(capture.get());
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult CheckLegacy(Stream* stream) {
  if (stream != stream->context->legacy) return CUDA_SUCCESS;
  for (Stream* other : stream->context->streams) {
    if (other->capture == nullptr || !other->blocking()) continue;
    Invalidate(other->capture.get());
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

CUresult CaptureWork(Stream* stream, CUgraphNodeType type, Work work,
                     bool programmatic, GraphNode** out) {
  HD_TRY(CheckActive(stream));
  Graph* graph = stream->capture->graph;
  if (auto* copy = std::get_if<CopyWork>(&work)) copy->staging = nullptr;
  GraphNode* node = AddNode(graph, type, std::move(work));
  for (const CapturePoint& point : stream->capture_points) {
    GraphEdge edge{point.node, node, point.data};
    // Edges that events made keep what the event stood for, where the node can
    // take it; the rest follow the launch.
    const bool plain = edge.data.from_port == 0 && edge.data.type == 0;
    if (plain && programmatic && type == CU_GRAPH_NODE_TYPE_KERNEL &&
        point.node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
      edge.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    if (CheckEdgeData(edge.from, edge.to, edge.data) != CUDA_SUCCESS) {
      edge.data = {};
    }
    const auto same = [&](const GraphEdge& e) {
      return e.from == edge.from && e.to == edge.to;
    };
    auto known = std::find_if(graph->edges.begin(), graph->edges.end(), same);
    if (known == graph->edges.end()) {
      graph->edges.push_back(edge);
    } else if (plain) {
      known->data = {};  // the stronger of two
    }
  }
  stream->capture_points = {{node, {}}};
  if (out != nullptr) *out = node;
  return CUDA_SUCCESS;
}

CUresult CaptureAlloc(Stream* stream, size_t size, CUdeviceptr* address) {
  HD_TRY(CheckActive(stream));
  AllocWork work;
  work.alloc.bytesize = size;
  work.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  work.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  HD_TRY(AllocateForGraph(stream->context, &work));
  *address = work.alloc.dptr;
  return CaptureWork(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, std::move(work),
                     false);
}

CUresult CaptureRecord(Stream* stream, Event* event) {
  HD_TRY(CheckActive(stream));
  event->recorded = true;
  event->capture = stream->capture;
  event->capture_points = stream->capture_points;
  return CUDA_SUCCESS;
}

CUresult CaptureWait(Stream* stream, Event* event) {
  const std::shared_ptr<Capture> capture = event->capture;
  if (capture == nullptr) {
    // A capturing stream may not wait for work outside the capture. An event
    // that was never recorded stands for nothing.
    if (!event->recorded) return CUDA_SUCCESS;
    Invalidate(stream->capture.get());
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  // The event may be older than the end of its capture.
  if (capture->streams.empty()) return CUDA_ERROR_CAPTURED_EVENT;
  if (capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (stream == stream->context->legacy) {
    Invalidate(capture.get());
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream->capture == nullptr) {
    Join(stream, capture);
  } else if (stream->capture != capture) {
    Invalidate(stream->capture.get());
    Invalidate(capture.get());
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  for (const CapturePoint& point : event->capture_points) {
    AddPoint(&stream->capture_points, point);
  }
  return CUDA_SUCCESS;
}

void AbandonCapture(Stream* stream) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return;
  Invalidate(capture.get());
  if (capture->origin != stream) {
    Leave(stream);
    return;
  }
  const std::set<Stream*> streams = capture->streams;
  for (Stream* other : streams) Leave(other);
  capture->graph->capturing = false;
  if (capture->own_graph) Device::Get().graphs.Delete(capture->graph);
}

namespace {

CUresult Begin(CUstream hStream, CUstreamCaptureMode mode, Graph* target,
               const std::vector<CapturePoint>& points, Context* context) {
  Stream* stream = FindStream(context, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (mode != CU_STREAM_CAPTURE_MODE_GLOBAL &&
      mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
      mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream == context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = Device::Get().NewId();
  capture->own_graph = target == nullptr;
  capture->graph = target != nullptr ? target : Device::Get().graphs.New();
  capture->graph->capturing = true;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  Join(stream, capture);
  stream->capture_points = points;
  return CUDA_SUCCESS;
}

// Whether each captured node leads to the origin stream's end: nothing is lost
// that another stream was doing.
bool Joined(const Capture& capture) {
  std::set<const GraphNode*> reached;
  std::vector<const GraphNode*> queue;
  for (const CapturePoint& point : capture.origin->capture_points) {
    if (reached.insert(point.node).second) queue.push_back(point.node);
  }
  while (!queue.empty()) {
    const GraphNode* node = queue.back();
    queue.pop_back();
    for (const GraphEdge& edge : capture.graph->edges) {
      if (edge.to == node && reached.insert(edge.from).second) {
        queue.push_back(edge.from);
      }
    }
  }
  for (const Stream* stream : capture.streams) {
    for (const CapturePoint& point : stream->capture_points) {
      if (reached.count(point.node) == 0) return false;
    }
  }
  return true;
}

CUresult GetInfo(CUstream hStream, CUstreamCaptureStatus* status,
                 cuuint64_t* id, CUgraph* graph,
                 const CUgraphNode** dependencies,
                 const CUgraphEdgeData** edge_data, bool can_tell_data,
                 size_t* count) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture == nullptr) {
    HD_TRY(CheckLegacy(stream));
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  const Capture& capture = *stream->capture;
  *status = capture.status;
  if (capture.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = capture.id;
  if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(capture.graph);
  // Valid until the next call that changes the capture, says cuda.h: kept per
  // thread here.
  static thread_local std::vector<CUgraphNode> nodes;
  static thread_local std::vector<CUgraphEdgeData> data;
  nodes.clear();
  data.clear();
  bool lossy = false;
  for (const CapturePoint& point : stream->capture_points) {
    nodes.push_back(reinterpret_cast<CUgraphNode>(point.node));
    data.push_back(point.data);
    lossy = lossy || point.data.from_port != 0 || point.data.type != 0;
  }
  if (dependencies != nullptr) {
    if (lossy && (!can_tell_data || edge_data == nullptr)) {
      return CUDA_ERROR_LOSSY_QUERY;
    }
    *dependencies = nodes.data();
  }
  if (edge_data != nullptr) *edge_data = data.data();
  if (count != nullptr) *count = nodes.size();
  return CUDA_SUCCESS;
}

CUresult UpdateDependencies(CUstream hStream, const CUgraphNode* dependencies,
                            const CUgraphEdgeData* edge_data, size_t count,
                            unsigned flags) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  HD_TRY(CheckActive(stream));
  if (count > 0 && dependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<CapturePoint> points;
  if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) {
    points = stream->capture_points;
  }
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = FindNode(dependencies[i]);
    if (node == nullptr || node->graph != stream->capture->graph) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    AddPoint(&points,
             {node, edge_data != nullptr ? edge_data[i] : CUgraphEdgeData{}});
  }
  stream->capture_points = std::move(points);
  return CUDA_SUCCESS;
}

}  // namespace

HD_STREAM_API(cuStreamBeginCapture_v2,
              (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode)) {
  HD_ENTER(kContext);
  return Begin(hStream, mode, nullptr, {}, call.context());
}

HD_STREAM_API(cuStreamBeginCaptureToGraph,
              (CUstream hStream, CUgraph hGraph,
               const CUgraphNode* dependencies,
               const CUgraphEdgeData* dependencyData, size_t numDependencies,
               CUstreamCaptureMode mode),
              (hStream, hGraph, dependencies, dependencyData, numDependencies,
               mode)) {
  HD_ENTER(kContext);
  Graph* graph = FindGraph(hGraph);
  if (graph == nullptr || graph->capturing ||
      (numDependencies > 0 && dependencies == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<CapturePoint> points;
  for (size_t i = 0; i < numDependencies; ++i) {
    GraphNode* node = FindNode(dependencies[i]);
    if (node == nullptr || node->graph != graph) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    points.push_back({node, dependencyData != nullptr ? dependencyData[i]
                                                      : CUgraphEdgeData{}});
  }
  return Begin(hStream, mode, graph, points, call.context());
}

HD_STREAM_API(cuStreamEndCapture, (CUstream hStream, CUgraph* phGraph),
              (hStream, phGraph)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  if (capture->origin != stream) {
    Invalidate(capture.get());
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!Joined(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  const std::set<Stream*> streams = capture->streams;
  for (Stream* other : streams) Leave(other);
  capture->graph->capturing = false;
  if (result != CUDA_SUCCESS) {
    Invalidate(capture.get());
    if (capture->own_graph) Device::Get().graphs.Delete(capture->graph);
    *phGraph = nullptr;
    return result;
  }
  *phGraph = reinterpret_cast<CUgraph>(capture->graph);
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuStreamIsCapturing,
              (CUstream hStream, CUstreamCaptureStatus* captureStatus),
              (hStream, captureStatus)) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture == nullptr) HD_TRY(CheckLegacy(stream));
  *captureStatus = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
                                              : stream->capture->status;
  return CUDA_SUCCESS;
}

HD_STREAM_API(cuStreamGetCaptureInfo,
              (CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
               cuuint64_t* id_out),
              (hStream, captureStatus_out, id_out)) {
  return GetInfo(hStream, captureStatus_out, id_out, nullptr, nullptr, nullptr,
                 false, nullptr);
}

HD_STREAM_API(cuStreamGetCaptureInfo_v2,
              (CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
               cuuint64_t* id_out, CUgraph* graph_out,
               const CUgraphNode** dependencies_out,
               size_t* numDependencies_out),
              (hStream, captureStatus_out, id_out, graph_out, dependencies_out,
               numDependencies_out)) {
  return GetInfo(hStream, captureStatus_out, id_out, graph_out,
                 dependencies_out, nullptr, false, numDependencies_out);
}

HD_STREAM_API(cuStreamGetCaptureInfo_v3,
              (CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
               cuuint64_t* id_out, CUgraph* graph_out,
               const CUgraphNode** dependencies_out,
               const CUgraphEdgeData** edgeData_out,
               size_t* numDependencies_out),
              (hStream, captureStatus_out, id_out, graph_out, dependencies_out,
               edgeData_out, numDependencies_out)) {
  return GetInfo(hStream, captureStatus_out, id_out, graph_out,
                 dependencies_out, edgeData_out, true, numDependencies_out);
}

HD_STREAM_API(cuStreamUpdateCaptureDependencies,
              (CUstream hStream, CUgraphNode* dependencies,
               size_t numDependencies, unsigned int flags),
              (hStream, dependencies, numDependencies, flags)) {
  return UpdateDependencies(hStream, dependencies, nullptr, numDependencies,
                            flags);
}

HD_STREAM_API(cuStreamUpdateCaptureDependencies_v2,
              (CUstream hStream, CUgraphNode* dependencies,
               const CUgraphEdgeData* dependencyData, size_t numDependencies,
               unsigned int flags),
              (hStream, dependencies, dependencyData, numDependencies, flags)) {
  return UpdateDependencies(hStream, dependencies, dependencyData,
                            numDependencies, flags);
}

HD_API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode)) {
  HD_ENTER(kInit);
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_mode);
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
