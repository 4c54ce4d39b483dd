// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/graph_book.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {
namespace {

// Graphs are fed as records, so that they live as long as the reader.
class GraphBookTest : public testing::Test {
 protected:
  static fb::GraphT Graph(
      uint32_t id, uint32_t nodes,
      const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
    fb::GraphT graph;
    graph.id = id;
    for (uint32_t i = 0; i < nodes; ++i) {
      graph.nodes.push_back(std::make_unique<fb::GraphNodeT>());
      graph.nodes.back()->type = CU_GRAPH_NODE_TYPE_MEMSET;
      graph.nodes.back()->event = 100 * id + i;  // to tell them apart
    }
    for (const auto& [from, to] : edges) {
      graph.edges.emplace_back(from, to, 0, 0, 0, 0);
    }
    return graph;
  }
  void Exec(fb::GraphExecOp op, uint32_t graph, uint32_t node = 0,
            bool enabled = true, uint64_t marker = 0) {
    fb::GraphExecT exec;
    exec.op = op;
    exec.handle = 7;
    exec.graph = graph;
    exec.node = node;
    exec.enabled = enabled;
    if (op == fb::GraphExecOp::kNodeUpdate) {
      exec.update = std::make_unique<fb::GraphNodeT>();
      exec.update->type = CU_GRAPH_NODE_TYPE_MEMSET;
      exec.update->event = marker;
    }
    trace_.Add(exec);
  }
  absl::StatusOr<std::vector<ExpandedNode>> Expand() {
    reader_ = trace_.Read();
    GraphBook book;
    for (const trace::Record& record : reader_->records()) {
      if (const auto* graph = record.As<fb::Graph>()) book.Observe(*graph);
      if (const auto* exec = record.As<fb::GraphExec>()) book.Observe(*exec);
    }
    return book.Expand(7, 0);
  }

  TestTrace trace_;
  std::unique_ptr<trace::Reader> reader_;
};

TEST_F(GraphBookTest, NodesComeAfterTheirDependencies) {
  trace_.Add(Graph(1, 3, {{2, 1}, {1, 0}}));
  Exec(fb::GraphExecOp::kInstantiate, 1);
  auto nodes = Expand();
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_EQ((*nodes)[0].index, 2);
  EXPECT_EQ((*nodes)[1].dependencies, (std::vector<Dependency>{{0, 0, 0}}));
  EXPECT_EQ((*nodes)[2].dependencies, (std::vector<Dependency>{{1, 0, 0}}));
  EXPECT_EQ(LastNodes(*nodes, 0), (std::vector<Dependency>{{2, 0, 0}}));
}

TEST_F(GraphBookTest, AnUpdateReplacesAllParametersAndNodeUpdatesComeAfter) {
  trace_.Add(Graph(1, 2, {{0, 1}}));
  trace_.Add(Graph(2, 2, {{0, 1}}));
  Exec(fb::GraphExecOp::kInstantiate, 1);
  Exec(fb::GraphExecOp::kNodeUpdate, 1, 0, true, 555);  // lost by the update
  Exec(fb::GraphExecOp::kUpdate, 2);
  Exec(fb::GraphExecOp::kNodeUpdate, 1, 1, true, 777);  // by the first name
  auto nodes = Expand();
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ((*nodes)[0].node->event(), 200U);
  EXPECT_EQ((*nodes)[1].node->event(), 777U);
}

TEST_F(GraphBookTest, ADisabledNodeKeepsItsPlaceWithoutWork) {
  trace_.Add(Graph(1, 3, {{0, 1}, {1, 2}}));
  Exec(fb::GraphExecOp::kInstantiate, 1);
  Exec(fb::GraphExecOp::kNodeEnable, 1, 1, false);
  auto nodes = Expand();
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ((*nodes)[1].node, nullptr);
  EXPECT_EQ((*nodes)[2].dependencies.size(), 1U);
}

TEST_F(GraphBookTest, ChildGraphsAreLaidOpenBetweenTheirNeighbours) {
  fb::GraphT parent = Graph(1, 3, {{0, 1}, {1, 2}});
  parent.nodes[1]->type = CU_GRAPH_NODE_TYPE_GRAPH;
  parent.nodes[1]->child = 2;
  trace_.Add(parent);
  trace_.Add(Graph(2, 2, {}));
  Exec(fb::GraphExecOp::kInstantiate, 1);
  auto nodes = Expand();
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  // 0, entry, two children, exit, 2
  ASSERT_EQ(nodes->size(), 6U);
  EXPECT_EQ((*nodes)[2].dependencies, (std::vector<Dependency>{{1, 0, 0}}));
  EXPECT_EQ((*nodes)[3].dependencies, (std::vector<Dependency>{{1, 0, 0}}));
  EXPECT_EQ((*nodes)[4].dependencies,
            (std::vector<Dependency>{{2, 0, 0}, {3, 0, 0}}));
  EXPECT_EQ((*nodes)[5].dependencies, (std::vector<Dependency>{{4, 0, 0}}));
}

TEST_F(GraphBookTest,
       ProgrammaticEdgesKeepTheirPortAndTheirProducerIsALastNode) {
  fb::GraphT graph = Graph(1, 2, {});
  graph.edges.emplace_back(0, 1, 1, 0, 1, 0);
  trace_.Add(graph);
  Exec(fb::GraphExecOp::kInstantiate, 1);
  auto nodes = Expand();
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ((*nodes)[1].dependencies, (std::vector<Dependency>{{0, 1, 1}}));
  EXPECT_EQ(LastNodes(*nodes, 0).size(), 2U);
}

TEST_F(GraphBookTest, ACycleIsAnError) {
  trace_.Add(Graph(1, 2, {{0, 1}, {1, 0}}));
  Exec(fb::GraphExecOp::kInstantiate, 1);
  EXPECT_EQ(Expand().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GraphBookTest, AnEdgeToANodeThatIsNotThereIsAnError) {
  trace_.Add(Graph(1, 2, {{0, 4000000000U}}));
  Exec(fb::GraphExecOp::kInstantiate, 1);
  EXPECT_EQ(Expand().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GraphBookTest, AGraphThatContainsItselfIsAnError) {
  fb::GraphT graph = Graph(1, 2, {});
  for (auto& node : graph.nodes) {
    node->type = CU_GRAPH_NODE_TYPE_GRAPH;
    node->child = 1;
  }
  trace_.Add(graph);
  Exec(fb::GraphExecOp::kInstantiate, 1);
  EXPECT_FALSE(Expand().ok());
}

TEST_F(GraphBookTest, AnExecutableThatTheTraceDoesNotHoldIsNotFound) {
  EXPECT_EQ(Expand().status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace heddle::replay
