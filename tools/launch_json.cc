// SPDX-License-Identifier: Apache-2.0
#include "tools/launch_json.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace heddle::tools {
namespace {

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

Json DimToJson(const fb::Dim3& dim) {
  return Json::array({dim.x(), dim.y(), dim.z()});
}

// Without a status of 0, which is what is expected.
void AddStatus(int status, bool capturing, Json* json) {
  if (capturing) (*json)["capturing"] = true;
  if (status != 0) (*json)["status"] = status;
}

}  // namespace

std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string EnumText(const char* name, int value) {
  const absl::string_view camel = name == nullptr ? "" : name;
  if (camel.empty()) return absl::StrCat(value);
  std::string text;
  for (size_t i = 1; i < camel.size(); ++i) {  // without the k
    const bool begins_word =
        absl::ascii_isupper(camel[i]) && absl::ascii_islower(camel[i - 1]) &&
        i + 1 < camel.size() && absl::ascii_islower(camel[i + 1]);
    if (begins_word && i > 1) text += '-';
    text += absl::ascii_tolower(camel[i]);
  }
  return text;
}

void AddStamp(const fb::Stamp* stamp, Json* json) {
  if (stamp == nullptr) return;
  (*json)["time_ns"] = stamp->time_ns();
  (*json)["thread"] = stamp->thread();
  if (stamp->context() != 0) (*json)["context"] = stamp->context();
}

void AddAddress(const char* key, uint64_t address, const Buffers& buffers,
                Json* json) {
  (*json)[key] = Hex(address);
  if (auto place = buffers.Locate(address); place.has_value()) {
    (*json)[absl::StrCat(key, "_buffer")] = *place;
  }
}

Json ParamToJson(uint32_t offset, absl::Span<const uint8_t> bytes,
                 const Buffers& buffers) {
  Json json;
  json["offset"] = offset;
  json["size"] = bytes.size();
  switch (bytes.size()) {
    case 1:
      json["value"] = bytes[0];
      return json;
    case 2:
      json["value"] = Load<uint16_t>(bytes.data());
      return json;
    case 4:
      json["value"] = Load<int32_t>(bytes.data());
      return json;
    case 8: {
      const auto value = Load<uint64_t>(bytes.data());
      json["value"] = Hex(value);
      if (auto place = buffers.Locate(value); place.has_value()) {
        json["buffer"] = *place;
      }
      return json;
    }
    default:
      break;
  }
  json["bytes"] = HexBytes(bytes);
  Json pointers = Json::array();
  for (size_t at = (8 - offset % 8) % 8; at + 8 <= bytes.size(); at += 8) {
    const auto place = buffers.Locate(Load<uint64_t>(bytes.data() + at));
    if (place.has_value()) {
      pointers.push_back({{"at", at}, {"buffer", *place}});
    }
  }
  if (!pointers.empty()) json["pointers"] = pointers;
  return json;
}

void AddFields(const fb::Launch& launch, const RecordContext& context,
               Json* json) {
  const fb::LaunchHead* head = launch.head();
  const fb::Kernel* kernel = nullptr;
  if (head != nullptr) {
    kernel = context.names().Find(head->kernel());
    (*json)["kernel"] = head->kernel();
    (*json)["name"] = context.names().Name(head->kernel());
    (*json)["stream"] = Hex(head->stream());
    (*json)["grid"] = DimToJson(head->grid());
    (*json)["block"] = DimToJson(head->block());
    (*json)["shared_bytes"] = head->shared_bytes();
  }
  Json params = Json::array();
  if (launch.params() != nullptr) {
    const auto block =
        absl::MakeConstSpan(launch.params()->data(), launch.params()->size());
    if (kernel != nullptr && kernel->params() != nullptr) {
      for (const fb::ParamInfo* info : *kernel->params()) {
        if (info->offset() >= block.size()) continue;
        params.push_back(ParamToJson(
            info->offset(), block.subspan(info->offset(), info->size()),
            context.buffers()));
      }
    } else if (!block.empty()) {
      params.push_back(ParamToJson(0, block, context.buffers()));
    }
  }
  (*json)["params"] = params;
  if (launch.attributes() != nullptr && launch.attributes()->size() > 0) {
    Json attributes = Json::array();
    for (const fb::LaunchAttribute* attribute : *launch.attributes()) {
      const auto value = absl::MakeConstSpan(attribute->value()->data(), 64);
      attributes.push_back(
          {{"id", attribute->id()}, {"value", HexBytes(value)}});
    }
    (*json)["attributes"] = attributes;
  }
  if (launch.cooperative()) (*json)["cooperative"] = true;
  AddStatus(launch.status(), launch.capturing(), json);
}

void AddFields(const fb::Memcpy& copy, const RecordContext& context,
               Json* json) {
  (*json)["kind"] = EnumText(copy.kind(), fb::EnumNameMemcpyKind(copy.kind()));
  (*json)["stream"] = Hex(copy.stream());
  AddAddress("dst", copy.dst(), context.buffers(), json);
  AddAddress("src", copy.src(), context.buffers(), json);
  (*json)["width"] = copy.width();
  if (copy.height() != 1 || copy.depth() != 1) {
    (*json)["height"] = copy.height();
    (*json)["depth"] = copy.depth();
    (*json)["dst_pitch"] = copy.dst_pitch();
    (*json)["src_pitch"] = copy.src_pitch();
    (*json)["dst_slice"] = copy.dst_slice();
    (*json)["src_slice"] = copy.src_slice();
  }
  (*json)["async"] = copy.async();
  if (copy.data() != nullptr) {
    const trace::Hash128 hash{copy.data()->lo(), copy.data()->hi()};
    (*json)["data"] = hash.ToHex();
  }
  (*json)["api"] = Text(copy.api());
  AddStatus(copy.status(), copy.capturing(), json);
}

void AddFields(const fb::Memset& fill, const RecordContext& context,
               Json* json) {
  (*json)["stream"] = Hex(fill.stream());
  AddAddress("dst", fill.dst(), context.buffers(), json);
  (*json)["value"] = fill.value();
  (*json)["element_size"] = fill.element_size();
  (*json)["width"] = fill.width();
  if (fill.height() != 1) {
    (*json)["height"] = fill.height();
    (*json)["pitch"] = fill.pitch();
  }
  (*json)["async"] = fill.async();
  (*json)["api"] = Text(fill.api());
  AddStatus(fill.status(), fill.capturing(), json);
}

void AddFields(const fb::HostFunc& host, const RecordContext&, Json* json) {
  (*json)["stream"] = Hex(host.stream());
  (*json)["function"] = Hex(host.function());
  (*json)["symbol"] = Text(host.symbol());
  (*json)["api"] = Text(host.api());
  AddStatus(0, host.capturing(), json);
}

void AddFields(const fb::MemOp& memop, const RecordContext&, Json* json) {
  (*json)["stream"] = Hex(memop.stream());
  (*json)["count"] = memop.count();
  if (memop.operations() != nullptr) {
    (*json)["operations"] = HexBytes(absl::MakeConstSpan(
        memop.operations()->data(), memop.operations()->size()));
  }
  (*json)["api"] = Text(memop.api());
  AddStatus(0, memop.capturing(), json);
}

Json NodeToJson(const fb::GraphNode& node, const RecordContext& context) {
  Json json;
  json["type"] = GraphNodeTypeName(node.type());
  if (!node.understood()) json["understood"] = false;
  if (node.launch() != nullptr) AddFields(*node.launch(), context, &json);
  if (node.memcpy() != nullptr) AddFields(*node.memcpy(), context, &json);
  if (node.memset() != nullptr) AddFields(*node.memset(), context, &json);
  if (node.host() != nullptr) AddFields(*node.host(), context, &json);
  if (node.memop() != nullptr) AddFields(*node.memop(), context, &json);
  if (node.child() != 0) json["child"] = node.child();
  if (node.event() != 0) json["event"] = Hex(node.event());
  if (node.alloc() != nullptr) {
    AddAddress("address", node.alloc()->address(), context.buffers(), &json);
    json["size"] = node.alloc()->size();
  }
  // A node runs where its graph does, and when.
  json.erase("stream");
  json.erase("api");
  json.erase("async");
  return json;
}

void AddFields(const fb::Graph& graph, const RecordContext& context,
               Json* json) {
  (*json)["id"] = graph.id();
  (*json)["handle"] = Hex(graph.handle());
  Json nodes = Json::array();
  if (graph.nodes() != nullptr) {
    for (const fb::GraphNode* node : *graph.nodes()) {
      nodes.push_back(NodeToJson(*node, context));
    }
  }
  (*json)["nodes"] = nodes;
  Json edges = Json::array();
  if (graph.edges() != nullptr) {
    for (const fb::GraphEdge* edge : *graph.edges()) {
      Json item = {{"from", edge->from()}, {"to", edge->to()}};
      if (edge->from_port() != 0) item["from_port"] = edge->from_port();
      if (edge->to_port() != 0) item["to_port"] = edge->to_port();
      if (edge->type() != 0) item["type"] = edge->type();
      edges.push_back(item);
    }
  }
  (*json)["edges"] = edges;
  if (graph.note() != nullptr) (*json)["note"] = Text(graph.note());
}

}  // namespace heddle::tools
