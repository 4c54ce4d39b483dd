// SPDX-License-Identifier: Apache-2.0
#include "tests/sass_machine/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/sass_machine/arithmetic.h"
#include "tests/sass_machine/half.h"

namespace heddle::sass_machine {
namespace {

constexpr uint64_t kOut = 0x7f0000000000;
constexpr uint64_t kIn = 0x7f0100000000;
constexpr uint64_t kMore = 0x7f0200000000;

template <typename T>
bool IsNan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}
template <typename T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

class SassMachineTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file(std::string(HEDDLE_TEST_IMAGES) + "/" + GetParam(),
                       std::ios::binary);
    const std::vector<uint8_t> image(std::istreambuf_iterator<char>(file), {});
    auto program = LoadProgram(image, 0x7e0000000000, &memory_);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
  }

  template <typename... P>
  absl::Status Run(const char* kernel, uint32_t grid, uint32_t block,
                   P... params) {
    sass_machine::Launch launch;
    launch.kernel = kernel;
    launch.grid = {grid, 1, 1};
    launch.block = {block, 1, 1};
    [[maybe_unused]] const auto add = [&](auto value) {
      auto& bytes = launch.params;
      bytes.resize((bytes.size() + sizeof(value) - 1) / sizeof(value) *
                   sizeof(value));
      bytes.resize(bytes.size() + sizeof(value));
      std::memcpy(&bytes[bytes.size() - sizeof(value)], &value, sizeof(value));
    };
    (add(params), ...);
    RunOptions options;
    options.max_instructions = 10'000'000;
    return sass_machine::Run(program_, launch, &memory_, &log_, options);
  }

  // Random bits, often at the edges of what integers can be.
  template <typename T>
  std::vector<T> Words(size_t count) {
    std::vector<T> values(count);
    for (T& value : values) {
      value = static_cast<T>(random_());
      switch (random_() % 6) {
        case 0:
          value = static_cast<T>(random_() % 5) - 2;
          break;
        case 1:
          value = static_cast<T>(T{1} << random_() % (8 * sizeof(T)));
          break;
        case 2:
          value =
              std::numeric_limits<T>::max() / 2 + static_cast<T>(random_() % 3);
          break;
        case 3:
          value >>= random_() % (8 * sizeof(T));
          break;
        default:
          break;
      }
    }
    return values;
  }

  // Runs `kernel`, whose threads make `each` results of 3 inputs, and compares
  // with `expected` bit by bit.
  template <typename T, typename Function>
  void Compare(const char* kernel, const std::vector<T>& in, size_t each,
               Function expected) {
    const size_t n = in.size() / 3;
    memory_.AddValues(kIn, in);
    memory_.AddValues(kOut, std::vector<T>(n * each));
    const absl::Status status =
        Run(kernel, static_cast<uint32_t>((n + 127) / 128), 128, kOut, kIn,
            static_cast<int>(n));
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<T> out = memory_.Values<T>(kOut);
    std::vector<T> wanted(each);
    for (size_t i = 0; i < n; ++i) {
      expected(in[3 * i], in[3 * i + 1], in[3 * i + 2], wanted.data());
      for (size_t k = 0; k < each; ++k) {
        const T got = out[i * each + k];
        if (IsNan(got) && IsNan(wanted[k])) continue;
        ASSERT_EQ(BitsOf(got), BitsOf(wanted[k]))
            << kernel << " result " << k << " of " << +in[3 * i] << ", "
            << +in[3 * i + 1] << ", " << +in[3 * i + 2] << ": " << +got
            << " instead of " << +wanted[k];
      }
    }
  }

  Memory memory_;
  Program program_;
  AccessLog log_;
  std::mt19937_64 random_{11};
};

TEST_P(SassMachineTest, IntegersAgreeBitByBit) {
  Compare<uint32_t>("integers", Words<uint32_t>(3 * 3000), kIntegerResults,
                    IntegerResults);
}

TEST_P(SassMachineTest, LongIntegersAgreeBitByBit) {
  Compare<uint64_t>("longs", Words<uint64_t>(3 * 3000), kLongResults,
                    LongResults);
}

TEST_P(SassMachineTest, FloatsAgreeBitByBit) {
  std::vector<float> in(3 * 3000);
  std::normal_distribution<float> normal(0, 100);
  for (float& value : in) {
    value = normal(random_);
    if (random_() % 4 == 0) {
      // Any exponent; also zeros, infinities and the like.
      value = std::bit_cast<float>(static_cast<uint32_t>(random_()));
      // The C library treats signalling ones in a way of its own.
      if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
    }
    if (random_() % 9 == 0) value = static_cast<float>(random_() % 3) - 1;
  }
  Compare<float>("floats", in, kFloatResults, FloatResults);
}

TEST_P(SassMachineTest, DoublesAgreeBitByBit) {
  std::vector<double> in(3 * 2000);
  std::normal_distribution<double> normal(0, 100);
  for (double& value : in) {
    value = normal(random_);
    if (random_() % 4 == 0) value = std::ldexp(value, 40);
  }
  Compare<double>("doubles", in, kDoubleResults, DoubleResults);
}

TEST_P(SassMachineTest, HalvesAgreeBitByBit) {
  constexpr size_t kCount = 4000;
  std::vector<uint16_t> in(3 * kCount);
  for (uint16_t& value : in) {
    // Finite ones.
    do {
      value = static_cast<uint16_t>(random_());
    } while ((value & 0x7c00) == 0x7c00);
    if (random_() % 2 == 0) {
      value = FloatToHalf(static_cast<float>(value) / 7e3f);
    }
  }
  memory_.AddValues(kIn, in);
  memory_.AddValues(kOut, std::vector<uint16_t>(6 * kCount));
  memory_.AddValues(kMore, std::vector<float>(kCount));
  const absl::Status status = Run("halves", kCount / 100, 100, kOut, kIn, kMore,
                                  static_cast<int>(kCount));
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<uint16_t> out = memory_.Values<uint16_t>(kOut);
  const std::vector<float> wide = memory_.Values<float>(kMore);
  for (size_t i = 0; i < kCount; ++i) {
    const double a = HalfToFloat(in[3 * i]);
    const double b = HalfToFloat(in[3 * i + 1]);
    const double c = HalfToFloat(in[3 * i + 2]);
    const uint16_t wanted[] = {
        DoubleToHalf(a + b),
        DoubleToHalf(a * b),
        DoubleToHalf(a * b + c),
        DoubleToHalf(c - b),
        a > b ? in[3 * i + 2] : in[3 * i + 1],
        FloatToHalf(static_cast<float>(a) * 1.001f),
    };
    for (size_t k = 0; k < 6; ++k) {
      ASSERT_EQ(out[6 * i + k], wanted[k])
          << k << " of " << a << ", " << b << ", " << c;
    }
    ASSERT_EQ(wide[i], static_cast<float>(c));
  }
}

TEST_P(SassMachineTest, LanesTellOneAnother) {
  std::vector<int> in(33);
  for (int& value : in) value = static_cast<int>(random_() % 41) - 20;
  memory_.AddValues(kIn, in);
  memory_.AddValues(kOut, std::vector<int>(32 * 12));
  const absl::Status status = Run("warps", 1, 32, kOut, kIn);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<int> out = memory_.Values<int>(kOut);
  uint32_t positive = 0;
  int sum = 0;
  int exclusive = 0;
  int odd_positive = 0;
  for (int i = 0; i < 32; ++i) {
    const int v = in[static_cast<size_t>(i)];
    positive |= (v > 0 ? 1u : 0u) << i;
    odd_positive += (v & 1) != 0 && v > 0 ? 1 : 0;
    sum += v;
    exclusive ^= v;
  }
  const bool any = std::count(in.begin(), in.end() - 1, in[32]) != 0;
  for (int i = 0; i < 32; ++i) {
    const auto at = [&](int lane) { return in[static_cast<size_t>(lane)]; };
    const int* mine = &out[static_cast<size_t>(i) * 12];
    EXPECT_EQ(mine[0], at(i ^ 5));
    EXPECT_EQ(mine[1], at(i < 3 ? i : i - 3));
    EXPECT_EQ(mine[2], at(i % 16 + 7 < 16 ? i + 7 : i));
    EXPECT_EQ(mine[3], at((i & 24) | (at(i) & 7)));
    EXPECT_EQ(static_cast<uint32_t>(mine[4]), positive);
    uint32_t same = 0;
    for (int k = 0; k < 32; ++k) {
      same |= ((at(k) & 3) == (at(i) & 3) ? 1u : 0u) << k;
    }
    EXPECT_EQ(static_cast<uint32_t>(mine[5]), same);
    EXPECT_EQ(mine[6], sum);
    EXPECT_EQ(mine[7], *std::min_element(in.begin(), in.end() - 1));
    uint32_t most = 0;
    for (int k = 0; k < 32; ++k) {
      most = std::max(most, static_cast<uint32_t>(at(k)));
    }
    EXPECT_EQ(static_cast<uint32_t>(mine[8]), most);
    EXPECT_EQ(mine[9], 2 + (any ? 1 : 0));
    EXPECT_EQ(mine[10], (at(i) & 1) != 0 ? odd_positive : 0);
    EXPECT_EQ(mine[11], exclusive);
  }
}

TEST_P(SassMachineTest, ThreadsOfABlockWaitForOneAnother) {
  for (const uint32_t threads : {1u, 31u, 33u, 100u, 256u}) {
    Memory fresh;
    std::swap(memory_, fresh);
    const size_t n = 3 * threads;
    std::vector<int> in(n);
    for (int& value : in) value = static_cast<int>(random_() % 101) - 50;
    memory_.AddValues(kIn, in);
    memory_.AddValues(kOut, std::vector<int>(6 * n));
    memory_.AddValues(kMore, std::vector<uint64_t>(3));
    const absl::Status status = Run("blocks", 3, threads, kOut, kIn, kMore);
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<int> out = memory_.Values<int>(kOut);
    const std::vector<uint64_t> totals = memory_.Values<uint64_t>(kMore);
    for (size_t block = 0; block < 3; ++block) {
      std::vector<int> sums;
      int odd = 0;
      uint64_t total = 0;
      for (size_t t = 0; t < threads; ++t) {
        const int v = in[block * threads + t];
        sums.push_back(v + (t == 0 ? 0 : sums.back()));
        odd += v & 1;
        total += static_cast<uint64_t>(v & 0xff) << 30;
      }
      const bool any = std::count(sums.begin(), sums.end(), in[0]) != 0;
      const auto even = std::count_if(sums.begin(), sums.end(),
                                      [](int sum) { return (sum & 1) == 0; });
      EXPECT_EQ(totals[block], total);
      for (size_t t = 0; t < threads; ++t) {
        const int* mine = &out[(block * threads + t) * 6];
        ASSERT_EQ(mine[0], sums[t]);
        ASSERT_EQ(mine[1], odd);
        ASSERT_EQ(mine[2], any ? 1 : 0);
        ASSERT_EQ(mine[3], 1);
        ASSERT_EQ(mine[4], even);
        ASSERT_EQ(mine[5], static_cast<int>(threads));
      }
    }
  }
}

TEST_P(SassMachineTest, LogsWhatWasTouchedAndRefusesWhatIsOutside) {
  memory_.AddValues(kOut, std::vector<int>(4));
  ASSERT_TRUE(Run("out_of_bounds", 1, 1, kOut, 3).ok());
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[0].address, kOut);
  EXPECT_EQ(log_[1].address, kOut + 12);
  for (const LoggedAccess& access : log_) {
    EXPECT_EQ(access.bytes, 4u);
    EXPECT_EQ(access.mode, AccessMode::kWrite);
    EXPECT_EQ(access.instruction % 16, 0u);
  }
  const absl::Status status = Run("out_of_bounds", 1, 1, kOut, 4);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  const std::string message(status.message().data(), status.message().size());
  EXPECT_NE(message.find("STG"), std::string::npos) << message;
  EXPECT_NE(message.find("instruction at 0x"), std::string::npos) << message;
}

TEST_P(SassMachineTest, NamesWhatItDoesNotKnow) {
  memory_.AddValues(kOut, std::vector<float>(32));
  absl::Status status = Run("tensor_cores", 1, 32, kOut, 1, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_NE(std::string(status.message().data(), status.message().size())
                .find("HMMA"),
            std::string::npos)
      << status;
  status = Run("no_such_kernel", 1, 32);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  status = Run("tensor_cores", 1, 2048, kOut, 1, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

TEST_P(SassMachineTest, StopsAnEndlessLoop) {
  memory_.AddValues(kOut, std::vector<int>(1));
  log_.clear();
  sass_machine::Launch launch;
  launch.kernel = "endless";
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &kOut, 8);
  const absl::Status status = sass_machine::Run(
      program_, launch, &memory_, nullptr, {.max_instructions = 100000});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

INSTANTIATE_TEST_SUITE_P(Chips, SassMachineTest,
                         testing::Values("machine.sm_80.cubin",
                                         "machine.sm_90.cubin"),
                         [](const auto& info) {
                           return std::string(info.param).substr(8, 5);
                         });

}  // namespace
}  // namespace heddle::sass_machine
