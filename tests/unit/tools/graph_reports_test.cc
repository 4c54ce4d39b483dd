// SPDX-License-Identifier: Apache-2.0
#include "tools/graph_reports.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/live/graph_report.h"
#include "tests/fuzz/report_entry.h"

namespace heddle::tools {
namespace {

using live::GraphReport;

// As the optimizer might make it, with text that a file format may trip over.
GraphReport RandomReport(std::mt19937& random) {
  const auto below = [&](uint32_t n) {
    return static_cast<uint32_t>(random() % n);
  };
  static constexpr const char* kTexts[] = {
      "2 edges stay full: one end is no kernel", "quotes \" and \\", "a\nb\tc",
      "\x1b[31mred", "not \xff UTF-8"};
  GraphReport report;
  report.graph = 1 + below(1000);
  report.nodes = below(4);
  report.kernels = below(3);
  report.patched = below(3);
  report.edges = below(3);
  report.converted = below(3);
  report.verified_launches = below(4);
  report.outcome = below(2) == 0 ? "rewritten" : kTexts[below(5)];
  if (below(2) == 0) {
    report.style = "programmatic";
    report.serial_us = 1 + below(10000) / 8.0;
    report.rewritten_us = 1 + below(10000) / 8.0;
  }
  report.build_ms = below(1000) / 4.0;
  report.trial_ms = below(1000) / 4.0;
  for (uint32_t i = below(4); i > 0; --i) {
    report.notes.emplace_back(kTexts[below(5)]);
  }
  return report;
}

std::string File(const std::vector<GraphReport>& reports) {
  std::string text;
  for (const GraphReport& report : reports) text += report.ToJson();
  return text;
}

std::vector<GraphReport> RandomReports(std::mt19937& random, size_t most) {
  std::vector<GraphReport> reports(1 + random() % most);
  for (GraphReport& report : reports) report = RandomReport(random);
  return reports;
}

TEST(GraphReports, WhatTheOptimizerWritesIsRead) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<GraphReport> written = RandomReports(random, 8);
    const auto read = ParseGraphReports(File(written), "file");
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->size(), written.size());
    for (size_t i = 0; i < written.size(); ++i) {
      const nlohmann::json& json = (*read)[i];
      EXPECT_EQ(json["graph"], written[i].graph);
      EXPECT_EQ(json["converted"], written[i].converted);
      EXPECT_EQ(json["serial_us"], written[i].serial_us);
      EXPECT_EQ(json["style"], written[i].style);
      EXPECT_EQ(json["notes"].size(), written[i].notes.size());
    }
  }
}

TEST(GraphReports, OfAFileTornAnywhereTheWholeLinesAreRead) {
  std::mt19937 random(2);
  const std::string file = File(RandomReports(random, 3)) +
                           RandomReport(random).ToJson() +
                           RandomReport(random).ToJson();
  for (size_t size = 0; size <= file.size(); ++size) {
    const std::string torn = file.substr(0, size);
    // A line is whole without its newline, too.
    const auto lines = static_cast<size_t>(
        std::count(torn.begin(), torn.end(), '\n') +
        static_cast<int>(size < file.size() && file[size] == '\n'));
    const auto read = ParseGraphReports(torn, "file");
    if (lines == 0 && size > 0) {
      EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << torn;
      continue;
    }
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->size(), lines) << torn;
  }
}

TEST(GraphReports, AForeignLineIsNamed) {
  std::mt19937 random(3);
  const std::string line = RandomReport(random).ToJson();
  // Each field is needed, and of its kind.
  std::vector<std::string> foreign = {"hello", "", "{}", "null", "[1]", "7"};
  for (const char* field :
       {"graph", "nodes", "kernels", "patched", "edges", "converted",
        "verified_launches", "serial_us", "rewritten_us", "trial_ms",
        "build_ms", "style", "outcome", "notes"}) {
    nlohmann::json json = nlohmann::json::parse(line);
    json.erase(field);
    foreign.push_back(json.dump());
    json[field] = nullptr;
    foreign.push_back(json.dump());
  }
  for (const char* field : {"graph", "nodes"}) {
    nlohmann::json json = nlohmann::json::parse(line);
    for (const nlohmann::json& value :
         {nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json(0.5)}) {
      json[field] = value;
      foreign.push_back(json.dump());
    }
  }
  for (const std::string& bad : foreign) {
    const auto read =
        ParseGraphReports(absl::StrCat(line, line, bad, "\n", line), "r.jsonl");
    ASSERT_TRUE(absl::IsInvalidArgument(read.status())) << bad;
    EXPECT_EQ(read.status().message().find("r.jsonl: line 3 is no report"), 0u)
        << read.status();
  }
}

TEST(GraphReports, FilesAreReadFromWhereOneIsInterested) {
  const std::string path = testing::TempDir() + "/graph_reports_test.jsonl";
  std::mt19937 random(4);
  const std::string first = File(RandomReports(random, 4));
  const std::vector<GraphReport> second = RandomReports(random, 4);
  std::ofstream(path, std::ios::binary) << first << File(second);
  const auto read = ReadGraphReports(path, first.size());
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), second.size());
  EXPECT_EQ((*read)[0]["graph"], second[0].graph);
  const auto beyond = ReadGraphReports(path, uint64_t{1} << 40);
  ASSERT_TRUE(beyond.ok());
  EXPECT_TRUE(beyond->empty());
  std::filesystem::remove(path);
  EXPECT_TRUE(absl::IsNotFound(ReadGraphReports(path).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadGraphReports(testing::TempDir()).status()));
}

TEST(GraphReports, TheTableCountsEveryGraphAndEveryNoteOnce) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::vector<GraphReport> written = RandomReports(random, 12);
    const auto read = ParseGraphReports(File(written), "file");
    ASSERT_TRUE(read.ok());
    const std::string text = GraphReportsToText(*read);
    size_t timed = 0;
    size_t noted = 0;
    for (const GraphReport& report : written) {
      timed += report.rewritten_us > 0 ? 1 : 0;
      noted += report.notes.size();
    }
    size_t graphs = 0;
    size_t ratios = 0;
    size_t notes = 0;
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line.find("graphs"), 0u) << text;
    bool rows = true;
    while (std::getline(lines, line)) {
      if (line.rfind("patching", 0) == 0) {
        rows = false;
      } else if (rows) {
        graphs += std::stoul(line);
        ratios += line.find("  x") != std::string::npos ? 1 : 0;
      } else {
        EXPECT_EQ(line.rfind("  ", 0), 0u);
        notes += std::stoul(line);
      }
      // What the program's names hold does not reach the terminal.
      for (const char c : line) {
        EXPECT_GE(static_cast<unsigned char>(c), ' ');
      }
    }
    EXPECT_FALSE(rows);
    EXPECT_EQ(graphs, written.size()) << text;
    EXPECT_EQ(ratios, timed) << text;
    EXPECT_EQ(notes, noted) << text;
  }
}

TEST(GraphReports, ATimedGraphShowsItsFigures) {
  GraphReport report;
  report.graph = 1;
  report.nodes = 812;
  report.kernels = 810;
  report.patched = 808;
  report.edges = 811;
  report.converted = 800;
  report.style = "programmatic";
  report.outcome = "rewritten";
  report.verified_launches = 3;
  report.serial_us = 200;
  report.rewritten_us = 160;
  report.build_ms = 12.4;
  report.trial_ms = 34.6;
  report.notes = {"one reason"};
  const auto read = ParseGraphReports(report.ToJson(), "file");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(GraphReportsToText(*read),
            "graphs  nodes   patched     edges  serial us     O1 us   ratio "
            "verified  outcome\n"
            "     1    812   808/810   800/811      200.0     160.0  x1.250 "
            "       3  rewritten (programmatic)\n"
            "patching and building 12 ms, verifying and timing 35 ms\n"
            "  1 x one reason\n");
  EXPECT_EQ(GraphReportsToText({}), "no graph was instantiated\n");
}

// The entry of the fuzzer, so that a build without libFuzzer runs it too.
TEST(GraphReports, DamagedFilesCrashNothing) {
  std::mt19937 random(6);
  for (int round = 0; round < 3000; ++round) {
    std::string text = File(RandomReports(random, 3));
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 9);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.insert(at, 1, "0123456789-.e\"\n{}[],:"[random() % 21]);
      }
      if (text.empty()) text = "\n";
    }
    FuzzGraphReports(text);
  }
}

}  // namespace
}  // namespace heddle::tools
