// SPDX-License-Identifier: Apache-2.0
#include "runtime/report/report.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace heddle::report {
namespace {

using nlohmann::json;

DeviceProperties H200() {
  DeviceProperties device;
  device.name = "NVIDIA H200";
  device.compute_major = 9;
  device.multiprocessors = 132;
  device.max_threads_per_multiprocessor = 2048;
  device.max_blocks_per_multiprocessor = 32;
  device.max_threads_per_block = 1024;
  device.registers_per_multiprocessor = 65536;
  device.shared_per_multiprocessor = 233472;
  device.shared_per_block_reserved = 1024;
  return device;
}

Activity Kernel(uint64_t start, uint64_t end, uint64_t stream,
                const std::string& name = "_Z5scalePff") {
  Activity a;
  a.name = name;
  a.start_ns = start;
  a.end_ns = end;
  a.stream = stream;
  a.correlation = start;
  a.grid[0] = 264;
  a.grid[1] = a.grid[2] = 1;
  a.block[0] = 256;
  a.block[1] = a.block[2] = 1;
  a.registers = 32;
  a.dynamic_shared = 1024;
  return a;
}

Report Sample() {
  Report report;
  report.title = "step 3 of <a & b>.htrace";
  report.conclusion = "serial and graph leave identical memory";
  report.device = H200();
  report.measurements = {{"serial", 120.5, 1.5, 118, 20},
                         {"graph", 80.25, 0.5, 79, 20}};
  Activity copy;
  copy.kind = ActivityKind::kMemcpy;
  copy.name = "Memcpy HtoD (Pinned -> Device)";
  copy.start_ns = 1000;
  copy.end_ns = 2000;
  copy.bytes = 8000;
  copy.stream = 13;
  report.timelines = {
      {"serial", "test", {copy, Kernel(2500, 7500, 7), Kernel(9000, 9500, 7)}},
      {"graph", "test", {Kernel(100, 5100, 7), Kernel(5100, 5600, 14)}}};
  report.timelines[1].activities[0].graph = 4;
  report.timelines[1].activities[0].graph_node = 12;
  for (Timeline& timeline : report.timelines) {
    NumberActivities(timeline.activities);
  }
  report.notes = {"a note"};
  return report;
}

TEST(ChromeTraceTest, KernelsHaveKinetosArgumentNames) {
  const json trace = ToChromeTrace(Sample());
  json kernel;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "kernel") {
      kernel = event;
      break;
    }
  }
  ASSERT_FALSE(kernel.is_null());
  EXPECT_EQ(kernel["name"], "scale(float*, float)");
  EXPECT_DOUBLE_EQ(kernel["ts"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(kernel["dur"].get<double>(), 5.0);
  const json& args = kernel["args"];
  for (const char* name :
       {"External id", "device", "context", "stream", "correlation",
        "registers per thread", "shared memory", "blocks per SM",
        "warps per SM", "grid", "block", "est. achieved occupancy %"}) {
    EXPECT_TRUE(args.contains(name)) << name;
  }
  EXPECT_EQ(args["grid"], json({264, 1, 1}));
  EXPECT_DOUBLE_EQ(args["blocks per SM"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(args["warps per SM"].get<double>(), 16);
  EXPECT_EQ(args["est. achieved occupancy %"], 25);  // 16 of 64 warps
}

TEST(ChromeTraceTest, CopiesHaveBytesAndBandwidth) {
  const json trace = ToChromeTrace(Sample());
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "gpu_memcpy") continue;
    EXPECT_EQ(event["args"]["bytes"], 8000);
    EXPECT_DOUBLE_EQ(event["args"]["memory bandwidth (GB/s)"].get<double>(), 8);
    return;
  }
  FAIL() << "no gpu_memcpy event";
}

TEST(ChromeTraceTest, EveryStreamIsALaneAndEveryModeAProcessFromZero) {
  const json trace = ToChromeTrace(Sample());
  std::set<std::pair<int, int>> lanes;
  std::map<int, double> first;
  std::map<int, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    const int process = event["pid"];
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      lanes.insert({process, event["tid"].get<int>()});
    }
    if (event["ph"] == "M" && event["name"] == "process_name") {
      names[process] = event["args"]["name"];
    }
    if (event["ph"] != "X") continue;
    first.try_emplace(process, 1e9);
    first[process] = std::min(first[process], event["ts"].get<double>());
  }
  EXPECT_EQ(lanes,
            (std::set<std::pair<int, int>>{{0, 7}, {0, 13}, {1, 7}, {1, 14}}));
  EXPECT_EQ(names[0], "serial (NVIDIA H200)");
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(first[1], 0);
  EXPECT_EQ(trace["deviceProperties"][0]["numSms"], 132);
}

TEST(ChromeTraceTest, GraphNodesAreNamedWhereThereAreSome) {
  size_t nodes = 0;
  const json trace = ToChromeTrace(Sample());
  for (const json& event : trace["traceEvents"]) {
    nodes += event["args"].contains("graph node id") ? 1 : 0;
  }
  EXPECT_EQ(nodes, 1U);
}

TEST(JsonTest, HoldsEveryActivityTheGapsAndTheMeasurements) {
  const json data = ToJson(Sample());
  EXPECT_EQ(data["schema"], 1);
  EXPECT_EQ(data["timelines"][0]["activities"].size(), 3U);
  EXPECT_DOUBLE_EQ(data["timelines"][0]["span_us"].get<double>(), 8.5);
  EXPECT_DOUBLE_EQ(data["timelines"][0]["gap_us"].get<double>(), 2.0);
  EXPECT_DOUBLE_EQ(data["timelines"][0]["gaps"][0]["us"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(data["measurements"][1]["median_us"].get<double>(), 80.25);
}

TEST(TextTest, SaysSpanBusyGapsAndTopKernelsOfBothModes) {
  const std::string text = ToText(Sample(), /*launches=*/true);
  EXPECT_NE(text.find("span 8.5 us, busy 6.5 us"), std::string::npos) << text;
  EXPECT_NE(text.find("scale(float*, float)"), std::string::npos);
  EXPECT_NE(text.find("gap 1.5 us between"), std::string::npos);
  EXPECT_NE(text.find("graph: 2 kernels"), std::string::npos);
  EXPECT_NE(text.find("a note"), std::string::npos);
}

// A check of the form alone: tags open and close in order.
void ExpectWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  size_t at = 0;
  while ((at = xml.find('<', at)) != std::string::npos) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

TEST(SvgTest, IsWellFormedAndServesLightAndDark) {
  const std::string svg = ToSvg(Sample());
  ExpectWellFormed(svg);
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(svg.find("&lt;a &amp; b&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
}

TEST(SvgTest, ManyTinyActivitiesAreDrawnTogether) {
  Report report = Sample();
  for (Timeline& timeline : report.timelines) {
    timeline.activities.clear();
    for (uint64_t i = 0; i < 100000; ++i) {
      timeline.activities.push_back(Kernel(i * 100, i * 100 + 90, 7));
    }
  }
  EXPECT_LT(ToSvg(report).size(), 1U << 20);
}

TEST(SvgTest, AnEmptyReportIsAPictureToo) { ExpectWellFormed(ToSvg({})); }

TEST(OccupancyTest, IsBoundByRegistersSharedMemoryAndTheGrid) {
  Activity a = Kernel(0, 1, 7);
  a.grid[0] = 132 * 100;
  EXPECT_EQ(EstimatedOccupancy(H200(), a), 100);
  a.registers = 255;  // 65536 / 8192: 8 warps
  EXPECT_EQ(EstimatedOccupancy(H200(), a), 13);
  a.registers = 32;
  a.dynamic_shared = 110000;  // two blocks of eight warps
  EXPECT_EQ(EstimatedOccupancy(H200(), a), 25);
  a.grid[0] = 66;  // half a block a multiprocessor
  EXPECT_EQ(EstimatedOccupancy(H200(), a), 6);
}

TEST(OccupancyTest, AKernelThatIsNotKnownWellEnoughHasNone) {
  Activity a = Kernel(0, 1, 7);
  a.registers = 0;
  EXPECT_EQ(EstimatedOccupancy(H200(), a), -1);
  EXPECT_EQ(EstimatedOccupancy(DeviceProperties{}, Kernel(0, 1, 7)), -1);
}

TEST(WriteTest, TheExtensionDecidesTheForm) {
  const std::string base = testing::TempDir() + "heddle_report_test";
  const std::pair<const char*, const char*> forms[] = {
      {".trace.json", "{\"deviceProperties\""},
      {".perfetto.json", "{\"deviceProperties\""},
      {".json", "{\n \"conclusion\""},
      {".svg", "<svg "},
      {".txt", "step 3 of"}};
  for (const auto& [extension, begin] : forms) {
    const std::string path = base + extension;
    ASSERT_TRUE(WriteReport(Sample(), path).ok());
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    EXPECT_EQ(content.str().rfind(begin, 0), 0U)
        << extension << ": " << content.str().substr(0, 40);
    std::remove(path.c_str());
  }
}

TEST(WriteTest, AnotherExtensionOrFolderIsAnError) {
  EXPECT_EQ(CheckReportName("report.pdf").code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status status = WriteReport(Sample(), "/nonexistent/a.txt");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/nonexistent/a.txt"), std::string::npos);
}

TEST(WriteTest, NamesThatAreNoUtf8DoNotBreakTheJson) {
  Report report = Sample();
  report.timelines[0].activities[0].name = "\xff\xfe";
  const std::string path = testing::TempDir() + "heddle_report_utf8.json";
  ASSERT_TRUE(WriteReport(report, path).ok());
  std::ifstream file(path);
  EXPECT_FALSE(json::parse(file).is_null());
  std::remove(path.c_str());
}

}  // namespace
}  // namespace heddle::report
