// SPDX-License-Identifier: Apache-2.0
//
// The graph of a step as SVG. Nodes stand in rows, each below all that it
// follows, and in lanes: one that follows the last node of a lane goes on with
// it, so that independent work is seen side by side.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/graph_picture.h"
#include "tools/names.h"

namespace heddle::tools {
namespace {

constexpr uint32_t kMaxLanes = 12;
constexpr double kBoxWidth = 232;
constexpr double kBoxHeight = 34;
constexpr double kLaneWidth = 272;
constexpr double kRowHeight = 66;
constexpr double kTop = 72;
constexpr double kLeft = 72;
constexpr size_t kNameWidth = 30;

constexpr const char* kStyle = R"(<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.t{font-size:15px;font-weight:600}.m{font-size:11px;fill:#59636e}
.bg{fill:#fff}.box{fill:#f6f8fa;stroke:#d1d9e0}.u{stroke:#cf222e;stroke-dasharray:3 2}.layer{fill:none;stroke:#59636e;stroke-dasharray:6 4}
path{fill:none;stroke-width:1.5}.e0{stroke:#0969da}.e1{stroke:#bf8700}.e2{stroke:#cf222e}.next{stroke-dasharray:5 4}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}.bg{fill:#0d1117}.box{fill:#161b22;stroke:#30363d}
.e0{stroke:#4493f8}.e1{stroke:#d29922}.e2{stroke:#f85149}.u{stroke:#f85149}.layer{stroke:#9198a1}}
</style>
)";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      Printable(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

class SvgWriter {
 public:
  SvgWriter(const StepAnalysis& analysis, const FoldedGraph& graph)
      : analysis_(analysis), graph_(graph) {}

  std::string Write() {
    Place();
    const double width = kLeft + lanes_ * kLaneWidth + 24;
    const double height = kTop + rows_ * kRowHeight + 8;
    absl::StrAppendFormat(
        &svg_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
        "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n",
        width, height, width, height);
    absl::StrAppend(&svg_, "<title>", Escaped(analysis_.Title()),
                    ": what needs what</title>\n", kStyle,
                    "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
    Text(16, 26, "t", analysis_.Title());
    Text(16, 46, "m",
         "blue: reads what was written; yellow: memory is used again; red: "
         "not known, or an ordering point; dashed: next layer");
    Layer();
    for (const FoldedEdge& edge : graph_.edges) Edge(edge);
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) Box(i);
    return svg_ + "</svg>\n";
  }

 private:
  // Rows and lanes. What is before, in and behind the layer shares no row, so
  // that a frame fits around it.
  void Place() {
    const auto nodes = static_cast<uint32_t>(graph_.nodes.size());
    std::vector<std::vector<uint32_t>> in(nodes);
    for (const FoldedEdge& edge : graph_.edges) {
      if (edge.from < edge.to && edge.distance == 0) {
        in[edge.to].push_back(edge.from);
      }
    }
    row_.resize(nodes);
    lane_.resize(nodes);
    std::vector<uint32_t> free_from;  // by lane: the first free row
    uint32_t first_row = 0;
    for (uint32_t i = 0; i < nodes; ++i) {
      const bool part_begins =
          graph_.repeat.count != 0 &&
          (i == graph_.layer_begin || i == graph_.layer_end);
      if (part_begins) first_row = rows_;
      uint32_t row = first_row;
      for (const uint32_t from : in[i]) row = std::max(row, row_[from] + 1);
      lane_[i] = ChooseLane(in[i], row, free_from);
      row_[i] = row;
      free_from[lane_[i]] = row + 1;
      rows_ = std::max(rows_, row + 1);
    }
    lanes_ = std::max<uint32_t>(1, static_cast<uint32_t>(free_from.size()));
  }

  // May move the node to a later row if all lanes are taken.
  uint32_t ChooseLane(const std::vector<uint32_t>& in, uint32_t& row,
                      std::vector<uint32_t>& free_from) const {
    for (const uint32_t from : in) {
      if (free_from[lane_[from]] == row_[from] + 1) return lane_[from];
    }
    for (;; ++row) {
      for (uint32_t lane = 0; lane < free_from.size(); ++lane) {
        if (free_from[lane] <= row) return lane;
      }
      if (free_from.size() < kMaxLanes) {
        free_from.push_back(0);
        return static_cast<uint32_t>(free_from.size() - 1);
      }
    }
  }

  double X(uint32_t node) const { return kLeft + lane_[node] * kLaneWidth; }
  double Y(uint32_t node) const { return kTop + row_[node] * kRowHeight; }

  void Text(double x, double y, const char* style, const std::string& text) {
    absl::StrAppendFormat(&svg_, "<text x=\"%.0f\" y=\"%.0f\" class=\"%s\">", x,
                          y, style);
    absl::StrAppend(&svg_, Escaped(text), "</text>\n");
  }

  void Layer() {
    if (graph_.repeat.count == 0) return;
    uint32_t first = ~uint32_t{0};
    uint32_t last = 0;
    for (uint32_t i = graph_.layer_begin; i < graph_.layer_end; ++i) {
      first = std::min(first, row_[i]);
      last = std::max(last, row_[i]);
    }
    const double top = kTop + first * kRowHeight - 14;
    absl::StrAppendFormat(
        &svg_,
        "<rect class=\"layer\" x=\"8\" y=\"%.0f\" width=\"%.0f\" "
        "height=\"%.0f\" rx=\"6\"/>\n",
        top, kLeft + lanes_ * kLaneWidth, (last - first + 1) * kRowHeight - 6);
    Text(16, top + 16, "t", absl::StrCat("x", graph_.repeat.count));
  }

  void Box(uint32_t i) {
    const FoldedNode& node = graph_.nodes[i];
    const replay::Operation& operation = analysis_.operation(node.operation);
    const access::AccessSet& set = analysis_.access[node.operation];
    const bool known = set.reads_known() && set.writes_known();
    const std::string& name = analysis_.names[node.operation];
    absl::StrAppend(&svg_, "<g><title>", node.operation, " ", Escaped(name));
    if (!set.reads_known()) {
      absl::StrAppend(&svg_, "\nreads unknown: ", Escaped(set.unknown_reads));
    }
    if (!set.writes_known()) {
      absl::StrAppend(&svg_, "\nwrites unknown: ", Escaped(set.unknown_writes));
    }
    absl::StrAppendFormat(
        &svg_,
        "</title><rect class=\"box%s\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" "
        "height=\"%.0f\" rx=\"4\"/>\n",
        known ? "" : " u", X(i), Y(i), kBoxWidth, kBoxHeight);
    Text(X(i) + 8, Y(i) + 15, "n", ShortName(name, kNameWidth));
    std::string detail = absl::StrCat("operation ", node.operation);
    if (const replay::LaunchWork* launch = operation.launch()) {
      absl::StrAppend(&detail, ", ", BlocksText(*launch));
    }
    Text(X(i) + 8, Y(i) + 28, "m", detail);
    absl::StrAppend(&svg_, "</g>\n");
  }

  void Edge(const FoldedEdge& edge) {
    const bool forward = edge.from < edge.to && edge.distance == 0;
    const double x1 = X(edge.from) + kBoxWidth / 2;
    const double y1 = Y(edge.from) + kBoxHeight;
    const double x2 = X(edge.to) + kBoxWidth / 2;
    const double y2 = Y(edge.to);
    absl::StrAppendFormat(&svg_, "<path class=\"e%d%s\" d=\"",
                          static_cast<int>(ColorOf(edge)),
                          forward ? "" : " next");
    if (!forward) {
      // Around the left side, back to where the next layer begins.
      const double left = kLeft - 40;
      absl::StrAppendFormat(
          &svg_, "M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", X(edge.from),
          Y(edge.from) + kBoxHeight / 2, left, Y(edge.from) + kBoxHeight / 2,
          left, y2 + kBoxHeight / 2, X(edge.to), y2 + kBoxHeight / 2);
    } else if (lane_[edge.from] == lane_[edge.to] &&
               row_[edge.to] > row_[edge.from] + 1) {
      // Past the boxes between the two.
      const double right = X(edge.from) + kBoxWidth;
      absl::StrAppendFormat(&svg_, "M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f",
                            right, y1 - kBoxHeight / 2, right + 36, y1,
                            right + 36, y2, right, y2 + kBoxHeight / 2);
    } else {
      const double bend = std::min(kRowHeight, (y2 - y1) / 2 + 8);
      absl::StrAppendFormat(&svg_, "M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f",
                            x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2);
    }
    absl::StrAppend(&svg_, "\"><title>", graph_.nodes[edge.from].operation,
                    " to ", graph_.nodes[edge.to].operation, ": ",
                    Escaped(EdgeText(graph_, edge)), "</title></path>\n");
  }

  const StepAnalysis& analysis_;
  const FoldedGraph& graph_;
  std::vector<uint32_t> row_;   // per node
  std::vector<uint32_t> lane_;  // per node
  uint32_t rows_ = 0;
  uint32_t lanes_ = 0;
  std::string svg_;
};

}  // namespace

std::string GraphToSvg(const StepAnalysis& analysis, const FoldedGraph& graph) {
  return SvgWriter(analysis, graph).Write();
}

}  // namespace heddle::tools
