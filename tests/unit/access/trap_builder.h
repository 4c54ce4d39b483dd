// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_TRAP_BUILDER_H_
#define HEDDLE_TESTS_UNIT_ACCESS_TRAP_BUILDER_H_

// What the makers of launches have in common. Internal to trap_cases.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/access/trap_cases.h"

namespace heddle::access {

// A number that is not negative as a size or an index.
constexpr size_t Size(int64_t number) { return static_cast<size_t>(number); }

class TrapBuilder {
 public:
  TrapBuilder(const char* kernel, std::mt19937_64& random) : random_(random) {
    case_.kernel = kernel;
  }

  // From `low` to `high`, both included.
  int Int(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random_);
  }
  bool Coin() { return Int(0, 1) != 0; }
  // Threads of a block: any number, often one of whole warps.
  int Threads(int most) {
    return Coin() ? 32 * Int(1, most / 32) : Int(1, most);
  }

  std::vector<float> Floats(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(Int(-64, 64)) / 16;
    return values;
  }
  template <typename T>
  std::vector<T> Ints(size_t count, int low, int high) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(Int(low, high));
    return values;
  }

  // A buffer somewhere; returns its address.
  template <typename T>
  uint64_t Buffer(const std::vector<T>& values) {
    TrapBuffer buffer;
    buffer.address = Place(values.size() * sizeof(T));
    buffer.content = Bytes(values);
    case_.buffers.push_back(buffer);
    return buffer.address;
  }

  template <typename T>
  void Param(T value) {
    std::vector<uint8_t>& params = case_.params;
    params.resize((params.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const size_t at = params.size();
    params.resize(at + sizeof(T));
    std::memcpy(&params[at], &value, sizeof(T));
  }

  void Launch(std::array<int, 3> grid, std::array<int, 3> block) {
    for (size_t i = 0; i < 3; ++i) {
      case_.grid[i] = static_cast<uint32_t>(grid[i]);
      case_.block[i] = static_cast<uint32_t>(block[i]);
    }
  }
  // Enough blocks for `count` threads, sometimes more.
  int LaunchFor(int count, int threads) {
    const int blocks = (count + threads - 1) / threads + Int(0, 1);
    Launch({std::max(blocks, 1), 1, 1}, {threads, 1, 1});
    return std::max(blocks, 1);
  }

  template <typename T>
  void Expect(uint64_t address, const std::vector<T>& values) {
    case_.expected.push_back({address, Bytes(values), false});
  }
  void ExpectClose(uint64_t address, const std::vector<float>& values) {
    case_.expected.push_back({address, Bytes(values), true});
  }

  TrapCase Done() { return std::move(case_); }
  std::mt19937_64& random() { return random_; }

 private:
  template <typename T>
  static std::vector<uint8_t> Bytes(const std::vector<T>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    return bytes;
  }
  // Sometimes right behind the one before, sometimes far away.
  uint64_t Place(uint64_t size) {
    const uint64_t gap =
        Coin() ? 0 : uint64_t{1} << static_cast<unsigned>(Int(8, 33));
    const uint64_t address = next_ + gap;
    next_ = address + (size + 255) / 256 * 256;
    return address;
  }

  std::mt19937_64& random_;
  TrapCase case_;
  uint64_t next_ = 0x7f1000000000;
};

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_TRAP_BUILDER_H_
