// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/step_repeat.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::trace {
namespace {

using Operations = std::vector<Operation>;

// A kernel for each letter: upper and lower case differ in shape only. '.'
// is a copy; '!' makes the host wait before the next operation.
Operations FromText(const std::string& text) {
  Operations operations;
  bool wait = false;
  for (const char c : text) {
    if (c == '!') {
      wait = true;
      continue;
    }
    Operation operation;
    operation.record = operations.size();
    operation.shape = static_cast<uint64_t>(c);
    operation.kind = static_cast<uint64_t>(c >= 'a' ? c - 'a' + 'A' : c);
    operation.kernels = c == '.' ? 0 : 1;
    operation.time_ns = operations.size() * 1000;
    operation.after_wait = wait;
    wait = false;
    operations.push_back(operation);
  }
  return operations;
}

std::string Repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// The occurrences as text, for comparisons that can be read.
std::vector<std::string> UnitsOf(const std::string& text,
                                 const RepeatedUnit& unit) {
  std::string letters;
  for (const char c : text) {
    if (c != '!') letters += c;
  }
  std::vector<std::string> units;
  for (const uint64_t start : unit.starts) {
    units.push_back(letters.substr(start, unit.period));
  }
  return units;
}

std::vector<std::string> Find(const std::string& text, uint64_t period = 0,
                              std::vector<uint64_t> preferred = {}) {
  return UnitsOf(text, FindRepeatedUnit(FromText(text), preferred, period));
}

std::vector<std::string> Times(const std::string& unit, int times) {
  return std::vector<std::string>(times, unit);
}

TEST(StepRepeat, NothingRepeatsInASequenceOfDifferentOperations) {
  EXPECT_TRUE(Find("").empty());
  EXPECT_TRUE(Find("A").empty());
  EXPECT_TRUE(Find("ABCDEFGH").empty());
}

TEST(StepRepeat, TheStepWinsOverTheLayersInsideIt) {
  const std::string step = "E" + Repeat("LMN", 16) + "H";
  EXPECT_EQ(Find(Repeat(step, 5)), Times(step, 5));
}

TEST(StepRepeat, TwoStepsOfManyLayersAreStillSteps) {
  const std::string step = "E" + Repeat("LMN", 16) + "H";
  EXPECT_EQ(Find(Repeat(step, 2)), Times(step, 2));
}

TEST(StepRepeat, APrologueAndAnEpilogueAreLeftOut) {
  const std::string step = "E" + Repeat("LM", 4) + "H";
  EXPECT_EQ(Find("PQRSPPQ" + Repeat(step, 6) + "XYZ"), Times(step, 6));
}

TEST(StepRepeat, StepsEndWhereTheRepetitionEndsEvenIfThePrologueEndsAlike) {
  const std::string step = "ELMLMH";
  // The prefill ends with the last kernels of a step.
  EXPECT_EQ(Find("PQLMH" + Repeat(step, 4)), Times(step, 4));
}

TEST(StepRepeat, LoadingManyWeightsIsNoStep) {
  const std::string step = "ELMLMH";
  EXPECT_EQ(Find(Repeat(".", 30) + Repeat(step, 3)), Times(step, 3));
  EXPECT_TRUE(Find(Repeat(".", 30)).empty());
}

TEST(StepRepeat, AnInterruptionCostsOnlyTheStepItFallsIn) {
  const std::string step = "ELMLMH";
  const std::string text =
      Repeat(step, 4) + "ELZMLMH" + Repeat(step, 5) + "Z" + Repeat(step, 2);
  EXPECT_EQ(Find(text), Times(step, 11));
}

TEST(StepRepeat, TheHostsWaitMarksTheBegin) {
  // After the last wait the next step has begun already.
  const std::string text = "PQ" + Repeat("!ELMLMH", 4) + "!EL";
  EXPECT_EQ(Find(text), Times("ELMLMH", 4));
}

TEST(StepRepeat, OneWaitInAFewStepsIsNoBoundary) {
  EXPECT_EQ(Find("PEL!MLMH" + Repeat("ELMLMH", 5)), Times("ELMLMH", 6));
}

TEST(StepRepeat, TheCopyBackToTheHostEndsAStep) {
  Operations operations = FromText(Repeat("!IE!LM.", 6));
  for (size_t i = 4; i < operations.size(); i += 5) {
    operations[i].to_host = true;
  }
  // The run may begin anywhere; the copy is what decides.
  const Operations shifted(operations.begin() + 3, operations.end());
  const RepeatedUnit unit = FindRepeatedUnit(shifted, {}, 0);
  ASSERT_FALSE(unit.starts.empty());
  EXPECT_EQ(unit.period, 5u);
  EXPECT_EQ(unit.starts.front(), 2u);
}

TEST(StepRepeat, ThePreferredStartMarksTheBegin) {
  const std::string text = Repeat("ELMLMH", 5);
  EXPECT_EQ(Find(text, 0, {8}), Times("MLMHEL", 4));
  // One outside of the repetition says nothing.
  EXPECT_EQ(Find("PQ" + text, 0, {1}), Times("ELMLMH", 5));
}

TEST(StepRepeat, TwoRequestsOfManyStepsAreTakenApart) {
  const std::string step = "!ELMLMH";
  const std::string request = "!PQPQRS" + Repeat(step, 9);
  EXPECT_EQ(Find(Repeat(request, 2)), Times("ELMLMH", 18));
  EXPECT_EQ(Find(Repeat(request, 3)), Times("ELMLMH", 27));
}

TEST(StepRepeat, ManyRequestsAreStepsThemselves) {
  const std::string request = "!PQ" + Repeat("!EL", 5);
  EXPECT_EQ(Find(Repeat(request, 8)), Times("PQELELELELEL", 8));
}

TEST(StepRepeat, LayersWithoutWaitsAreNotTakenApart) {
  const std::string step = "!E" + Repeat("LM", 12) + "H";
  EXPECT_EQ(Find(Repeat(step, 2)), Times("E" + Repeat("LM", 12) + "H", 2));
}

TEST(StepRepeat, AUnitWhoseShapesGrowIsFoundByKind) {
  // The case of a letter stands for a shape.
  const std::string text =
      "PQ"
      "ELaH"
      "ElAH"
      "eLAH"
      "eLah"
      "Elah"
      "eLaH";
  const RepeatedUnit unit = FindRepeatedUnit(FromText(text), {}, 0);
  EXPECT_TRUE(unit.by_kind);
  EXPECT_EQ(unit.period, 4u);
  EXPECT_EQ(unit.starts, (std::vector<uint64_t>{2, 6, 10, 14, 18, 22}));
}

TEST(StepRepeat, ShapesThatAgreeAreNotGivenUp) {
  const RepeatedUnit unit =
      FindRepeatedUnit(FromText("elah" + Repeat("ELAH", 9)), {}, 0);
  EXPECT_FALSE(unit.by_kind);
  EXPECT_EQ(unit.starts.size(), 9u);
}

TEST(StepRepeat, APeriodCanBeAskedFor) {
  const std::string step = "E" + Repeat("LM", 5) + "H";
  EXPECT_EQ(Find(Repeat(step, 4), 2), Times("LM", 20));
  EXPECT_EQ(Find(Repeat(step, 4), 24), Times(step + step, 2));
  EXPECT_TRUE(Find(Repeat(step, 4), 7).empty());
}

// The planted unit is found whatever surrounds it and whatever is inside.
TEST(StepRepeat, PlantedStepsWithNestedLayersAndNoiseAreFound) {
  std::mt19937 random(4);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % n);
  };
  for (int round = 0; round < 500; ++round) {
    std::string layer;
    for (int i = 1 + below(6); i > 0; --i) layer += 'a' + below(4);
    std::string step = "A";  // only once in a step: the step is no power
    for (int i = below(4); i > 0; --i) step += 'b' + below(6);
    step += Repeat(layer, 1 + below(12));
    for (int i = below(4); i > 0; --i) step += 'b' + below(6);
    const int times = 3 + below(8);
    // Less noise than steps, of other kernels.
    std::string prologue;
    for (int i = below(static_cast<int>(step.size())); i > 0; --i) {
      prologue += 'n' + below(8);
    }
    std::string epilogue;
    for (int i = below(10); i > 0; --i) epilogue += 'n' + below(8);
    const std::string text = prologue + Repeat(step, times) + epilogue;
    EXPECT_EQ(Find(text), Times(step, times)) << text;
  }
}

TEST(StepRepeat, AMillionOperationsTakeSeconds) {
  Operations operations = FromText("PQRS");
  const std::string step = "E" + Repeat("LMNO", 32) + "H";
  const Operations one = FromText(step);
  while (operations.size() < 1'000'000) {
    operations.insert(operations.end(), one.begin(), one.end());
  }
  const RepeatedUnit unit = FindRepeatedUnit(operations, {}, 0);
  EXPECT_EQ(unit.period, step.size());
  EXPECT_EQ(unit.starts.size(), (operations.size() - 4) / step.size());
}

}  // namespace
}  // namespace heddle::trace
