// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_REPLAY_OBSERVE_FIXTURE_H_
#define HEDDLE_TESTS_UNIT_REPLAY_OBSERVE_FIXTURE_H_

// A step of observe_kernels.cu on the host device, predicted and observed.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "runtime/replay/observe.h"
#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {

inline constexpr uint64_t kA = 0x610000000000;
inline constexpr uint64_t kB = kA + 0x1000;
inline constexpr uint64_t kC = kA + 0x40000000;
inline constexpr uint64_t kFar = kA + 0x80000000;  // nothing is predicted there
inline constexpr uint32_t kN = 100;
inline constexpr uint64_t kBytes = kN * sizeof(uint32_t);
inline constexpr uint64_t kFarBytes = 1 << 20;
inline constexpr uint32_t kGrid = (kN + 31) / 32;

inline const device::Driver& HostDevice() {
  static const device::Driver* const driver = [] {
    setenv("HEDDLE_HOSTDEVICE_KERNELS", HEDDLE_OBSERVE_HOST_KERNELS, 1);
    auto loaded = device::Driver::Load(HEDDLE_HOSTDEVICE_LIBRARY);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new device::Driver(*std::move(loaded));
  }();
  return *driver;
}

inline std::vector<uint8_t> Image() {
  std::ifstream file(HEDDLE_OBSERVE_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Random, no byte of which is 0 or 255.
inline std::vector<uint8_t> Bytes(uint64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = 1 + random() % 254;
  return bytes;
}

inline ExtentSet Range(uint64_t address, uint64_t size) {
  return ExtentSet({Extent{address, size}});
}

class ObserveTest : public testing::Test {
 protected:
  ObserveTest() {
    trace_.Image(Image(), fb::ImageKind::kCubin, 9, 0);
    copy_ = trace_.Kernel("honest_copy", {8, 8, 4});
    masked_ = trace_.Kernel("masked_copy", {8, 8, 8, 4});
    add_ = trace_.Kernel("add_in_place", {8, 4, 4});
    spill_ = trace_.Kernel("spilling_copy", {8, 8, 4, 8, 4, 4});
    peek_ = trace_.Kernel("peeking_copy", {8, 8, 4, 8});
    unsteady_ = trace_.Kernel("unsteady", {8, 4});
    scatter_ = trace_.Kernel("scatter", {8, 8, 4});
    trace_.Alloc(kA, kBytes);
    trace_.Alloc(kB, kBytes);
    trace_.Alloc(kC, 1 << 16);
    trace_.Alloc(kFar, kFarBytes);
  }

  void Start(const std::vector<uint8_t>& b = Bytes(kBytes, 2)) {
    trace_.Begin();
    trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                    {{kA, Bytes(kBytes, 1)},
                     {kB, b},
                     {kC, Bytes(1 << 16, 3)},
                     {kFar, Bytes(kFarBytes, 4)}});
  }
  void Copy(uint64_t out, uint64_t in) {
    trace_.Launch(copy_, 0, Pack(out, in, kN), kGrid);
  }
  void Spill(uint64_t out, uint64_t in, uint64_t where, uint32_t count,
             uint32_t value) {
    trace_.Launch(spill_, 0,
                  Pack(out, in, kN, uint32_t{0}, where, count, value), kGrid);
  }
  // One block: several would race for what they peek at.
  void Peek(uint64_t out, uint64_t in, uint64_t where) {
    trace_.Launch(peek_, 0, Pack(out, in, 32u, uint32_t{0}, where));
  }

  // Ends the trace, predicts, and observes.
  void Run(const ObserveOptions& options = {}) {
    if (session_ == nullptr) {
      trace_.End();
      reader_ = trace_.Read();
      auto program = BuildProgram(*reader_, BoundsOf(*reader_));
      ASSERT_TRUE(program.ok()) << program.status();
      program_ = *std::move(program);
      auto predicted = FindAccesses(*reader_, program_);
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      predicted_ = *std::move(predicted);
      auto context = device::ScopedContext::Create(HostDevice(), 0);
      ASSERT_TRUE(context.ok()) << context.status();
      context_ = *std::move(context);
      auto session =
          Session::Create(HostDevice(), *context_, *reader_, program_, nullptr);
      ASSERT_TRUE(session.ok()) << session.status();
      session_ = *std::move(session);
    }
    auto seen = Observe(*session_, predicted_, options);
    ASSERT_TRUE(seen.ok()) << seen.status();
    seen_ = *std::move(seen);
  }
  const Observation& At(size_t i) const { return seen_.operations.at(i); }

  TestTrace trace_;
  uint32_t copy_ = 0;
  uint32_t masked_ = 0;
  uint32_t add_ = 0;
  uint32_t spill_ = 0;
  uint32_t peek_ = 0;
  uint32_t unsteady_ = 0;
  uint32_t scatter_ = 0;
  std::unique_ptr<trace::Reader> reader_;
  Program program_;
  StepAccess predicted_;
  std::unique_ptr<device::ScopedContext> context_;
  std::unique_ptr<Session> session_;
  StepObservation seen_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_TESTS_UNIT_REPLAY_OBSERVE_FIXTURE_H_
