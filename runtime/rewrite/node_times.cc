// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/node_times.h"

#include <algorithm>
#include <utility>

#include "runtime/rewrite/planned.h"

namespace heddle::rewrite {
namespace {

// Between two events there is more than the node: what a node in a line costs
// by itself (plan::EdgeCosts), and the events. Taken off, as far as the
// shortest node shows it.
constexpr double kMostOverheadUs = 2.5;
constexpr double kLeastUs = 0.5;

// Everything that has to go again.
struct Line {
  const device::Driver& driver;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  std::vector<CUevent> events;  // one more than nodes

  explicit Line(const device::Driver& d) : driver(d) {}
  ~Line() {
    if (exec != nullptr) driver.GraphExecDestroy(exec);
    if (graph != nullptr) driver.GraphDestroy(graph);
    for (CUevent event : events) driver.EventDestroy(event);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
};

absl::Status Build(CUgraph source, const GraphModel& model,
                   const std::vector<uint32_t>& order, Line* line) {
  const device::Driver& driver = line->driver;
  if (absl::Status status =
          driver.Check(driver.GraphClone(&line->graph, source), "cuGraphClone");
      !status.ok()) {
    return status;
  }
  std::vector<CUgraphNode> nodes(model.nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (absl::Status status =
            driver.Check(driver.GraphNodeFindInClone(
                             &nodes[i], model.nodes[i].handle, line->graph),
                         "cuGraphNodeFindInClone");
        !status.ok()) {
      return status;
    }
  }
  if (absl::Status status =
          RemoveEdges(driver, line->graph, nodes, model.graph.edges);
      !status.ok()) {
    return status;
  }
  CUgraphNode last = nullptr;
  for (size_t i = 0; i <= order.size(); ++i) {
    CUevent event = nullptr;
    absl::Status status = driver.Check(
        driver.EventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    if (!status.ok()) return status;
    line->events.push_back(event);
    CUgraphNode mark = nullptr;
    status = driver.Check(
        driver.GraphAddEventRecordNode(&mark, line->graph, &last,
                                       last == nullptr ? 0 : 1, event),
        "cuGraphAddEventRecordNode");
    if (!status.ok()) return status;
    if (i == order.size()) break;
    last = nodes[order[i]];
    const CUgraphEdgeData full{};
    status = driver.Check(
        driver.GraphAddDependencies(line->graph, &mark, &last, &full, 1),
        "cuGraphAddDependencies");
    if (!status.ok()) return status;
  }
  return driver.Check(
      driver.GraphInstantiateWithFlags(&line->exec, line->graph, 0),
      "cuGraphInstantiateWithFlags(one by one)");
}

}  // namespace

absl::StatusOr<std::vector<double>> MeasureNodes(const device::Driver& driver,
                                                 CUgraph graph,
                                                 const GraphModel& model,
                                                 CUstream stream, int runs) {
  if (driver.GraphAddEventRecordNode == nullptr ||
      driver.GraphAddDependencies == nullptr) {
    return absl::UnimplementedError("the driver has no event nodes");
  }
  const absl::StatusOr<std::vector<uint32_t>> order = SubmissionOrder(model);
  if (!order.ok()) return order.status();
  Line line(driver);
  if (absl::Status status = Build(graph, model, *order, &line); !status.ok()) {
    return status;
  }
  std::vector<double> least(order->size(), 0);
  for (int run = 0; run < runs; ++run) {
    absl::Status status =
        driver.Check(driver.GraphLaunch(line.exec, stream), "cuGraphLaunch");
    if (!status.ok()) return status;
    status =
        driver.Check(driver.StreamSynchronize(stream), "cuStreamSynchronize");
    if (!status.ok()) return status;
    for (size_t i = 0; i < order->size(); ++i) {
      float milliseconds = 0;
      status =
          driver.Check(driver.EventElapsedTime(&milliseconds, line.events[i],
                                               line.events[i + 1]),
                       "cuEventElapsedTime");
      if (!status.ok()) return status;
      double& time = least[(*order)[i]];
      const double now = milliseconds * 1000.0;
      time = run == 0 ? now : std::min(time, now);
    }
  }
  double overhead = kMostOverheadUs;
  for (const double time : least) {
    overhead = std::min(overhead, std::max(time - kLeastUs, 0.0));
  }
  for (double& time : least) time = std::max(time - overhead, kLeastUs);
  return least;
}

}  // namespace heddle::rewrite
