// SPDX-License-Identifier: Apache-2.0
#include "tools/record_text.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/launch_json.h"

namespace heddle::tools {
namespace {

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Numbers beyond this are more likely flags, floats or addresses.
constexpr int64_t kLargeNumber = 1 << 24;

std::string WordToText(uint32_t word) {
  const auto number = static_cast<int32_t>(word);
  if (number > -kLargeNumber && number < kLargeNumber) {
    return absl::StrCat(number);
  }
  const float real = Load<float>(reinterpret_cast<const uint8_t*>(&word));
  if (std::isfinite(real) && std::fabs(real) > 1e-12F &&
      std::fabs(real) < 1e12F) {
    return absl::StrFormat("%gf", real);
  }
  return Hex(word);
}

std::string LongToText(uint64_t word, const Buffers& buffers) {
  if (auto place = buffers.Locate(word); place.has_value()) return *place;
  const auto number = static_cast<int64_t>(word);
  if (number > -kLargeNumber && number < kLargeNumber) {
    return absl::StrCat(number);
  }
  return Hex(word);
}

std::string DimToText(const fb::Dim3& dim) {
  if (dim.y() == 1 && dim.z() == 1) return absl::StrCat(dim.x());
  return absl::StrCat("(", dim.x(), ",", dim.y(), ",", dim.z(), ")");
}

std::string Place(uint64_t address, const Buffers& buffers) {
  return buffers.Locate(address).value_or(Hex(address));
}

std::string StatusText(int status, bool capturing) {
  std::string text;
  if (capturing) text += "  (captured)";
  if (status != 0) absl::StrAppend(&text, "  (failed: CUresult ", status, ")");
  return text;
}

std::string ToText(const fb::Memcpy& copy, const RecordContext& context) {
  std::string extent = Bytes(copy.width());
  if (copy.height() != 1 || copy.depth() != 1) {
    extent = absl::StrCat(copy.width(), " B x ", copy.height());
    if (copy.depth() != 1) absl::StrAppend(&extent, " x ", copy.depth());
  }
  return absl::StrCat(
      Place(copy.dst(), context.buffers()), " = ",
      Place(copy.src(), context.buffers()), ", ", extent, " ",
      EnumText(copy.kind(), fb::EnumNameMemcpyKind(copy.kind())),
      StatusText(copy.status(), copy.capturing()));
}

std::string ToText(const fb::Memset& fill, const RecordContext& context) {
  return absl::StrCat(Place(fill.dst(), context.buffers()), " = ",
                      Hex(fill.value()), " x ", fill.width() * fill.height(),
                      ", ", fill.element_size(), " B each",
                      StatusText(fill.status(), fill.capturing()));
}

std::string ToText(const fb::GraphNode& node, const RecordContext& context) {
  if (!node.understood()) return "(not understood)";
  if (node.launch() != nullptr) return LaunchToText(*node.launch(), context);
  if (node.memcpy() != nullptr) return ToText(*node.memcpy(), context);
  if (node.memset() != nullptr) return ToText(*node.memset(), context);
  if (node.child() != 0) return absl::StrCat("graph ", node.child());
  if (node.event() != 0) return absl::StrCat("event ", Hex(node.event()));
  return "";
}

std::string ToText(const fb::Graph& graph, const RecordContext& context) {
  const uint32_t nodes = graph.nodes() == nullptr ? 0 : graph.nodes()->size();
  const uint32_t edges = graph.edges() == nullptr ? 0 : graph.edges()->size();
  std::string text = absl::StrCat("graph ", graph.id(), "  ", nodes, " nodes, ",
                                  edges, " edges");
  std::vector<std::vector<std::string>> before(nodes);
  for (uint32_t i = 0; i < edges; ++i) {
    const fb::GraphEdge* edge = graph.edges()->Get(i);
    if (edge->to() >= nodes) continue;
    std::string from = absl::StrCat(edge->from());
    if (edge->type() != 0 || edge->from_port() != 0) {
      absl::StrAppend(&from, " (type ", edge->type(), ", port ",
                      edge->from_port(), ")");
    }
    before[edge->to()].push_back(from);
  }
  for (uint32_t i = 0; i < nodes; ++i) {
    const fb::GraphNode* node = graph.nodes()->Get(i);
    absl::StrAppend(&text, "\n        node ", i, "  ",
                    GraphNodeTypeName(node->type()), "  ",
                    ToText(*node, context));
    if (!before[i].empty()) {
      absl::StrAppend(&text, "  after ", absl::StrJoin(before[i], ", "));
    }
  }
  return text;
}

// "key=value" for all that RecordToJson knows but who and when.
std::string Generic(const trace::Record& record, const RecordContext& context) {
  std::vector<std::string> words;
  const Json json = RecordToJson(record, context);
  for (const auto& [key, value] : json.items()) {
    if (key == "call" || key == "type" || key == "time_ns" || key == "thread" ||
        key == "context") {
      continue;
    }
    std::string text =
        value.is_string() ? value.get<std::string>() : DumpJson(value);
    if (text.empty() || text == "[]" || text == "{}") continue;
    words.push_back(absl::StrCat(key, "=", text));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

std::string ParamToText(absl::Span<const uint8_t> bytes, uint32_t offset,
                        const Buffers& buffers) {
  switch (bytes.size()) {
    case 1:
      return absl::StrCat(bytes[0]);
    case 2:
      return absl::StrCat(Load<uint16_t>(bytes.data()));
    case 4:
      return WordToText(Load<uint32_t>(bytes.data()));
    case 8:
      return LongToText(Load<uint64_t>(bytes.data()), buffers);
    default:
      break;
  }
  std::string text = absl::StrCat("{", bytes.size(), " B");
  for (size_t at = (8 - offset % 8) % 8; at + 8 <= bytes.size(); at += 8) {
    const auto place = buffers.Locate(Load<uint64_t>(bytes.data() + at));
    if (place.has_value()) absl::StrAppend(&text, ", @", at, " ", *place);
  }
  return text + "}";
}

std::string LaunchToText(const fb::Launch& launch,
                         const RecordContext& context) {
  const fb::LaunchHead* head = launch.head();
  if (head == nullptr) return "(no head)";
  std::string text =
      absl::StrCat(Printable(context.names().Name(head->kernel())), "<<<",
                   DimToText(head->grid()), ", ", DimToText(head->block()));
  if (head->shared_bytes() != 0) {
    absl::StrAppend(&text, ", ", head->shared_bytes(), " B");
  }
  if (head->stream() != 0) {
    absl::StrAppend(&text, ", stream ", Hex(head->stream()));
  }
  text += ">>>(";
  if (launch.params() != nullptr) {
    const auto block =
        absl::MakeConstSpan(launch.params()->data(), launch.params()->size());
    const fb::Kernel* kernel = context.names().Find(head->kernel());
    if (kernel != nullptr && kernel->params() != nullptr) {
      bool first = true;
      for (const fb::ParamInfo* info : *kernel->params()) {
        if (info->offset() >= block.size()) continue;
        if (!first) text += ", ";
        first = false;
        text += ParamToText(block.subspan(info->offset(), info->size()),
                            info->offset(), context.buffers());
      }
    } else if (!block.empty()) {
      text += ParamToText(block, 0, context.buffers());
    }
  }
  text += ")";
  if (launch.cooperative()) text += "  cooperative";
  return text + StatusText(launch.status(), launch.capturing());
}

std::string RecordToText(const trace::Record& record,
                         const RecordContext& context) {
  std::string text;
  if (const auto* launch = record.As<fb::Launch>(); launch != nullptr) {
    text = LaunchToText(*launch, context);
  } else if (const auto* copy = record.As<fb::Memcpy>(); copy != nullptr) {
    text = ToText(*copy, context);
  } else if (const auto* fill = record.As<fb::Memset>(); fill != nullptr) {
    text = ToText(*fill, context);
  } else if (const auto* graph = record.As<fb::Graph>(); graph != nullptr) {
    text = ToText(*graph, context);
  } else {
    text = Printable(Generic(record, context));
  }
  return absl::StrFormat("%-10s  %s\n", trace::RecordTypeName(record.type),
                         text);
}

}  // namespace heddle::tools
