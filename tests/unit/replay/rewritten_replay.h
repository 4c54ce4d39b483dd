// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_REPLAY_REWRITTEN_REPLAY_H_
#define HEDDLE_TESTS_UNIT_REPLAY_REWRITTEN_REPLAY_H_

// A program of a few kernels, recorded in a test only, to be replayed with its
// graph rewritten.

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "runtime/replay/session.h"
#include "runtime/replay/verifier.h"
#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {

inline constexpr uint64_t kA = 0x650000000000;
inline constexpr uint64_t kB = kA + 0x1000;
inline constexpr uint64_t kC = kA + 0x2000;
inline constexpr uint64_t kD = kA + 0x3000;
inline constexpr uint32_t kN = 100;
inline constexpr uint64_t kStream1 = 0x55;
inline constexpr uint64_t kStream2 = 0x66;
// A step of kernels, set up for rewriting.
class Replay {
 public:
  Replay() {
    trace_.Alloc(kA, 4 * kN);
    trace_.Alloc(kB, 4 * kN);
    trace_.Alloc(kC, 4 * kN);
    trace_.Alloc(kD, 4 * kN);
    trace_.Stream(kStream1, CU_STREAM_NON_BLOCKING);
    trace_.Stream(kStream2, CU_STREAM_NON_BLOCKING);
  }

  void UseImage(const std::vector<uint8_t>& image, int major = 9) {
    trace_.Image(image, fb::ImageKind::kCubin, major, 0);
    scale_ = trace_.Kernel("test_scale", {8, 4, 4});
    add_ = trace_.Kernel("test_add", {8, 8, 8, 4});
    from_table_ = trace_.Kernel("test_from_table", {8, 8, 4});
  }
  void Start() {
    trace_.Begin();
    std::vector<TestTrace::Range> ranges;
    for (const uint64_t address : {kA, kB, kC, kD}) {
      std::vector<float> values(kN);
      for (uint32_t i = 0; i < kN; ++i) {
        values[i] = 1 + 0.01F * static_cast<float>(i + address % 97);
      }
      ranges.push_back({address, PackVector(values)});
    }
    trace_.Snapshot(fb::SnapshotWhen::kStepBegin, ranges);
  }
  void Scale(uint64_t x, float factor, uint64_t stream = kStream1) {
    trace_.Launch(scale_, stream, Pack(x, factor, kN), 4);
  }
  void Add(uint64_t out, uint64_t a, uint64_t b, uint64_t stream = kStream1) {
    trace_.Launch(add_, stream, Pack(out, a, b, kN, uint32_t{0}), 4);
  }
  // A kernel that uses a variable, in images that have one.
  void FromTable(uint64_t out, uint64_t from) {
    trace_.Launch(from_table_, kStream1, Pack(out, from, uint32_t{16}), 1);
  }
  // The program has asked where the variable is.
  void KnowTable() {
    fb::GlobalT global;
    global.module_id = 1;
    global.name = "table";
    global.address = 0x660000000000;
    global.size = 64;
    trace_.Add(global);
  }
  // What follows in `to` comes after what is in `from`.
  void Order(uint64_t from, uint64_t to) {
    const uint64_t event = ++events_;
    trace_.Event(fb::EventOp::kRecord, event, from);
    trace_.Event(fb::EventOp::kWait, event, to);
  }
  // Some kernels that write `out` and read `in`.
  void RandomWork(std::mt19937& random, uint64_t out, uint64_t in,
                  uint64_t stream) {
    for (uint32_t i = 0, n = 1 + random() % 4; i < n; ++i) {
      if (random() % 2 == 0) {
        Scale(out, 0.75F + 0.5F * static_cast<float>(random() % 2), stream);
      } else {
        Add(out, out, in, stream);
      }
    }
  }

  absl::Status Open(const device::Driver& driver) {
    trace_.End();
    reader_ = trace_.Read();
    auto program = BuildProgram(*reader_, BoundsOf(*reader_));
    if (!program.ok()) return program.status();
    program_ = *std::move(program);
    auto context = device::ScopedContext::Create(driver, 0);
    if (!context.ok()) return context.status();
    context_ = *std::move(context);
    auto session = Session::Create(driver, *context_, *reader_, program_,
                                   nullptr, {.rewritable = true});
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    return absl::OkStatus();
  }

  // What verification says of the form; checks that the plain graph passes
  // unless an edge is missing.
  FormVerdict Judge(RewrittenExecutor& form, int runs,
                    int64_t drop_dependency = -1) {
    VerifyOptions options;
    options.runs = runs;
    options.inputs = 1;
    options.graph.drop_dependency = drop_dependency;
    options.others = {form.executor.get()};
    const auto result = Verify(*session_, options);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    const InputVerdict& input = result->inputs[0];
    EXPECT_EQ(input.forms.size(), 2U);
    EXPECT_EQ(result->passed, input.verdict() != Verdict::kDifferent);
    if (drop_dependency < 0) {
      EXPECT_EQ(input.forms[0].verdict, Verdict::kIdentical);
    }
    return input.forms[1];
  }

  Session& session() { return *session_; }
  const Program& program() const { return program_; }

 private:
  TestTrace trace_;
  uint32_t scale_ = 0;
  uint32_t add_ = 0;
  uint32_t from_table_ = 0;
  uint64_t events_ = 0;
  std::unique_ptr<trace::Reader> reader_;
  Program program_;
  std::unique_ptr<device::ScopedContext> context_;
  std::unique_ptr<Session> session_;  // before what it refers to
};

}  // namespace heddle::replay

#endif  // HEDDLE_TESTS_UNIT_REPLAY_REWRITTEN_REPLAY_H_
