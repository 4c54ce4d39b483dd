// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/memory_map.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace heddle::record {
namespace {

std::vector<uint8_t> Words(const std::vector<uint64_t>& words) {
  std::vector<uint8_t> bytes(words.size() * 8);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

TEST(MemoryMap, KnowsWhichBlockHoldsAnAddress) {
  MemoryMap map;
  map.Add({0x1000, 0x100, fb::MemoryKind::kDevice});
  map.Add({0x2000, 0x100, fb::MemoryKind::kHost});
  EXPECT_TRUE(map.Contains(0x1000));
  EXPECT_TRUE(map.Contains(0x10ff));
  EXPECT_FALSE(map.Contains(0x1100));
  EXPECT_FALSE(map.Contains(0xfff));
  EXPECT_FALSE(map.Contains(0x2000)) << "host memory is no device block";
  EXPECT_EQ(map.Remove(0x1000), 0x100u);
  EXPECT_EQ(map.Remove(0x1000), 0u);
  EXPECT_FALSE(map.Contains(0x1000));
}

TEST(MemoryMap, CollectsWordsThatCouldBeAddressesOnce) {
  MemoryMap map;
  map.Add({0x10000, 0x1000, fb::MemoryKind::kDevice});
  map.CollectPointers(Words({0x10000, 7, 0x10800, 0x20000, 0x10800}));
  map.CollectPointers(Words({0x10800, 0x10008}));
  EXPECT_EQ(map.Pointers(), (std::vector<uint64_t>{0x10000, 0x10008, 0x10800}));
  // A torn last word is no word.
  std::vector<uint8_t> odd = Words({0x10010});
  odd.pop_back();
  map.CollectPointers(odd);
  EXPECT_EQ(map.Pointers().size(), 3u);
}

TEST(MemoryMap, ThreadsMayCollectAndAllocateAtOnce) {
  MemoryMap map;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&map, t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        const uint64_t address = (t + 1) << 32 | i << 12;
        map.Add({address, 0x1000, fb::MemoryKind::kDevice});
        map.CollectPointers(Words({address, address + 8}));
        if (i % 2 == 0) map.Remove(address);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(map.Blocks().size(), 8u * 1000u);
  EXPECT_EQ(map.Pointers().size(), 8u * 2000u * 2u);
}

}  // namespace
}  // namespace heddle::record
