// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_GRAPH_EXECUTOR_H_
#define HEDDLE_RUNTIME_REPLAY_GRAPH_EXECUTOR_H_

#include <string>
#include <utility>
#include <vector>

#include "runtime/replay/executor.h"

namespace heddle::replay {

// The step as one CUDA graph, built node by node. Between Build and Instantiate
// the graph may be changed.
class GraphExecutor : public Executor {
 public:
  // All arguments but `name` outlive the object.
  GraphExecutor(const device::Driver& driver, CUcontext context,
                const BoundProgram& program, std::string name)
      : driver_(driver),
        context_(context),
        program_(program),
        name_(std::move(name)) {}
  ~GraphExecutor() override;
  GraphExecutor(const GraphExecutor&) = delete;
  GraphExecutor& operator=(const GraphExecutor&) = delete;

  absl::Status Build(const GraphOptions& options);
  absl::Status Instantiate();
  // Owned by the object; after Build.
  CUgraph graph() const { return graph_; }
  // Its nodes, by index of operation.
  const std::vector<CUgraphNode>& nodes() const { return nodes_; }

  const char* name() const override { return name_.c_str(); }
  CUstream stream() const override { return stream_; }
  absl::Status Run() override;

 private:
  absl::Status AddNode(const Operation& operation, CUgraphNode* node);
  absl::Status AddKernel(const LaunchWork& launch, CUgraphNode* node);
  absl::Status AddEdges(const GraphOptions& options);

  const device::Driver& driver_;
  CUcontext context_;
  const BoundProgram& program_;
  const std::string name_;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::vector<CUgraphNode> nodes_;  // by operation
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_GRAPH_EXECUTOR_H_
