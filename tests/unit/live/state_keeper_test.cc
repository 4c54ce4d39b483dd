// SPDX-License-Identifier: Apache-2.0
// StateKeeper against a model that holds all memory as plain bytes.

#include "runtime/live/state_keeper.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>

#include "tests/unit/hostdevice/device_test.h"

namespace heddle::live {
namespace {

constexpr uint64_t kChunk = StateKeeper::kChunkBytes;
using Random = std::mt19937;
using Bytes = std::vector<uint8_t>;

uint64_t Below(Random& random, uint64_t limit) { return random() % limit; }

int g_allocations = 0;     // alive, made through the table
int g_until_failure = -1;  // -1: never

class StateKeeperTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    absl::StatusOr<device::Driver> driver = device::Driver::FromResolver(
        [](const char* symbol) { return dlsym(RTLD_DEFAULT, symbol); },
        "the host device");
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
    g_allocations = 0;
    g_until_failure = -1;
    driver_.MemAlloc = [](CUdeviceptr* address, size_t bytes) {
      if (g_until_failure >= 0 && g_until_failure-- == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      ++g_allocations;
      return cuMemAlloc(address, bytes);
    };
    driver_.MemFree = [](CUdeviceptr address) {
      --g_allocations;
      return cuMemFree(address);
    };
    absl::StatusOr<ChunkKernels> kernels = ChunkKernels::Load(driver_);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    kernels_ = *kernels;
    stream_ = NewStream();
  }

  // Odd sizes, smaller and larger than a chunk and exact multiples.
  MemoryRange NewRange(Random& random, bool host) {
    uint64_t size = 0;
    switch (Below(random, 4)) {
      case 0:
        size = 1 + Below(random, 100);
        break;
      case 1:
        size = kChunk * (1 + Below(random, 3));
        break;
      case 2:
        size = kChunk * (1 + Below(random, 5)) + 1 + Below(random, 40) - 20;
        break;
      default:
        size = 1 + Below(random, 8 * kChunk);
    }
    MemoryRange range;
    range.size = size;
    range.host = host;
    if (host) {
      host_.push_back(std::make_unique<Bytes>(size));
      range.address = reinterpret_cast<uint64_t>(host_.back()->data());
    } else {
      range.address = Allocate(size);
    }
    for (uint64_t i = 0; i < size; ++i) {
      At(range)[i] = static_cast<uint8_t>(random());
    }
    return range;
  }
  // Memory of the host device is memory of the process.
  static uint8_t* At(const MemoryRange& range) {
    return reinterpret_cast<uint8_t*>(range.address);
  }
  static std::vector<Bytes> Snapshot(const std::vector<MemoryRange>& ranges) {
    std::vector<Bytes> all;
    for (const MemoryRange& range : ranges) {
      all.emplace_back(At(range), At(range) + range.size);
    }
    return all;
  }
  static void Put(const std::vector<MemoryRange>& ranges,
                  const std::vector<Bytes>& all) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      std::memcpy(At(ranges[i]), all[i].data(), all[i].size());
    }
  }
  // Changes bytes of some ranges: none, single ones, runs, whole ranges.
  static void Change(Random& random, const std::vector<MemoryRange>& ranges) {
    for (const MemoryRange& range : ranges) {
      const uint64_t kind = Below(random, 4);
      if (kind == 0) continue;
      const uint64_t from = Below(random, range.size);
      uint64_t to = from + 1;
      if (kind == 2) to = from + 1 + Below(random, range.size - from);
      if (kind == 3 && Below(random, 3) == 0) to = range.size;
      for (uint64_t i = from; i < to; ++i) {
        At(range)[i] ^= static_cast<uint8_t>(1 + Below(random, 255));
      }
    }
  }

  device::Driver driver_;
  ChunkKernels kernels_;
  CUstream stream_ = nullptr;
  std::vector<std::unique_ptr<Bytes>> host_;
};

// Places that are compared as one: a chunk of device memory, a host range.
using Places = std::set<std::pair<size_t, uint64_t>>;

Places Differences(const std::vector<MemoryRange>& ranges,
                   const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
  Places places;
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (uint64_t k = 0; k < a[i].size(); ++k) {
      if (a[i][k] != b[i][k])
        places.insert({i, ranges[i].host ? 0 : k / kChunk});
    }
  }
  return places;
}

TEST_F(StateKeeperTest, AgainstAModel) {
  Random random(3);
  int equal = 0;
  int different = 0;
  for (int round = 0; round < 250; ++round) {
    std::vector<MemoryRange> ranges;
    for (uint64_t i = 1 + Below(random, 5); i > 0; --i) {
      ranges.push_back(NewRange(random, Below(random, 4) == 0));
    }
    const std::vector<Bytes> saved = Snapshot(ranges);
    auto made = StateKeeper::Save(driver_, kernels_, ranges, uint64_t{1} << 40,
                                  stream_);
    ASSERT_TRUE(made.ok()) << made.status();
    StateKeeper& keeper = **made;
    uint64_t bytes = 0;
    for (const MemoryRange& range : ranges) bytes += range.size;
    EXPECT_EQ(keeper.bytes(), bytes);
    ASSERT_EQ(Snapshot(ranges), saved);

    Change(random, ranges);
    const std::vector<Bytes> result = Snapshot(ranges);
    ASSERT_TRUE(keeper.KeepResult().ok());
    uint64_t written = 0;
    for (const auto& [range, chunk] : Differences(ranges, saved, result)) {
      written += ranges[range].host ? 0 : 1;
    }
    EXPECT_EQ(keeper.written_chunks(), written);

    Places loose;
    for (int run = 0; run < 6; ++run) {
      ASSERT_TRUE(keeper.Restore().ok());
      ASSERT_EQ(Snapshot(ranges), saved) << "round " << round;
      Put(ranges, result);
      if (Below(random, 3) != 0) {
        // A single byte anywhere.
        if (Below(random, 2) == 0) {
          const MemoryRange& range = ranges[Below(random, ranges.size())];
          At(range)[Below(random, range.size)] ^= 1;
        } else {
          Change(random, ranges);
        }
      }
      const Places places = Differences(ranges, result, Snapshot(ranges));
      const std::vector<Bytes> now = Snapshot(ranges);
      if (Below(random, 3) == 0) {
        ASSERT_TRUE(keeper.FindUnrepeatable().ok());
        loose.insert(places.begin(), places.end());
        EXPECT_EQ(keeper.unrepeatable_chunks(), loose.size());
      } else {
        std::string text;
        const absl::StatusOr<bool> said = keeper.EqualsResult(&text);
        ASSERT_TRUE(said.ok()) << said.status();
        std::vector<std::pair<size_t, uint64_t>> left;
        std::set_difference(places.begin(), places.end(), loose.begin(),
                            loose.end(), std::back_inserter(left));
        ASSERT_EQ(*said, left.empty()) << text;
        EXPECT_EQ(text.empty(), left.empty());
        ++(left.empty() ? equal : different);
        if (left.size() > 1) {
          EXPECT_NE(text.find(std::to_string(left.size()) + " chunks"),
                    std::string::npos)
              << text;
        }
      }
      // Comparing changes nothing.
      ASSERT_EQ(Snapshot(ranges), now);
    }
    ASSERT_TRUE(keeper.Restore().ok());
    ASSERT_EQ(Snapshot(ranges), saved);
    made->reset();
    EXPECT_EQ(g_allocations, 0);
    for (const MemoryRange& range : ranges) {
      if (!range.host) {
        EXPECT_OK(cuMemFree(range.address));
      }
    }
    host_.clear();
  }
  EXPECT_GT(equal, 100);
  EXPECT_GT(different, 300);
}

// Each byte of a small set of ranges in turn.
TEST_F(StateKeeperTest, EverySingleByteIsFound) {
  const uint64_t sizes[] = {1, 15, 16, 17, 100, kChunk - 1, kChunk + 1};
  std::vector<MemoryRange> ranges;
  for (const uint64_t size : sizes) {
    ranges.push_back({Allocate(size), size, false});
  }
  Bytes host(33, 7);
  ranges.push_back(
      {reinterpret_cast<uint64_t>(host.data()), host.size(), true});
  const std::vector<Bytes> saved = Snapshot(ranges);
  auto keeper = StateKeeper::Save(driver_, kernels_, ranges, 1 << 30, stream_);
  ASSERT_TRUE(keeper.ok());
  // Half of the ranges are written by the run.
  for (size_t i = 0; i < ranges.size(); i += 2) At(ranges[i])[0] ^= 1;
  const std::vector<Bytes> result = Snapshot(ranges);
  ASSERT_TRUE((*keeper)->KeepResult().ok());
  for (const MemoryRange& range : ranges) {
    const uint64_t step = range.size > 1000 ? 97 : 1;
    for (uint64_t i = 0; i < range.size; i += step) {
      const uint64_t at = range.size - 1 - i;  // the last one, always
      Put(ranges, result);
      At(range)[at] ^= 0x80;
      std::string text;
      const absl::StatusOr<bool> said = (*keeper)->EqualsResult(&text);
      ASSERT_TRUE(said.ok());
      ASSERT_FALSE(*said) << "byte " << at << " of " << range.size;
      ASSERT_TRUE((*keeper)->Restore().ok());
      ASSERT_EQ(Snapshot(ranges), saved);
    }
  }
}

TEST_F(StateKeeperTest, NothingToKeep) {
  auto keeper = StateKeeper::Save(driver_, kernels_, {}, 0, stream_);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  EXPECT_TRUE((*keeper)->KeepResult().ok());
  EXPECT_TRUE((*keeper)->FindUnrepeatable().ok());
  std::string text;
  const absl::StatusOr<bool> equal = (*keeper)->EqualsResult(&text);
  EXPECT_TRUE(equal.ok() && *equal);
  EXPECT_TRUE((*keeper)->Restore().ok());
  EXPECT_EQ((*keeper)->bytes(), 0u);
}

TEST_F(StateKeeperTest, TheLimitCountsDeviceMemory) {
  Bytes host(100000);
  const std::vector<MemoryRange> ranges = {
      {Allocate(1000), 1000, false},
      {reinterpret_cast<uint64_t>(host.data()), host.size(), true}};
  EXPECT_TRUE(StateKeeper::Save(driver_, kernels_, ranges, 1024, stream_).ok());
  EXPECT_EQ(StateKeeper::Save(driver_, kernels_, ranges, 999, stream_)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(g_allocations, 0);
}

// Whenever memory runs out: an error, and nothing leaked.
TEST_F(StateKeeperTest, OutOfMemory) {
  Random random(4);
  std::vector<MemoryRange> ranges;
  for (int i = 0; i < 3; ++i) ranges.push_back(NewRange(random, i == 1));
  const std::vector<Bytes> saved = Snapshot(ranges);
  int refused = 0;
  for (int fails = 0; fails < 8; ++fails) {
    Put(ranges, saved);
    g_until_failure = fails;
    {
      auto keeper =
          StateKeeper::Save(driver_, kernels_, ranges, 1 << 30, stream_);
      if (keeper.ok()) {
        for (const MemoryRange& range : ranges) At(range)[0] ^= 1;
        const absl::Status kept = (*keeper)->KeepResult();
        refused += kept.ok() ? 0 : 1;
        g_until_failure = -1;
        EXPECT_EQ((*keeper)->has_result(), kept.ok());
        if (kept.ok()) {
          EXPECT_TRUE((*keeper)->Restore().ok());
          EXPECT_EQ(Snapshot(ranges), saved) << "allocation " << fails;
        }
      }
    }
    EXPECT_EQ(g_allocations, 0);
  }
  EXPECT_GE(refused, 4);
}

}  // namespace
}  // namespace heddle::live
