// SPDX-License-Identifier: Apache-2.0
// What copies and fills say they touch, byte for byte, and the order in which a
// graph could have been submitted.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/rewrite/graph_access.h"
#include "runtime/rewrite/planned.h"

namespace heddle::rewrite {
namespace {

using Bytes = std::set<uint64_t>;

Bytes BytesOf(const access::ExtentSet& set) {
  Bytes bytes;
  for (const access::Extent& extent : set.extents()) {
    for (uint64_t at = extent.address; at < extent.end(); ++at) {
      bytes.insert(at);
    }
  }
  return bytes;
}

uint32_t Below(std::mt19937& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

constexpr uint64_t kSource = 0x10000;
constexpr uint64_t kTarget = 0x70000;

TEST(CopyAccess, IsEveryByteOfTheBoxAndNoOther) {
  std::mt19937 random(3);
  const CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE,
                                CU_MEMORYTYPE_UNIFIED};
  for (int round = 0; round < 3000; ++round) {
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = Below(random, 9);
    copy.Height = Below(random, 4);
    copy.Depth = Below(random, 4);
    copy.srcMemoryType = types[Below(random, 3)];
    copy.dstMemoryType = types[Below(random, 3)];
    // The address of the other type is not looked at.
    const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
    const bool to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
    copy.srcHost = reinterpret_cast<const void*>(from_host ? kSource : 1);
    copy.dstHost = reinterpret_cast<void*>(to_host ? kTarget : 1);
    copy.srcDevice = from_host ? 1 : kSource;
    copy.dstDevice = to_host ? 1 : kTarget;
    copy.srcXInBytes = Below(random, 3);
    copy.dstXInBytes = Below(random, 3);
    copy.srcY = Below(random, 3);
    copy.dstY = Below(random, 3);
    copy.srcZ = Below(random, 3);
    copy.dstZ = Below(random, 3);
    copy.srcPitch = copy.WidthInBytes + copy.srcXInBytes + Below(random, 4);
    copy.dstPitch = copy.WidthInBytes + copy.dstXInBytes + Below(random, 4);
    copy.srcHeight = copy.Height + copy.srcY + Below(random, 2);
    copy.dstHeight = copy.Height + copy.dstY + Below(random, 2);
    Bytes read;
    Bytes written;
    for (uint64_t z = 0; z < copy.Depth; ++z) {
      for (uint64_t y = 0; y < copy.Height; ++y) {
        for (uint64_t x = 0; x < copy.WidthInBytes; ++x) {
          read.insert(kSource +
                      ((z + copy.srcZ) * copy.srcHeight + y + copy.srcY) *
                          copy.srcPitch +
                      copy.srcXInBytes + x);
          written.insert(kTarget +
                         ((z + copy.dstZ) * copy.dstHeight + y + copy.dstY) *
                             copy.dstPitch +
                         copy.dstXInBytes + x);
        }
      }
    }
    const access::AccessSet set = AccessOf(copy);
    ASSERT_TRUE(set.reads_known() && set.writes_known());
    ASSERT_EQ(BytesOf(set.Reads()), read) << "round " << round;
    ASSERT_EQ(BytesOf(set.Writes()), written) << "round " << round;
    ASSERT_EQ(set.ordering_point, to_host);
  }
}

// Copies of one row and of one plane leave out what they do not need.
TEST(CopyAccess, WithoutPitchAndHeight) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = kSource;
  copy.dstDevice = kTarget;
  copy.WidthInBytes = 100;
  copy.Height = copy.Depth = 1;
  EXPECT_EQ(AccessOf(copy).Reads(), access::ExtentSet({{kSource, 100}}));
  EXPECT_EQ(AccessOf(copy).Writes(), access::ExtentSet({{kTarget, 100}}));
  copy.Height = 3;
  EXPECT_EQ(AccessOf(copy).Reads(), access::ExtentSet({{kSource, 300}}));
}

TEST(CopyAccess, AnArrayIsUnknownOnItsSide) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = kTarget;
  copy.WidthInBytes = 8;
  copy.Height = copy.Depth = 1;
  access::AccessSet set = AccessOf(copy);
  EXPECT_FALSE(set.reads_known());
  EXPECT_TRUE(set.writes_known());
  EXPECT_EQ(set.Writes(), access::ExtentSet({{kTarget, 8}}));
  std::swap(copy.srcMemoryType, copy.dstMemoryType);
  copy.srcDevice = kSource;
  set = AccessOf(copy);
  EXPECT_TRUE(set.reads_known());
  EXPECT_FALSE(set.writes_known());
}

TEST(FillAccess, IsEveryByteOfTheRowsAndNoOther) {
  std::mt19937 random(4);
  for (int round = 0; round < 1000; ++round) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = kTarget;
    fill.elementSize = 1u << Below(random, 3);
    fill.width = 1 + Below(random, 6);
    fill.height = 1 + Below(random, 5);
    // Of a single row it says nothing.
    fill.pitch = fill.height == 1
                     ? Below(random, 3)
                     : fill.width * fill.elementSize + Below(random, 9);
    Bytes written;
    for (uint64_t y = 0; y < fill.height; ++y) {
      for (uint64_t x = 0; x < fill.width * fill.elementSize; ++x) {
        written.insert(kTarget + y * fill.pitch + x);
      }
    }
    const access::AccessSet set = AccessOf(fill);
    EXPECT_TRUE(set.reads_known() && set.writes_known());
    EXPECT_TRUE(set.Reads().empty());
    ASSERT_EQ(BytesOf(set.Writes()), written) << "round " << round;
    EXPECT_FALSE(set.ordering_point);
  }
}

GraphModel ModelOf(uint32_t nodes,
                   const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  GraphModel model;
  model.nodes.resize(nodes);
  model.graph.nodes.resize(nodes);
  for (const auto& [from, to] : edges) {
    model.graph.edges.push_back({from, to});
  }
  return model;
}

// Each time the lowest index of those that nothing holds back.
TEST(SubmissionOrder, IsTheFirstOfAllOrdersThatTheEdgesAllow) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const uint32_t count = Below(random, 7);
    std::vector<uint32_t> hidden(count);
    for (uint32_t i = 0; i < count; ++i) hidden[i] = i;
    std::shuffle(hidden.begin(), hidden.end(), random);
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (uint32_t from = 0; from < count; ++from) {
      for (uint32_t to = from + 1; to < count; ++to) {
        if (Below(random, 3) == 0) edges.emplace_back(hidden[from], hidden[to]);
      }
    }
    // All orders, from the first on.
    std::vector<uint32_t> order(count);
    for (uint32_t i = 0; i < count; ++i) order[i] = i;
    const auto allowed = [&] {
      return std::all_of(edges.begin(), edges.end(), [&](const auto& edge) {
        return std::find(order.begin(), order.end(), edge.first) <
               std::find(order.begin(), order.end(), edge.second);
      });
    };
    while (!allowed()) {
      ASSERT_TRUE(std::next_permutation(order.begin(), order.end()));
    }
    const auto found = SubmissionOrder(ModelOf(count, edges));
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(*found, order) << "round " << round;
    // One edge back makes a cycle.
    if (edges.empty()) continue;
    edges.emplace_back(edges.front().second, edges.front().first);
    ASSERT_TRUE(absl::IsInvalidArgument(
        SubmissionOrder(ModelOf(count, edges)).status()));
  }
}

// Operations and their edges under the numbers of the order.
TEST(PlanInput, HasTheGraphInItsOrder) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    const uint32_t count = 1 + Below(random, 9);
    std::vector<uint32_t> hidden(count);
    for (uint32_t i = 0; i < count; ++i) hidden[i] = i;
    std::shuffle(hidden.begin(), hidden.end(), random);
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (uint32_t i = 1; i < count; ++i) {
      edges.emplace_back(hidden[Below(random, i)], hidden[i]);
    }
    GraphModel model = ModelOf(count, edges);
    for (uint32_t i = 0; i < count; ++i) {
      model.nodes[i].source.name = std::to_string(i);
      model.graph.nodes[i].kernel = Below(random, 2) == 0;
    }
    const auto order = SubmissionOrder(model);
    ASSERT_TRUE(order.ok()) << order.status();
    const plan::PlanInput input = PlanInputOf(model, *order);
    ASSERT_EQ(input.graph.nodes.size(), count);
    ASSERT_EQ(input.graph.edges.size(), edges.size());
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(input.names[i], std::to_string((*order)[i]));
      EXPECT_EQ(input.graph.nodes[i].kernel,
                model.graph.nodes[(*order)[i]].kernel);
    }
    for (size_t i = 0; i < edges.size(); ++i) {
      const plan::Edge& edge = input.graph.edges[i];
      EXPECT_LT(edge.from, edge.to);
      EXPECT_EQ((*order)[edge.from], edges[i].first);
      EXPECT_EQ((*order)[edge.to], edges[i].second);
    }
  }
}

}  // namespace
}  // namespace heddle::rewrite
