// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/ordering.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace heddle::replay {
namespace {

StreamRef S(uint64_t handle, uint32_t thread = 0) {
  return StreamRef{1, handle, thread};
}

// Submits one operation as the program builder does.
class Program {
 public:
  uint32_t Submit(const StreamRef& stream, bool kernel = true,
                  bool early = false) {
    const Frontier dependencies = tracker.Before(stream, kernel, early);
    const auto index = static_cast<uint32_t>(all.size());
    tracker.Add(index, kernel, dependencies);
    tracker.Advance(stream, {{index, 0, 0}});
    all.push_back(dependencies);
    return index;
  }

  OrderTracker tracker;
  std::vector<Frontier> all;  // dependencies by operation
};

// The same rules, spelled out call by call over the graph of all calls: an
// edge for every pair that a rule orders, and a search. Slow and plain.
class Oracle {
 public:
  struct Item {
    uint64_t stream = 0;
    bool legacy = false;
    bool blocking = true;
    bool in_stream = false;  // not a host call
  };

  size_t AddStreamItem(uint64_t stream, bool blocking) {
    Item item{stream, stream == 0, blocking, true};
    const size_t node = AddNode(item);
    for (size_t i = 0; i < node; ++i) {
      if (items_[i].in_stream && Ordered(items_[i], item))
        edges_[i].push_back(node);
    }
    return node;
  }
  size_t AddHostItem() { return AddNode(Item{}); }
  void Edge(size_t from, size_t to) { edges_[from].push_back(to); }
  // What a synchronization with `stream` waits for.
  void EdgesFromStream(uint64_t stream, bool blocking, size_t to) {
    const Item as{stream, stream == 0, blocking, true};
    for (size_t i = 0; i < to; ++i) {
      if (items_[i].in_stream && Ordered(items_[i], as)) Edge(i, to);
    }
  }
  void EdgesFromAll(size_t to) {
    for (size_t i = 0; i < to; ++i) {
      if (items_[i].in_stream) Edge(i, to);
    }
  }

  std::vector<bool> ReachableFrom(size_t node) const {
    std::vector<bool> seen(items_.size(), false);
    std::vector<size_t> open = {node};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const size_t next : edges_[at]) {
        if (!seen[next]) {
          seen[next] = true;
          open.push_back(next);
        }
      }
    }
    return seen;
  }

 private:
  static bool Ordered(const Item& a, const Item& b) {
    if (a.stream == b.stream) return true;
    return (a.legacy && b.blocking) || (b.legacy && a.blocking);
  }
  size_t AddNode(Item item) {
    items_.push_back(item);
    edges_.emplace_back();
    // The host has seen its synchronizations end before it goes on.
    for (size_t i = 0; i + 1 < items_.size(); ++i) {
      if (!items_[i].in_stream) edges_[i].push_back(items_.size() - 1);
    }
    return items_.size() - 1;
  }

  std::vector<Item> items_;
  std::vector<std::vector<size_t>> edges_;
};

TEST(OrderingTest, RandomProgramsAreOrderedExactlyAsTheBruteForceOracleSays) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Program program;
    Oracle oracle;
    // Stream 0 is the legacy stream, 10 and 11 block, 12 and 13 do not.
    const std::vector<uint64_t> handles = {0, 10, 11, 12, 13};
    const auto blocking = [](uint64_t handle) { return handle < 12; };
    for (const uint64_t handle : handles) {
      if (handle == 0) continue;
      program.tracker.CreateStream(
          S(handle), blocking(handle) ? 0 : CU_STREAM_NON_BLOCKING, 0);
    }
    std::vector<size_t> node_of_operation;
    std::vector<int64_t> record_of_event(4, -1);
    const bool with_legacy = seed % 3 != 0;
    for (int call = 0; call < 60; ++call) {
      const uint64_t handle =
          handles[random() % (handles.size() - (with_legacy ? 0 : 1)) +
                  (with_legacy ? 0 : 1)];
      const uint64_t event = random() % record_of_event.size();
      switch (random() % 10) {
        default: {
          program.Submit(S(handle), random() % 2 == 0);
          node_of_operation.push_back(
              oracle.AddStreamItem(handle, blocking(handle)));
          break;
        }
        case 5:
        case 6: {
          program.tracker.RecordEvent(event, S(handle));
          record_of_event[event] = static_cast<int64_t>(
              oracle.AddStreamItem(handle, blocking(handle)));
          break;
        }
        case 7:
        case 8: {
          program.tracker.WaitEvent(event, S(handle));
          if (record_of_event[event] >= 0) {
            const auto record = static_cast<size_t>(record_of_event[event]);
            oracle.Edge(record, oracle.AddStreamItem(handle, blocking(handle)));
          }
          break;
        }
        case 9: {
          if (random() % 3 != 0) break;
          const size_t host = oracle.AddHostItem();
          switch (random() % 3) {
            case 0:
              program.tracker.SyncContext(1);
              oracle.EdgesFromAll(host);
              break;
            case 1:
              program.tracker.SyncStream(S(handle));
              oracle.EdgesFromStream(handle, blocking(handle), host);
              break;
            default:
              program.tracker.SyncEvent(event);
              if (record_of_event[event] >= 0) {
                oracle.Edge(static_cast<size_t>(record_of_event[event]), host);
              }
              break;
          }
          break;
        }
      }
    }
    for (uint32_t a = 0; a < node_of_operation.size(); ++a) {
      const std::vector<bool> reachable =
          oracle.ReachableFrom(node_of_operation[a]);
      for (uint32_t b = a + 1; b < node_of_operation.size(); ++b) {
        ASSERT_EQ(program.tracker.Ordered(a, b),
                  reachable[node_of_operation[b]])
            << "seed " << seed << ", operations " << a << " and " << b;
      }
    }
    // And no edge says what others say already.
    for (const Frontier& dependencies : program.all) {
      for (const Dependency& d : dependencies) {
        for (const Dependency& other : dependencies) {
          ASSERT_FALSE(program.tracker.Ordered(d.from, other.from))
              << "seed " << seed;
        }
      }
    }
  }
}

TEST(OrderingTest, WorkInOneStreamFormsAChain) {
  Program p;
  p.Submit(S(5));
  p.Submit(S(5));
  p.Submit(S(5));
  EXPECT_EQ(p.all[1], (Frontier{{0, 0, 0}}));
  EXPECT_EQ(p.all[2], (Frontier{{1, 0, 0}}));
}

TEST(OrderingTest, NonBlockingStreamsIgnoreTheLegacyStream) {
  Program p;
  p.tracker.CreateStream(S(5), CU_STREAM_NON_BLOCKING, 0);
  p.Submit(S(0));
  p.Submit(S(5));
  p.Submit(S(0));
  EXPECT_TRUE(p.all[1].empty());
  EXPECT_EQ(p.all[2], (Frontier{{0, 0, 0}}));
}

TEST(OrderingTest, TheLegacyStreamIsABarrierForBlockingStreams) {
  Program p;
  p.Submit(S(5));
  p.Submit(S(6));
  p.Submit(S(1));  // another name of the legacy stream
  p.Submit(S(6));
  EXPECT_EQ(p.all[2], (Frontier{{0, 0, 0}, {1, 0, 0}}));
  EXPECT_EQ(p.all[3], (Frontier{{2, 0, 0}}));
}

TEST(OrderingTest, PerThreadDefaultStreamsAreSeparateAndBlocking) {
  Program p;
  p.Submit(S(2, /*thread=*/0));
  p.Submit(S(2, /*thread=*/1));
  p.Submit(S(0));
  EXPECT_TRUE(p.all[1].empty());
  EXPECT_EQ(p.all[2].size(), 2U);
}

TEST(OrderingTest, AReusedStreamHandleIsANewStream) {
  Program p;
  p.tracker.CreateStream(S(5), CU_STREAM_NON_BLOCKING, 0);
  p.Submit(S(5));
  p.tracker.DestroyStream(S(5));
  p.tracker.CreateStream(S(5), CU_STREAM_NON_BLOCKING, 0);
  p.Submit(S(5));
  EXPECT_TRUE(p.all[1].empty());
}

TEST(OrderingTest, TheLegacyStreamWaitsForDestroyedStreams) {
  Program p;
  p.Submit(S(5));
  p.tracker.DestroyStream(S(5));
  p.Submit(S(0));
  EXPECT_EQ(p.all[1], (Frontier{{0, 0, 0}}));
}

TEST(OrderingTest, AWaitTakesTheLatestRecordBeforeIt) {
  Program p;
  p.Submit(S(5));
  p.tracker.RecordEvent(7, S(5));
  p.tracker.WaitEvent(7, S(6));
  p.Submit(S(5));
  p.tracker.RecordEvent(7, S(5));
  p.Submit(S(6));  // waited for the first record
  EXPECT_EQ(p.all[2], (Frontier{{0, 0, 0}}));
}

TEST(OrderingTest, WaitingForAnEventThatWasNeverRecordedOrdersNothing) {
  Program p;
  p.Submit(S(5));
  p.tracker.WaitEvent(7, S(6));
  p.Submit(S(6));
  EXPECT_TRUE(p.all[1].empty());
}

TEST(OrderingTest, AnEarlyLaunchDependsOnTheKernelBeforeItProgrammatically) {
  Program p;
  p.Submit(S(5));
  p.Submit(S(5), true, /*early=*/true);
  EXPECT_EQ(p.all[1], (Frontier{{0, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                 CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC}}));
}

TEST(OrderingTest, WorkAfterAnEarlyLaunchWaitsForWhatThatMayHaveOutrun) {
  Program p;
  p.Submit(S(5));
  p.Submit(S(5), true, true);
  p.Submit(S(5), true, true);
  p.Submit(S(5));
  EXPECT_EQ(p.all[3], (Frontier{{2, 0, 0}, {1, 0, 0}, {0, 0, 0}}));
  EXPECT_TRUE(p.tracker.Ordered(0, 3));
  EXPECT_FALSE(p.tracker.Ordered(0, 2));
}

TEST(OrderingTest, AnEarlyLaunchAfterACopyOrAnEventWaitIsAnOrdinaryOne) {
  Program p;
  p.Submit(S(5), /*kernel=*/false);
  p.Submit(S(5), true, true);
  EXPECT_EQ(p.all[1], (Frontier{{0, 0, 0}}));
  p.Submit(S(6));
  p.tracker.RecordEvent(7, S(6));
  p.tracker.WaitEvent(7, S(5));
  p.Submit(S(5), true, true);
  EXPECT_EQ(p.all[3], (Frontier{{1, 0, 0}, {2, 0, 0}}));
}

TEST(OrderingTest, AnEventThatALaunchFiresEarlyOrdersKernelsByItsPort) {
  Program p;
  p.Submit(S(5));
  p.tracker.RecordEventAt(7, {0, 1, 1});
  p.tracker.WaitEvent(7, S(6));
  p.Submit(S(6));
  EXPECT_EQ(p.all[1], (Frontier{{0, 1, 1}}));
  p.tracker.WaitEvent(7, S(8));
  p.Submit(S(8), /*kernel=*/false);
  EXPECT_EQ(p.all[2], (Frontier{{0, 0, 0}})) << "copies wait for the end";
}

TEST(OrderingTest, MoreOperationsThanCanBeReducedKeepTheirOrder) {
  Program p;
  for (size_t i = 0; i < OrderTracker::kMaxReduced + 10; ++i) p.Submit(S(5));
  EXPECT_EQ(p.all.back(),
            (Frontier{{static_cast<uint32_t>(p.all.size() - 2), 0, 0}}));
}

}  // namespace
}  // namespace heddle::replay
