// SPDX-License-Identifier: Apache-2.0
//
// Observed writes against predicted ones, on the host device: the prediction
// comes from the machine code, what happens from bodies that may do otherwise.

#include "runtime/replay/observe.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/replay/observe_fixture.h"

namespace heddle::replay {
namespace {

using access::Mode;
using access::Provenance;

TEST_F(ObserveTest, AnHonestKernelWritesWhatIsPredicted) {
  Start();
  Copy(kC, kA);
  Run();
  ASSERT_EQ(seen_.operations.size(), 1u);
  EXPECT_EQ(At(0).match, Match::kWithin);
  EXPECT_EQ(At(0).written, Range(kC, kBytes));
  EXPECT_EQ(At(0).inverted_bytes, kBytes);
  EXPECT_EQ(At(0).predicted_bytes, kBytes);
  EXPECT_TRUE(seen_.confirmed());
}

TEST_F(ObserveTest, WritesOfTheOldValuesAreSeen) {
  Start(Bytes(kBytes, 1));  // kB is what kA is
  Copy(kB, kA);
  Run();
  EXPECT_EQ(At(0).written, Range(kB, kBytes));
  EXPECT_EQ(At(0).match, Match::kWithin);
}

TEST_F(ObserveTest, UpdatesInPlaceAreSeenWhereTheyChangeSomething) {
  Start();
  trace_.Launch(add_, 0, Pack(kC, 0x01010101u, kN), kGrid);
  trace_.Launch(add_, 0, Pack(kC, 0u, kN), kGrid);
  Run();
  EXPECT_EQ(At(0).inverted_bytes, 0u);
  EXPECT_EQ(At(0).written, Range(kC, kBytes));
  EXPECT_TRUE(At(1).written.empty());
  EXPECT_TRUE(seen_.confirmed());
}

TEST_F(ObserveTest, EveryOperationStartsFromTheMemoryThatItReallyStartsFrom) {
  Start();
  trace_.Launch(add_, 0, Pack(kC, 1u, kN), kGrid);
  Copy(kB, kC);
  trace_.Launch(add_, 0, Pack(kB, ~0u, kN), kGrid);
  Copy(kA, kB);
  Run();
  EXPECT_TRUE(seen_.confirmed());
  // Afterwards the step begins anew.
  std::vector<uint8_t> now(kBytes);
  ASSERT_EQ(HostDevice().MemcpyDtoH(now.data(), kA, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(now, Bytes(kBytes, 1));
}

TEST_F(ObserveTest, AWriteOutsideThePredictionIsFoundToTheByte) {
  Start();
  Copy(kB, kA);
  Spill(kB, kA, kC + 4099, 7, 0);
  Spill(kB, kA, kFar + 5, 1, 0);  // in a block that nothing is predicted in
  Copy(kC, kA);
  Run();
  EXPECT_EQ(At(0).match, Match::kWithin);
  EXPECT_EQ(At(1).match, Match::kOutside);
  EXPECT_EQ(At(1).outside, Range(kC + 4099, 7));
  EXPECT_EQ(At(1).written.bytes(), kBytes + 7);
  EXPECT_EQ(At(2).match, Match::kOutside);
  EXPECT_EQ(At(2).outside, Range(kFar + 5, 1));
  EXPECT_EQ(At(3).match, Match::kWithin) << "others are not blamed";
  EXPECT_FALSE(seen_.confirmed());
}

TEST_F(ObserveTest, OldValuesOutsideThePredictionShowWhenAllIsInverted) {
  Start();
  Copy(kC + 4096, kA);               // the block is watched
  Spill(kC, kA, kC + 4096, 16, 17);  // and 17 is there when
  Spill(kC, kA, kC + 4096, 16, 17);  // this one writes it
  Run();
  EXPECT_EQ(At(1).match, Match::kOutside);
  EXPECT_EQ(At(2).match, Match::kWithin);
  Run({.invert_all = true});
  EXPECT_EQ(At(2).match, Match::kOutside);
  EXPECT_EQ(At(2).outside, Range(kC + 4096, 16));
}

TEST_F(ObserveTest, AKernelThatReadsItsTargetUnpredictedlyIsFound) {
  Start();
  Peek(kC, kA, kC + 31 * 4);
  Run();
  EXPECT_EQ(At(0).match, Match::kReads);
  EXPECT_FALSE(At(0).dependent.empty());
  EXPECT_TRUE(At(0).dependent.Minus(Range(kC, kBytes)).empty());
  EXPECT_FALSE(seen_.confirmed());
}

TEST_F(ObserveTest, AnUnpredictedReadElsewhereShowsWhenAllIsInverted) {
  Start();
  Peek(kC, kA, kFar);
  Run({.watch = Watch::kAll});
  EXPECT_EQ(At(0).match, Match::kWithin);
  Run({.watch = Watch::kAll, .invert_all = true});
  EXPECT_EQ(At(0).match, Match::kReads);
}

TEST_F(ObserveTest, AKernelThatDoesNotRepeatIsNotAccusedOfReading) {
  Start();
  trace_.Launch(unsteady_, 0, Pack(kC, kN), kGrid);
  Run();
  EXPECT_TRUE(At(0).unrepeatable);
  EXPECT_EQ(At(0).match, Match::kWithin);
  EXPECT_EQ(At(0).written, Range(kC, kBytes));
}

TEST_F(ObserveTest, CopiesAndFillsAreObservedToo) {
  Start();
  trace_.CopyIn(kC, Bytes(64, 9));
  trace_.Fill(kB, 7, 48);
  trace_.Fill(kB, 7, 48);  // old values
  fb::MemcpyT rows = trace_.CopyOf(fb::MemcpyKind::kDtoD, kC, kA, 8);
  rows.height = 4;
  rows.src_pitch = 16;
  rows.dst_pitch = 64;
  trace_.Add(rows);
  trace_.Add(trace_.CopyOf(fb::MemcpyKind::kDtoH, 0x5000, kB, 64));
  Run();
  ASSERT_EQ(seen_.operations.size(), 5u);
  EXPECT_EQ(At(0).written, Range(kC, 64));
  EXPECT_EQ(At(1).written, Range(kB, 48));
  EXPECT_EQ(At(2).written, Range(kB, 48));
  EXPECT_EQ(At(3).written,
            ExtentSet({{kC, 8}, {kC + 64, 8}, {kC + 128, 8}, {kC + 192, 8}}));
  EXPECT_TRUE(At(4).written.empty());
  EXPECT_TRUE(seen_.confirmed());
}

TEST_F(ObserveTest, WritesThatArePredictedForNobodyAreFoundWithTheirWriter) {
  Start();
  Copy(kB, kA);
  Spill(kB, kA, kFar + 4096, 8, 0);
  Copy(kB, kA);
  Run({.watch = Watch::kPredicted});
  EXPECT_EQ(At(1).match, Match::kWithin);
  ASSERT_EQ(seen_.unwatched.size(), 1u);
  EXPECT_EQ(seen_.unwatched[0], (Extent{kFar + 4096, 8}));
  EXPECT_EQ(seen_.unwatched_writers[0], 1);
  EXPECT_FALSE(seen_.confirmed());
  const StepAccess both = Combine(predicted_, seen_, false);
  EXPECT_EQ(both.operations[1].Writes().bytes(), kBytes + 8);
}

TEST_F(ObserveTest, TheFirstOperationsAloneCanBeObserved) {
  Start();
  Copy(kB, kA);
  Copy(kC, kA);
  Spill(kB, kA, kFar, 8, 0);
  Run({.limit = 2});
  EXPECT_EQ(seen_.operations.size(), 2u);
  EXPECT_TRUE(seen_.confirmed());
}

TEST_F(ObserveTest, WhatIsNotPredictedIsReported) {
  std::vector<uint64_t> list(kN);
  for (uint32_t i = 0; i < kN; ++i) list[i] = kB + 4 * (kN - 1 - i);
  list[3] = kFar + 64;
  trace_.Begin();
  trace_.Snapshot(
      fb::SnapshotWhen::kStepBegin,
      {{kA, Bytes(kBytes, 1)}, {kB, Bytes(kBytes, 2)}, {kC, PackVector(list)}});
  trace_.Launch(scatter_, 0, Pack(kC, kA, kN), kGrid);
  trace_.Launch(scatter_, 0, Pack(kC, kA, kN), kGrid);  // old values
  Run();
  ExtentSet expected = Range(kB, kBytes).Minus(Range(kB + 4 * (kN - 4), 4));
  expected.Add(Range(kFar + 64, 4));
  ASSERT_FALSE(predicted_.operations[0].writes_known());
  ASSERT_TRUE(predicted_.operations[0].reads_known());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(At(i).match, Match::kUnknown);
    EXPECT_EQ(At(i).written, expected);
    EXPECT_TRUE(At(i).complete);
  }
  EXPECT_TRUE(seen_.confirmed());

  // Seen writes are always in; the unknown goes only if asked.
  const StepAccess careful = Combine(predicted_, seen_, false);
  EXPECT_FALSE(careful.operations[0].writes_known());
  EXPECT_TRUE(expected.Minus(careful.operations[0].Writes()).empty());
  const StepAccess bold = Combine(predicted_, seen_, true);
  EXPECT_TRUE(bold.operations[0].writes_known());
  EXPECT_EQ(bold.operations[0].Writes(), expected);
  EXPECT_EQ(bold.operations[0].accesses.back().provenance,
            Provenance::kObserved);
  EXPECT_EQ(bold.operations[0].Reads(), predicted_.operations[0].Reads());
}

TEST_F(ObserveTest, CombinedSetsHoldWhatEitherSideSays) {
  Start();
  Copy(kB, kA);
  Spill(kB, kA, kC, 16, 0);
  Peek(kC, kA, kC);
  Run();
  const StepAccess both = Combine(predicted_, seen_, false);
  for (size_t i = 0; i < 3; ++i) {
    const ExtentSet writes = both.operations[i].Writes();
    EXPECT_TRUE(At(i).written.Minus(writes).empty());
    EXPECT_TRUE(predicted_.operations[i].Writes().Minus(writes).empty());
  }
  EXPECT_EQ(both.operations[0].accesses.size(),
            predicted_.operations[0].accesses.size());
  EXPECT_EQ(both.operations[1].accesses.back().bytes, Range(kC, 16));
  EXPECT_EQ(both.operations[1].accesses.back().mode, Mode::kWrite);
  EXPECT_TRUE(both.operations[1].reads_known());
  EXPECT_FALSE(both.operations[2].reads_known());
}

}  // namespace
}  // namespace heddle::replay
