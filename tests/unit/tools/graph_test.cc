// SPDX-License-Identifier: Apache-2.0

// The graph of a step: folded to one layer, drawn, explained.

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/plan/critical_path.h"
#include "tests/unit/plan/synthetic_effects.h"
#include "tools/explain.h"
#include "tools/graph_output.h"
#include "tools/graph_picture.h"
#include "tools/layer_fold.h"

namespace heddle::tools {
namespace {

using access::ExtentSet;
using access::Mode;
using access::Provenance;

uint32_t CountOf(const std::string& text, const std::string& part) {
  uint32_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// One token of a decoder, all of whose accesses are known. 2 launches, layers
// of 13, 2 launches; what is at the same place in all layers is one kernel.
StepAnalysis Decoder(uint32_t layers) {
  StepAnalysis analysis;
  analysis.trace = "/some/where/decoder.htrace";
  analysis.step.index = 2;
  analysis.step.total = 5;
  analysis.step.source = "graph";
  const uint32_t operations = 4 + 13 * layers;
  const auto effects = plan::SyntheticDecode({.layers = layers}, operations);
  for (uint32_t op = 0; op < operations; ++op) {
    uint32_t kernel = op;
    if (op >= 2 && op < operations - 2) kernel = 2 + (op - 2) % 13;
    if (op >= operations - 2) kernel = 15 + op - (operations - 2);
    replay::LaunchWork launch;
    launch.kernel = kernel;
    launch.grid[0] = 132;
    replay::Operation operation;
    operation.record = 40;
    operation.node = static_cast<int32_t>(op);
    operation.work = launch;
    if (op > 0) operation.dependencies = {{op - 1, 0, 0}};
    analysis.operations.operations.push_back(operation);
    analysis.names.push_back(absl::StrCat("ns::kernel_", kernel, "<float>"));
    access::AccessSet set;
    set.accesses.push_back(
        {Mode::kRead, Provenance::kProved, effects[op].reads, "LDG"});
    set.accesses.push_back(
        {Mode::kWrite, Provenance::kProved, effects[op].writes, "STG"});
    analysis.access.push_back(set);
  }
  FindOrder(analysis);
  return analysis;
}

// Whether every operation of a repeat is the same as one period earlier.
bool Repeats(const std::vector<uint32_t>& kinds, const Repeat& repeat) {
  for (uint32_t op = repeat.first + repeat.period; op < repeat.end(); ++op) {
    if (kinds[op] != kinds[op - repeat.period]) return false;
  }
  return repeat.end() <= kinds.size();
}

TEST(LayerFold, FindsTheRepetitionThatLeavesLeast) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint32_t> kinds(random() % 24);
    const uint32_t different = 1 + random() % 3;
    for (uint32_t& kind : kinds) kind = random() % different;
    uint32_t most = 0;
    for (uint32_t first = 0; first < kinds.size(); ++first) {
      for (uint32_t period = 1; period < kinds.size(); ++period) {
        for (uint32_t count = 2; first + period * count <= kinds.size();
             ++count) {
          if (!Repeats(kinds, {first, period, count})) break;
          most = std::max(most, (count - 1) * period);
        }
      }
    }
    const Repeat found = FindRepeat(kinds);
    if (most == 0) {
      ASSERT_EQ(found.count, 0u);
      continue;
    }
    ASSERT_TRUE(Repeats(kinds, found));
    ASSERT_EQ((found.count - 1) * found.period, most);
  }
}

TEST(LayerFold, NoOperationAndNoEdgeIsLost) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t operations = 1 + random() % 30;
    std::vector<uint32_t> kinds(operations);
    for (uint32_t& kind : kinds) kind = random() % 2;
    std::vector<plan::DependencyEdge> edges;
    for (uint32_t to = 1; to < operations; ++to) {
      const uint32_t from = random() % to;
      edges.push_back({from,
                       to,
                       {{plan::Hazard::kReadAfterWrite, {to, 8}, to},
                        {plan::Hazard::kOrderingPoint, {}, 0}}});
    }
    const Repeat repeat = FindRepeat(kinds);
    const FoldedGraph folded = Fold(operations, edges, repeat);

    // Where an operation went, from the description of Repeat alone.
    const auto place = [&](uint32_t op) -> std::pair<uint32_t, uint32_t> {
      if (repeat.count == 0 || op < repeat.first || op >= repeat.end()) {
        return {op, 0};
      }
      const uint32_t inside = op - repeat.first;
      return {repeat.first + inside % repeat.period, inside / repeat.period};
    };
    std::map<uint32_t, uint32_t> nodes;
    for (uint32_t op = 0; op < operations; ++op) ++nodes[place(op).first];
    ASSERT_EQ(folded.nodes.size(), nodes.size());
    for (const FoldedNode& node : folded.nodes) {
      ASSERT_EQ(node.count, nodes[node.operation]);
    }
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<uint64_t>>
        expected;
    for (const plan::DependencyEdge& edge : edges) {
      const auto [from, from_layer] = place(edge.from);
      const auto [to, to_layer] = place(edge.to);
      const auto in = [&](uint32_t op) {
        return repeat.count != 0 && op >= repeat.first && op < repeat.end();
      };
      const bool both = in(edge.from) && in(edge.to);
      expected[{from, to, both ? to_layer - from_layer : 0}].push_back(edge.to);
    }
    ASSERT_EQ(folded.edges.size(), expected.size());
    for (const FoldedEdge& edge : folded.edges) {
      const auto& bytes =
          expected[{folded.nodes[edge.from].operation,
                    folded.nodes[edge.to].operation, edge.distance}];
      ASSERT_EQ(edge.count, bytes.size());
      ASSERT_EQ(edge.hazards[0], edge.count);
      ASSERT_EQ(edge.hazards[4], edge.count);
      ASSERT_EQ(edge.least_bytes,
                *std::min_element(bytes.begin(), bytes.end()));
      ASSERT_EQ(edge.most_bytes, *std::max_element(bytes.begin(), bytes.end()));
    }
  }
}

TEST(GraphPicture, TheLayersOfADecoderAreDrawnOnce) {
  const StepAnalysis analysis = Decoder(24);
  const FoldedGraph graph = FoldStep(analysis, false);
  EXPECT_EQ(graph.repeat.first, 2u);
  EXPECT_EQ(graph.repeat.period, 13u);
  EXPECT_EQ(graph.repeat.count, 24u);
  EXPECT_EQ(graph.nodes.size(), 17u);
  const std::string dot = GraphToDot(analysis, graph);
  EXPECT_TRUE(absl::StrContains(dot, "x24, 13 operations each"));
  EXPECT_EQ(CountOf(dot, "[label="), 17u);
  EXPECT_EQ(CountOf(dot, " -> "), graph.edges.size());
  EXPECT_TRUE(absl::StrContains(dot, "next layer: "));
  const std::string svg = GraphToSvg(analysis, graph);
  EXPECT_EQ(CountOf(svg, "class=\"box\""), 17u);
  EXPECT_EQ(CountOf(svg, "<path "), graph.edges.size());
  // Every operation by itself, if one wants to.
  const FoldedGraph all = FoldStep(analysis, true);
  EXPECT_EQ(all.nodes.size(), analysis.size());
  EXPECT_EQ(all.edges.size(), analysis.needed.edges.size());
  EXPECT_EQ(CountOf(GraphToSvg(analysis, all), "class=\"box\""),
            analysis.size());
}

TEST(GraphPicture, BoxesDoNotLieOnEachOther) {
  for (const bool all : {false, true}) {
    const StepAnalysis analysis = Decoder(6);
    const std::string svg = GraphToSvg(analysis, FoldStep(analysis, all));
    std::map<std::string, int> places;
    for (size_t at = svg.find("class=\"box\""); at != std::string::npos;
         at = svg.find("class=\"box\"", at + 1)) {
      const size_t x = svg.find(" x=", at);
      ++places[svg.substr(x, svg.find(" width=", x) - x)];
    }
    for (const auto& [place, boxes] : places) EXPECT_EQ(boxes, 1) << place;
    EXPECT_EQ(places.size(), all ? analysis.size() : 17u);
  }
}

TEST(GraphPicture, NamesOfKernelsCannotBreakThePicture) {
  StepAnalysis analysis = Decoder(1);
  analysis.names[3] = "evil\"\\\n<script>&";
  analysis.access[3].unknown_reads = "a <b> & \"c\"";
  FindOrder(analysis);
  const FoldedGraph graph = FoldStep(analysis, true);
  const std::string svg = GraphToSvg(analysis, graph);
  EXPECT_FALSE(absl::StrContains(svg, "<script>"));
  EXPECT_FALSE(absl::StrContains(svg, "a <b>"));
  EXPECT_TRUE(absl::StrContains(svg, "a &lt;b&gt; &amp; &quot;c&quot;"));
  const std::string dot = GraphToDot(analysis, graph);
  EXPECT_TRUE(absl::StrContains(dot, "evil\\\"\\\\\\\\n<script>&"));
}

TEST(StepStats, CountWhatIsKnownAndWhatTheOrderNeeds) {
  StepAnalysis analysis = Decoder(24);
  AccessStats stats = CountAccesses(analysis);
  EXPECT_EQ(stats.operations, 316u);
  EXPECT_EQ(stats.launches, 316u);
  EXPECT_EQ(stats.known, 316u);
  EXPECT_EQ(stats.recorded_edges, 315u);
  EXPECT_EQ(stats.needed_edges, analysis.needed.edges.size());
  // Three projections in a row, two rotations, gate and up.
  EXPECT_GE(stats.recorded_only, 24u * 3);
  EXPECT_LT(stats.chain, 316u);
  EXPECT_GT(stats.chain, 24u * 6);
  double share = 0;
  double work = 0;
  for (size_t k = 0; k < stats.beside.size(); ++k) {
    share += stats.beside[k];
    work += static_cast<double>(k) * stats.beside[k];
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_NEAR(work * static_cast<double>(stats.chain), 316, 1e-6);
  uint64_t read = 0;
  for (const plan::Effects& effects : analysis.effects) {
    read += effects.reads.bytes();
  }
  EXPECT_EQ(stats.read_bytes[static_cast<size_t>(Provenance::kProved)], read);

  analysis.access[7].unknown_reads = "loads a pointer";
  analysis.access[8].unknown_writes = "loads a pointer";
  analysis.access[9].unknown_reads = "no image";
  analysis.access[9].unknown_writes = "no image";
  FindOrder(analysis);
  stats = CountAccesses(analysis);
  EXPECT_EQ(stats.known, 313u);
  EXPECT_EQ(stats.writes_only, 1u);
  EXPECT_EQ(stats.reads_only, 1u);
  EXPECT_EQ(stats.unknown, 1u);
  EXPECT_EQ(stats.reasons.at("loads a pointer"), 2u);
  EXPECT_GT(stats.hazards[static_cast<size_t>(plan::Hazard::kUnknownAccess)],
            0u);
  const std::string text = GraphToText(analysis, false);
  EXPECT_TRUE(absl::StrContains(
      text, "313 of 316 launches known, 1 reads only, 1 writes only, 1 not"));
  EXPECT_TRUE(absl::StrContains(text, "2 unknown: loads a pointer"));
}

TEST(StepStats, WhereTheTwoOrdersDifferIsFoundByLookingAtAllPaths) {
  std::mt19937 random(3);
  uint64_t differences = 0;
  for (int round = 0; round < 300; ++round) {
    StepAnalysis analysis;
    const uint32_t operations = 2 + random() % 20;
    for (uint32_t op = 0; op < operations; ++op) {
      replay::Operation operation;
      for (uint32_t from = 0; from < op; ++from) {
        if (random() % 4 == 0) operation.dependencies.push_back({from, 0, 0});
      }
      analysis.operations.operations.push_back(operation);
      analysis.names.emplace_back("x");
      access::AccessSet set;
      set.accesses.push_back(
          {random() % 2 == 0 ? Mode::kRead : Mode::kWrite, Provenance::kProved,
           ExtentSet({{random() % 5, 1 + random() % 2}}), ""});
      analysis.access.push_back(set);
    }
    FindOrder(analysis);
    using Paths = std::vector<std::vector<bool>>;
    Paths bytes(operations, std::vector<bool>(operations));
    Paths program = bytes;
    const auto add = [&](Paths& paths, uint32_t a, uint32_t b) {
      paths[a][b] = true;
      for (uint32_t c = 0; c < a; ++c) {
        if (paths[c][a]) paths[c][b] = true;
      }
    };
    for (uint32_t b = 0; b < operations; ++b) {
      for (const replay::Dependency& before :
           analysis.operation(b).dependencies) {
        add(program, before.from, b);
      }
      for (uint32_t a = 0; a < b; ++a) {
        const auto reasons =
            plan::ReasonsBetween(analysis.effects[a], analysis.effects[b]);
        if (!reasons.empty()) add(bytes, a, b);
      }
    }
    uint64_t recorded_only = 0;
    for (uint32_t op = 0; op < operations; ++op) {
      for (const replay::Dependency& before :
           analysis.operation(op).dependencies) {
        if (!bytes[before.from][op]) ++recorded_only;
      }
    }
    uint64_t needed_only = 0;
    for (const plan::DependencyEdge& edge : analysis.needed.edges) {
      if (!program[edge.from][edge.to]) ++needed_only;
    }
    const AccessStats stats = CountAccesses(analysis);
    ASSERT_EQ(stats.recorded_only, recorded_only);
    ASSERT_EQ(stats.needed_only, needed_only);
    differences += recorded_only + needed_only;
  }
  EXPECT_GT(differences, 1000u);
}

TEST(Explain, ListsEveryConflictAndSaysWhichAreNeeded) {
  const StepAnalysis analysis = Decoder(4);
  for (uint32_t op = 0; op < analysis.size(); ++op) {
    const Explanation explanation = Explain(analysis, op);
    uint32_t needed = 0;
    uint32_t conflicts = 0;
    for (uint32_t other = 0; other < analysis.size(); ++other) {
      if (other == op) continue;
      const auto& list = other < op ? explanation.before : explanation.after;
      const auto found =
          std::find_if(list.begin(), list.end(),
                       [&](const Conflict& c) { return c.operation == other; });
      const auto reasons =
          plan::ReasonsBetween(analysis.effects[std::min(op, other)],
                               analysis.effects[std::max(op, other)]);
      ASSERT_EQ(found != list.end(), !reasons.empty());
      if (found == list.end()) continue;
      ++conflicts;
      EXPECT_EQ(found->reasons, reasons);
      if (found->needed) ++needed;
    }
    EXPECT_EQ(explanation.before.size() + explanation.after.size(), conflicts);
    EXPECT_EQ(needed, std::count_if(analysis.needed.edges.begin(),
                                    analysis.needed.edges.end(),
                                    [&](const plan::DependencyEdge& edge) {
                                      return edge.from == op || edge.to == op;
                                    }));
    const auto json = ExplanationToJson(analysis, explanation, Buffers());
    EXPECT_EQ(json["waits_for"].size(), explanation.before.size());
    EXPECT_EQ(json["waited_for_by"].size(), explanation.after.size());
    EXPECT_EQ(json["operation"]["index"], op);
  }
}

TEST(Explain, CallsAreFoundByRecordAndNode) {
  StepAnalysis analysis = Decoder(1);
  analysis.operations.operations[16].record = 44;
  analysis.operations.operations[16].node = -1;
  EXPECT_EQ(FindCall(analysis, "40.7").value(), 7u);
  EXPECT_EQ(FindCall(analysis, "44").value(), 16u);
  for (const char* wrong : {"", "x", "4.5.6", "40.", "40.-1", "-3"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(FindCall(analysis, wrong).status()))
        << wrong;
  }
  EXPECT_TRUE(absl::IsNotFound(FindCall(analysis, "41").status()));
  EXPECT_TRUE(absl::IsNotFound(FindCall(analysis, "40.99").status()));
  const absl::Status several = FindCall(analysis, "40").status();
  EXPECT_TRUE(absl::IsNotFound(several));
  EXPECT_TRUE(absl::StrContains(several.message(), "0 to 15")) << several;
}

TEST(GraphJson, HasEveryOperationAndEveryEdge) {
  const StepAnalysis analysis = Decoder(3);
  const auto json = GraphToJson(analysis);
  ASSERT_EQ(json["operations"].size(), analysis.size());
  ASSERT_EQ(json["edges"].size(), analysis.needed.edges.size());
  for (size_t i = 0; i < json["edges"].size(); ++i) {
    const plan::DependencyEdge& edge = analysis.needed.edges[i];
    EXPECT_EQ(json["edges"][i]["from"], edge.from);
    EXPECT_EQ(json["edges"][i]["to"], edge.to);
    EXPECT_EQ(json["edges"][i]["reasons"][0]["bytes"], edge.reasons[0].bytes);
  }
  EXPECT_EQ(json["summary"]["edges"]["needed"], analysis.needed.edges.size());
}

TEST(ShortNames, KeepWhatTellsKernelsApart) {
  EXPECT_EQ(ShortName("nn::gemv<128>", 30), "gemv<128>");
  EXPECT_EQ(
      ShortName("at::native::vectorized_elementwise_kernel<4, at::native::"
                "CUDAFunctor_add<float>, at::detail::Array<char*, 3>>",
                30),
      "vectorized_elementwise_kernel");
  EXPECT_EQ(ShortName("memcpy HtoD 4 B", 30), "memcpy HtoD 4 B");
  EXPECT_EQ(ShortName("a_name_that_is_much_too_long", 10), "a_name_...");
  EXPECT_EQ(ShortName("", 10), "");
  EXPECT_EQ(ShortName("(anonymous namespace)::f(int)", 40), "f(int)");
}

}  // namespace
}  // namespace heddle::tools
