// SPDX-License-Identifier: Apache-2.0
// BuildDependencies against an oracle that looks at all pairs of operations and
// all bytes, one by one.

#include "runtime/plan/dependencies.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/plan/synthetic_effects.h"

namespace heddle::plan {
namespace {

using access::Extent;
using access::ExtentSet;
using Random = std::mt19937;

uint32_t Below(Random& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

constexpr uint32_t kBytes = 64;  // of memory, and most operations

// An operation over 64 bytes of memory: bit i is byte i.
struct BitEffects {
  uint64_t reads = 0;
  uint64_t writes = 0;
  bool reads_anything = false;
  bool writes_anything = false;
  bool ordering_point = false;

  bool touches() const {
    return reads != 0 || writes != 0 || reads_anything || writes_anything;
  }
  bool none() const { return !touches() && !ordering_point; }
};

// Where the bytes are: byte i at base + i * scale, `scale` bytes of it.
struct Layout {
  uint64_t base = 0x7f0000000000;
  uint64_t scale = 1;
};

constexpr Layout kLayouts[] = {{},
                               {0, 1},
                               {~uint64_t{0} - (kBytes - 1), 1},
                               {0x7f0000000000, 4096},
                               {uint64_t{1} << 63, uint64_t{1} << 57}};

ExtentSet ToExtents(uint64_t bits, const Layout& layout) {
  ExtentSet set;
  for (uint32_t i = 0; i < kBytes;) {
    if ((bits >> i & 1) == 0) {
      ++i;
      continue;
    }
    uint32_t end = i;
    while (end < kBytes && (bits >> end & 1) != 0) ++end;
    set.Append({layout.base + i * layout.scale, (end - i) * layout.scale});
    i = end;
  }
  return set;
}

Effects ToEffects(const BitEffects& bits, const Layout& layout) {
  return {.reads = ToExtents(bits.reads, layout),
          .writes = ToExtents(bits.writes, layout),
          .reads_anything = bits.reads_anything,
          .writes_anything = bits.writes_anything,
          .ordering_point = bits.ordering_point};
}

void AddReason(Hazard hazard, uint64_t bits, const Layout& layout,
               std::vector<Reason>& reasons) {
  if (bits == 0) return;
  const ExtentSet set = ToExtents(bits, layout);
  reasons.push_back({hazard, set.extents()[0], set.bytes()});
}

// The rules, as they are written down.
std::vector<Reason> OracleReasons(const BitEffects& a, const BitEffects& b,
                                  const Layout& layout) {
  std::vector<Reason> reasons;
  AddReason(Hazard::kReadAfterWrite, a.writes & b.reads, layout, reasons);
  AddReason(Hazard::kWriteAfterRead, a.reads & b.writes, layout, reasons);
  AddReason(Hazard::kWriteAfterWrite, a.writes & b.writes, layout, reasons);
  const bool a_writes = a.writes != 0 || a.writes_anything;
  const bool b_writes = b.writes != 0 || b.writes_anything;
  if ((a.writes_anything && b.touches()) ||
      (b.writes_anything && a.touches()) || (a.reads_anything && b_writes) ||
      (b.reads_anything && a_writes)) {
    reasons.push_back({Hazard::kUnknownAccess, {}, 0});
  }
  if (!a.none() && !b.none() && (a.ordering_point || b.ordering_point)) {
    reasons.push_back({Hazard::kOrderingPoint, {}, 0});
  }
  return reasons;
}

// Per operation, bit i: operation i comes before it. `in` by operation, the
// same for direct edges.
std::vector<uint64_t> Closure(const std::vector<uint64_t>& in) {
  std::vector<uint64_t> before(in.size());
  for (size_t op = 0; op < in.size(); ++op) {
    for (size_t from = 0; from < op; ++from) {
      if ((in[op] >> from & 1) == 0) continue;
      before[op] |= before[from] | uint64_t{1} << from;
    }
  }
  return before;
}

std::string Describe(const std::vector<BitEffects>& program) {
  std::string text;
  for (const BitEffects& op : program) {
    absl::StrAppend(&text, "{0x", absl::Hex(op.reads), ", 0x",
                    absl::Hex(op.writes), ", ", op.reads_anything, ", ",
                    op.writes_anything, ", ", op.ordering_point, "}, ");
  }
  return text;
}

// What is wrong with the dependencies of `program`; empty if nothing is.
std::string Check(const std::vector<BitEffects>& program,
                  const Layout& layout) {
  std::vector<Effects> effects;
  effects.reserve(program.size());
  for (const BitEffects& op : program) {
    effects.push_back(ToEffects(op, layout));
  }
  const Dependencies built = BuildDependencies(effects);

  std::vector<uint64_t> conflicts(program.size());
  for (size_t b = 0; b < program.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (!OracleReasons(program[a], program[b], layout).empty()) {
        conflicts[b] |= uint64_t{1} << a;
      }
    }
  }
  std::vector<uint64_t> in(program.size());
  for (size_t i = 0; i < built.edges.size(); ++i) {
    const DependencyEdge& edge = built.edges[i];
    if (edge.from >= edge.to || edge.to >= program.size()) {
      return "an edge that leads backwards or out of the program";
    }
    if (i > 0 &&
        std::make_pair(built.edges[i - 1].to, built.edges[i - 1].from) >=
            std::make_pair(edge.to, edge.from)) {
      return "edges out of order";
    }
    in[edge.to] |= uint64_t{1} << edge.from;
    if (edge.reasons !=
        OracleReasons(program[edge.from], program[edge.to], layout)) {
      return absl::StrCat("wrong reasons for ", edge.from, " to ", edge.to);
    }
  }
  const std::vector<uint64_t> closure = Closure(in);
  if (closure != Closure(conflicts)) return "another order";
  for (const DependencyEdge& edge : built.edges) {
    std::vector<uint64_t> without = in;
    without[edge.to] ^= uint64_t{1} << edge.from;
    if (Closure(without) == closure) {
      return absl::StrCat("the edge ", edge.from, " to ", edge.to,
                          " is not needed");
    }
  }
  return "";
}

struct ProgramMix {
  uint32_t max_operations = 8;
  uint32_t bytes = 8;      // of memory, at most 64
  uint32_t runs = 2;       // at most so many extents a side
  uint32_t longest = 4;    // bytes of an extent, at least 1
  uint32_t anything = 20;  // one side in so many
  uint32_t ordering = 30;  // one operation in so many
  uint32_t readers = 3;    // out of 4 operations only read
};

uint64_t RandomBits(Random& random, const ProgramMix& mix) {
  uint64_t bits = 0;
  for (uint32_t run = Below(random, mix.runs + 1); run > 0; --run) {
    const uint32_t begin = Below(random, mix.bytes);
    const uint32_t size = 1 + Below(random, mix.longest);
    for (uint32_t i = begin; i < mix.bytes && i < begin + size; ++i) {
      bits |= uint64_t{1} << i;
    }
  }
  return bits;
}

std::vector<BitEffects> RandomProgram(Random& random, const ProgramMix& mix) {
  std::vector<BitEffects> program(1 + Below(random, mix.max_operations));
  for (BitEffects& op : program) {
    op.reads = RandomBits(random, mix);
    if (Below(random, 4) >= mix.readers) op.writes = RandomBits(random, mix);
    op.reads_anything = mix.anything != 0 && Below(random, mix.anything) == 0;
    op.writes_anything =
        mix.anything != 0 && Below(random, 2 * mix.anything) == 0;
    op.ordering_point = mix.ordering != 0 && Below(random, mix.ordering) == 0;
  }
  return program;
}

void CheckRandom(uint32_t seed, int programs, const ProgramMix& mix) {
  Random random(seed);
  for (int i = 0; i < programs; ++i) {
    const std::vector<BitEffects> program = RandomProgram(random, mix);
    const Layout& layout = kLayouts[Below(random, std::size(kLayouts))];
    const std::string wrong = Check(program, layout);
    ASSERT_EQ(wrong, "") << "program " << i << ": " << Describe(program);
  }
}

TEST(DependenciesTest, AMillionSmallProgramsAreOrderedAsTheirBytesDemand) {
  CheckRandom(1, 400000, {.max_operations = 6, .readers = 1});
  CheckRandom(2, 300000, {.max_operations = 9, .bytes = 5, .readers = 2});
  CheckRandom(3, 200000,
              {.max_operations = 12,
               .bytes = 16,
               .longest = 3,
               .anything = 0,
               .ordering = 0,
               .readers = 2});
  CheckRandom(4, 100000,
              {.max_operations = 10,
               .bytes = 3,
               .runs = 1,
               .anything = 5,
               .ordering = 8,
               .readers = 2});
}

TEST(DependenciesTest, ManyParallelReadersAndWritersAreOrdered) {
  // Every byte is read, and every range written, by many that nothing orders.
  CheckRandom(5, 4000,
              {.max_operations = 64,
               .bytes = 64,
               .runs = 3,
               .longest = 2,
               .anything = 200,
               .ordering = 0,
               .readers = 3});
  CheckRandom(6, 4000,
              {.max_operations = 64,
               .bytes = 64,
               .runs = 1,
               .longest = 64,
               .anything = 0,
               .ordering = 100,
               .readers = 3});
  CheckRandom(7, 4000,
              {.max_operations = 64,
               .bytes = 64,
               .runs = 2,
               .longest = 1,
               .anything = 60,
               .ordering = 60,
               .readers = 1});
  CheckRandom(8, 4000,
              {.max_operations = 64,
               .bytes = 4,
               .runs = 1,
               .longest = 2,
               .anything = 0,
               .ordering = 0,
               .readers = 3});
}

// Small pieces of one arena, each by an operation of its own, and the arena as
// a whole, over and over.
TEST(DependenciesTest, PiecesAndTheWholeOfAnArenaAreOrdered) {
  Random random(9);
  for (int i = 0; i < 6000; ++i) {
    std::vector<BitEffects> program(64);
    const uint32_t whole_one_in = 2 + Below(random, 20);
    for (BitEffects& op : program) {
      const uint64_t piece = uint64_t{1} << Below(random, kBytes);
      const uint64_t bits =
          Below(random, whole_one_in) == 0 ? ~uint64_t{0} : piece;
      (Below(random, 2) == 0 ? op.reads : op.writes) = bits;
      if (Below(random, 6) == 0) op.reads |= 1;
      if (Below(random, 12) == 0) op.writes |= 1;
    }
    const std::string wrong =
        Check(program, kLayouts[Below(random, std::size(kLayouts))]);
    ASSERT_EQ(wrong, "") << "program " << i << ": " << Describe(program);
  }
}

// The same oracle over programs of more operations than bits of a word.
void CheckLong(const std::vector<Effects>& program) {
  constexpr size_t kMost = 1500;
  using Bits = std::bitset<kMost>;
  ASSERT_LE(program.size(), kMost);
  std::vector<Bits> before(program.size());
  std::vector<std::pair<uint32_t, uint32_t>> needed;
  for (uint32_t b = 0; b < program.size(); ++b) {
    Bits implied;
    std::vector<uint32_t> conflicts;
    for (uint32_t a = 0; a < b; ++a) {
      const auto meet = [](const ExtentSet& x, const ExtentSet& y) {
        for (const Extent& i : x.extents()) {
          for (const Extent& j : y.extents()) {
            if (i.address < j.end() && j.address < i.end()) return true;
          }
        }
        return false;
      };
      const Effects& x = program[a];
      const Effects& y = program[b];
      if (meet(x.writes, y.reads) || meet(x.reads, y.writes) ||
          meet(x.writes, y.writes) || x.writes_anything || y.writes_anything ||
          x.ordering_point || y.ordering_point) {
        conflicts.push_back(a);
        implied |= before[a];
      }
    }
    before[b] = implied;
    for (const uint32_t a : conflicts) {
      before[b].set(a);
      if (!implied[a]) needed.emplace_back(a, b);
    }
  }
  EXPECT_EQ(BuildDependencies(program).Pairs(), needed);
}

TEST(DependenciesTest, DecodeProgramsAreOrderedAsAllPairsOfTheirLaunchesAre) {
  CheckLong(SyntheticDecode({.layers = 3}, 1500));
  CheckLong(SyntheticDecode(
      {.layers = 2, .unknown_one_in = 211, .read_all_one_in = 23}, 1200));
  CheckLong(SyntheticDecode(
      {.layers = 4, .ordering_one_in = 97, .independent_one_in = 3}, 1200));
}

TEST(DependenciesTest, OperationsThatTouchNothingHaveNoEdges) {
  std::vector<Effects> program(4);
  program[0].writes = ExtentSet({{0x1000, 16}});
  program[1].ordering_point = true;
  // Empty extents are no bytes.
  program[2].reads = ExtentSet({{0x1000, 0}});
  program[3].reads = ExtentSet({{0x1008, 1}});
  const Dependencies built = BuildDependencies(program);
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{0, 1}, {1, 3}};
  EXPECT_EQ(built.Pairs(), expected);
  EXPECT_TRUE(BuildDependencies({}).edges.empty());
}

TEST(DependenciesTest, NeighboursThatDoNotOverlapAreNotOrdered) {
  std::vector<Effects> program(3);
  program[0].writes = ExtentSet({{0x1000, 16}});
  program[1].writes = ExtentSet({{0x1010, 16}});
  program[2].reads = ExtentSet({{0x100f, 2}});
  const Dependencies built = BuildDependencies(program);
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{0, 2}, {1, 2}};
  ASSERT_EQ(built.Pairs(), expected);
  EXPECT_EQ(built.edges[0].reasons,
            (std::vector<Reason>{{Hazard::kReadAfterWrite, {0x100f, 1}, 1}}));
  EXPECT_EQ(built.edges[1].reasons,
            (std::vector<Reason>{{Hazard::kReadAfterWrite, {0x1010, 1}, 1}}));
}

TEST(DependenciesTest, TheLastByteOfAllAddressesIsOrdered) {
  constexpr uint64_t kLast = ~uint64_t{0};
  std::vector<Effects> program(3);
  program[0].writes = ExtentSet({{kLast - 4095, 4096}});
  program[1].reads = ExtentSet({{kLast, 1}});
  program[2].writes = ExtentSet({{0, kLast}});  // all but the last
  const Dependencies built = BuildDependencies(program);
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{0, 1}, {0, 2}};
  ASSERT_EQ(built.Pairs(), expected);
  EXPECT_EQ(built.edges[1].reasons,
            (std::vector<Reason>{
                {Hazard::kWriteAfterWrite, {kLast - 4095, 4095}, 4095}}));
}

TEST(DependenciesTest, AnExtentThatLeavesTheAddressSpaceEndsThere) {
  constexpr uint64_t kLast = ~uint64_t{0};
  std::vector<Effects> program(3);
  program[0].writes = ExtentSet({{kLast - 15, 4096}});
  program[1].reads = ExtentSet({{0, 8}});
  program[2].reads = ExtentSet({{kLast - 7, 64}});
  const Dependencies built = BuildDependencies(program);
  ASSERT_EQ(built.edges.size(), 1u);
  EXPECT_EQ(built.edges[0].to, 2u);
  EXPECT_EQ(
      built.edges[0].reasons,
      (std::vector<Reason>{{Hazard::kReadAfterWrite, {kLast - 7, 8}, 8}}));
}

TEST(DependenciesTest, AtomicsReadAndWriteAndUnknownSidesAreAnything) {
  access::AccessSet set;
  set.accesses = {{access::Mode::kRead, access::Provenance::kProved,
                   ExtentSet({{0x1000, 8}}), ""},
                  {access::Mode::kAtomic, access::Provenance::kProved,
                   ExtentSet({{0x2000, 4}}), ""},
                  {access::Mode::kWrite, access::Provenance::kDeclared,
                   ExtentSet({{0x3000, 2}}), ""}};
  set.unknown_reads = "a pointer from memory";
  const Effects effects = EffectsOf(set);
  EXPECT_EQ(effects.reads.extents(),
            (std::vector<Extent>{{0x1000, 8}, {0x2000, 4}}));
  EXPECT_EQ(effects.writes.extents(),
            (std::vector<Extent>{{0x2000, 4}, {0x3000, 2}}));
  EXPECT_TRUE(effects.reads_anything);
  EXPECT_FALSE(effects.writes_anything);
  EXPECT_FALSE(effects.ordering_point);
}

// n log n, or the second program, which is four times as long, takes more than
// five times as many steps.
void ExpectNearlyLinear(const DecodeShape& shape, uint64_t most_per_operation) {
  constexpr uint32_t kOperations = 8000;
  const uint64_t work =
      BuildDependencies(SyntheticDecode(shape, kOperations)).work;
  const uint64_t more =
      BuildDependencies(SyntheticDecode(shape, 4 * kOperations)).work;
  EXPECT_LT(more, 5 * work);
  EXPECT_LT(work, most_per_operation * kOperations);
}

TEST(DependenciesTest, TheWorkGrowsWithTheLengthOfTheProgramNoFaster) {
  ExpectNearlyLinear({}, 2000);
  ExpectNearlyLinear({.unknown_one_in = 50}, 2000);
  ExpectNearlyLinear({.read_all_one_in = 3}, 2000);
  ExpectNearlyLinear({.independent_one_in = 4}, 2000);
  // 10,000 pieces at a time, so that one in 1,000 is ten an operation.
  ExpectNearlyLinear({.read_all_one_in = 20, .scattered_one_in = 1000}, 6000);
}

// A buffer that is written in 10,000 pieces, each by an operation that depends
// on no other, and then read as a whole again and again.
TEST(DependenciesTest, ReadingTenThousandPiecesAgainIsNotTenThousandSteps) {
  constexpr uint64_t kPieces = 10000;
  constexpr uint32_t kReaders = 10000;
  std::vector<Effects> program;
  for (uint64_t i = 0; i < kPieces; ++i) {
    program.push_back({.writes = ExtentSet({{0x10000 + i * 64, 64}})});
  }
  for (uint32_t i = 0; i < kReaders; ++i) {
    program.push_back({.reads = ExtentSet({{0x10000, kPieces * 64}}),
                       .writes = ExtentSet({{0x1000, 64}})});
  }
  const Dependencies built = BuildDependencies(program);
  EXPECT_EQ(built.edges.size(), kPieces + kReaders - 1);
  EXPECT_LT(built.work, 1000 * (kPieces + kReaders));
}

}  // namespace
}  // namespace heddle::plan
