// SPDX-License-Identifier: Apache-2.0
#include "tools/flags.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

using Words = std::vector<std::string>;

// One flag of each type.
struct Values {
  bool json = false;
  bool color = true;
  std::string output = "default";
  int64_t level = 3;
  double scale = 1.5;
  Words types = {"all"};
  std::string memory = "small";
};

FlagSet Declare(Values* values) {
  FlagSet flags;
  flags.Bool("json", &values->json, "print JSON")
      .Bool("color", &values->color, "use colors")
      .String("output", "FILE", &values->output, "where to write")
      .Short('o')
      .Int("level", "N", &values->level, "how hard to try")
      .Double("scale", "X", &values->scale, "a factor")
      .List("type", "LIST", &values->types, "which types")
      .Choice("memory", {"none", "small", "full"}, &values->memory, "policy");
  return flags;
}

// The error of parsing `words`, or "".
std::string Error(const Words& words) {
  Values values;
  const auto parsed = Declare(&values).Parse(words);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(Flags, WithoutWordsTheDefaultsStay) {
  Values values;
  const FlagSet flags = Declare(&values);
  const auto parsed = flags.Parse({});
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->positional.empty());
  EXPECT_FALSE(parsed->has_rest);
  EXPECT_FALSE(parsed->help);
  EXPECT_EQ(values.output, "default");
  EXPECT_EQ(values.types, Words{"all"});
  EXPECT_FALSE(flags.WasSet("output"));
}

TEST(Flags, AValueFollowsAfterABlankOrAnEqualsSign) {
  for (const Words& words :
       {Words{"--output=x", "--level=7", "--scale=-0.5"},
        Words{"--output", "x", "--level", "7", "--scale", "-0.5"},
        Words{"-o", "x", "--level=7", "--scale=-.5"},
        Words{"-ox", "--level", "0x7", "--scale", "-5e-1"}}) {
    Values values;
    const FlagSet flags = Declare(&values);
    ASSERT_TRUE(flags.Parse(words).ok());
    EXPECT_EQ(values.output, "x");
    EXPECT_EQ(values.level, 7);
    EXPECT_EQ(values.scale, -0.5);
    EXPECT_TRUE(flags.WasSet("output"));
    EXPECT_FALSE(flags.WasSet("json"));
  }
}

TEST(Flags, BooleansTakeNoValueAndHaveANo) {
  Values values;
  ASSERT_TRUE(Declare(&values).Parse({"--json", "--no-color", "x"}).ok());
  EXPECT_TRUE(values.json);
  EXPECT_FALSE(values.color);
  ASSERT_TRUE(Declare(&values).Parse({"--json=false", "--color=yes"}).ok());
  EXPECT_FALSE(values.json);
  EXPECT_TRUE(values.color);
  EXPECT_EQ(Error({"--json=maybe"}),
            "--json: \"maybe\" is neither true nor false");
  EXPECT_NE(Error({"--no-output"}), "");
}

TEST(Flags, WordsMayStandBetweenFlagsAndAfterTheSeparatorAllAreKept) {
  Values values;
  const auto parsed = Declare(&values).Parse(
      {"a", "--level", "4", "b", "-", "--", "--json", "--", "c"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->positional, (Words{"a", "b", "-"}));
  EXPECT_EQ(parsed->rest, (Words{"--json", "--", "c"}));
  EXPECT_TRUE(parsed->has_rest);
  EXPECT_FALSE(values.json);
}

TEST(Flags, AListReplacesItsDefaultAndGrows) {
  Values values;
  ASSERT_TRUE(
      Declare(&values).Parse({"--type=a,b", "--type", "c,,d", "--type="}).ok());
  EXPECT_EQ(values.types, (Words{"a", "b", "c", "d"}));
}

TEST(Flags, NumbersHaveSuffixesAndLimits) {
  const auto parse = [](const std::string& text) {
    Values values;
    return Declare(&values).Parse({"--level", text}).ok() ? values.level : -99;
  };
  EXPECT_EQ(parse("2k"), 2048);
  EXPECT_EQ(parse("3M"), 3 << 20);
  EXPECT_EQ(parse("4G"), int64_t{4} << 30);
  EXPECT_EQ(parse("-1"), -1);
  EXPECT_EQ(parse("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", "k", "1.5", "1kk", "0x", "ten", "1 2",
                          "9223372036854775808", "9999999999G"}) {
    EXPECT_EQ(parse(bad), -99) << bad;
  }
  EXPECT_EQ(Error({"--level=ten"}), "--level: \"ten\" is not a whole number");
}

TEST(Flags, ErrorsNameTheFlagAndTheNearestOne) {
  EXPECT_EQ(Error({"--jsno"}), "unknown flag --jsno, did you mean --json?");
  EXPECT_EQ(Error({"--out=x"}), "unknown flag --out, did you mean --output?");
  EXPECT_EQ(Error({"--frobnicate"}), "unknown flag --frobnicate");
  EXPECT_EQ(Error({"-x"}), "unknown flag -x");
  EXPECT_EQ(Error({"--output"}), "--output needs a value: FILE");
  EXPECT_EQ(Error({"-o", "--json"}), "-o needs a value: FILE");
  EXPECT_EQ(Error({"-o", "--", "x"}), "-o needs a value: FILE");
  EXPECT_EQ(Error({"--memory=huge"}),
            "--memory: \"huge\" is not one of none|small|full");
  EXPECT_EQ(Error({"--scale=x"}), "--scale: \"x\" is not a number");
}

TEST(Flags, HelpEndsParsing) {
  for (const char* word : {"--help", "-h"}) {
    Values values;
    const auto parsed = Declare(&values).Parse({word, "--no-such-flag"});
    ASSERT_TRUE(parsed.ok());
    EXPECT_TRUE(parsed->help);
  }
  Values values;
  const auto after = Declare(&values).Parse({"--", "--help"});
  ASSERT_TRUE(after.ok());
  EXPECT_FALSE(after->help);
}

TEST(Flags, HelpListsEveryFlagWithItsDefaultInEightyColumns) {
  Values values;
  FlagSet flags = Declare(&values);
  std::string unset;
  flags.String("long-name-that-leaves-no-room", "VALUE", &unset,
               "a help text that is long enough to need several lines, so that "
               "it has to be broken somewhere");
  const std::string help = flags.Help();
  for (const char* text :
       {"  --json ", "  -o, --output FILE", "where to write (default: default)",
        "(default: 3)", "(default: all)", "--memory none|small|full"}) {
    EXPECT_NE(help.find(text), std::string::npos) << text << "\n" << help;
  }
  size_t column = 0;
  for (const char c : help) {
    column = c == '\n' ? 0 : column + 1;
    EXPECT_LE(column, 80u);
  }
  EXPECT_EQ(help.back(), '\n');
}

TEST(Flags, RandomWordsNeverCrash) {
  std::mt19937 random(5);
  const std::string letters = "-=ojsnlevtype,0x \n";
  for (int round = 0; round < 20000; ++round) {
    Words words(random() % 4);
    for (std::string& word : words) {
      for (uint32_t i = random() % 9; i > 0; --i) {
        word += letters[random() % letters.size()];
      }
    }
    Error(words);
  }
}

// Optimal string alignment by its definition.
int SlowDistance(const std::string& a, const std::string& b, size_t i,
                 size_t j) {
  if (i == 0 || j == 0) return static_cast<int>(i + j);
  int best = SlowDistance(a, b, i - 1, j) + 1;
  best = std::min(best, SlowDistance(a, b, i, j - 1) + 1);
  best = std::min(
      best, SlowDistance(a, b, i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1));
  if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
    best = std::min(best, SlowDistance(a, b, i - 2, j - 2) + 1);
  }
  return best;
}

TEST(EditDistance, MatchesItsDefinition) {
  std::mt19937 random(6);
  for (int round = 0; round < 300; ++round) {
    std::string a;
    std::string b;
    for (uint32_t i = random() % 6; i > 0; --i) a += 'a' + random() % 3;
    for (uint32_t i = random() % 6; i > 0; --i) b += 'a' + random() % 3;
    EXPECT_EQ(EditDistance(a, b), SlowDistance(a, b, a.size(), b.size()))
        << a << " " << b;
  }
}

}  // namespace
}  // namespace heddle::tools
