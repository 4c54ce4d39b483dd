// SPDX-License-Identifier: Apache-2.0
#include "tools/record_json.h"

#include "absl/strings/str_cat.h"
#include "tools/launch_json.h"

namespace heddle::tools {

const char kRecordJsonHelp[] =
    "JSON Lines: one object for each record, in file order. Every object has\n"
    "  call          number of the record, from 0 (what --calls selects)\n"
    "  type          launch, memcpy, alloc, ... (what --type selects)\n"
    "  time_ns, thread, context   when and by whom; absent if not known\n"
    "and the fields of its type, which have the names that they have in\n"
    "runtime/trace/trace.fbs. Keys are only ever added. In addition:\n"
    "  addresses and handles are strings, \"0x7f00\"; X_buffer beside an "
    "address X\n"
    "                names the allocation that it lies in: \"buf12+0x400\" is "
    "byte\n"
    "                0x400 of the 12th allocation of the trace\n"
    "  launch        name; params: {offset, size} and value (1, 2, 4 bytes: a\n"
    "                number; 8 bytes: \"0x..\", with buffer) or bytes (other "
    "sizes:\n"
    "                hexadecimal, with pointers: [{at, buffer}])\n"
    "  graph         nodes: the fields of the work that a node does, with "
    "type;\n"
    "                edges: {from, to} node indices, ports and type unless 0\n"
    "  status, capturing, cooperative    only where they are not 0 or false\n"
    "  hash, data    contents, by XXH3-128 in hexadecimal\n"
    "  enums         lower-case words: kHtoD is \"htod\", kStepBegin "
    "\"step-begin\"\n";

namespace {

trace::Hash128 ToHash(const fb::Hash128* hash) {
  return hash == nullptr ? trace::Hash128{}
                         : trace::Hash128{hash->lo(), hash->hi()};
}

template <typename Vector>
Json ToArray(const Vector* values) {
  Json array = Json::array();
  if (values != nullptr) {
    for (const auto value : *values) array.push_back(value);
  }
  return array;
}

Json ToObject(const flatbuffers::Vector<const fb::KeyValueU64*>* values) {
  Json object = Json::object();
  if (values != nullptr) {
    for (const fb::KeyValueU64* item : *values) {
      object[absl::StrCat(item->key())] = item->value();
    }
  }
  return object;
}

// One overload for each table: the fields of `table` after the stamp.

void Fields(const fb::Process& p, const RecordContext&, Json& json) {
  json["pid"] = p.pid();
  json["parent_pid"] = p.parent_pid();
  json["start_unix_ns"] = p.start_unix_ns();
  Json command = Json::array();
  if (p.command() != nullptr) {
    for (const auto* word : *p.command()) command.push_back(word->str());
  }
  json["command"] = command;
  json["executable"] = Text(p.executable());
  json["directory"] = Text(p.directory());
  json["host"] = Text(p.host());
  json["rank"] = p.rank();
  Json environment = Json::object();
  if (p.environment() != nullptr) {
    for (const auto* variable : *p.environment()) {
      environment[Text(variable->name())] = Text(variable->value());
    }
  }
  json["environment"] = environment;
  json["driver_version"] = p.driver_version();
  json["heddle_version"] = Text(p.heddle_version());
  json["options"] = Text(p.options());
}

void Fields(const fb::Device& d, const RecordContext&, Json& json) {
  json["ordinal"] = d.ordinal();
  json["name"] = Text(d.name());
  if (d.uuid() != nullptr) {
    json["uuid"] =
        HexBytes(absl::MakeConstSpan(d.uuid()->data(), d.uuid()->size()));
  }
  json["total_memory"] = d.total_memory();
  json["compute_major"] = d.compute_major();
  json["compute_minor"] = d.compute_minor();
  json["multiprocessors"] = d.multiprocessors();
  json["attributes"] = ToObject(d.attributes());
}

void Fields(const fb::Context& c, const RecordContext&, Json& json) {
  json["id"] = c.id();
  json["handle"] = Hex(c.handle());
  json["device"] = c.device();
  json["flags"] = c.flags();
  json["primary"] = c.primary();
}

void Fields(const fb::End& end, const RecordContext&, Json& json) {
  json["records"] = end.records();
  json["unsupported"] = end.unsupported();
  json["reason"] = Text(end.reason());
}

void Fields(const fb::Blob& blob, const RecordContext&, Json& json) {
  json["hash"] = ToHash(blob.hash()).ToHex();
  json["size"] = blob.size();
  json["offset"] = blob.offset();
  json["piece_size"] = blob.piece_size();
  json["codec"] = EnumText(blob.codec(), fb::EnumNameCodec(blob.codec()));
  json["stored_bytes"] = blob.data() == nullptr ? 0 : blob.data()->size();
}

void Fields(const fb::Image& image, const RecordContext&, Json& json) {
  json["id"] = image.id();
  json["kind"] = EnumText(image.kind(), fb::EnumNameImageKind(image.kind()));
  json["hash"] = ToHash(image.hash()).ToHex();
  json["size"] = image.size();
  json["stored"] = image.stored();
  json["origin"] = Text(image.origin());
  json["filtered"] = image.filtered();
}

void Fields(const fb::Module& module, const RecordContext&, Json& json) {
  json["id"] = module.id();
  json["handle"] = Hex(module.handle());
  json["kind"] = EnumText(module.kind(), fb::EnumNameModuleKind(module.kind()));
  json["image"] = module.image();
  json["api"] = Text(module.api());
}

void Fields(const fb::ModuleUnload& unload, const RecordContext&, Json& json) {
  json["module_id"] = unload.module_id();
}

void Fields(const fb::Kernel& kernel, const RecordContext& context,
            Json& json) {
  json["id"] = kernel.id();
  json["name"] = context.names().Name(kernel.id());
  json["module_id"] = kernel.module_id();
  Json params = Json::array();
  if (kernel.params() != nullptr) {
    for (const fb::ParamInfo* info : *kernel.params()) {
      params.push_back({{"offset", info->offset()}, {"size", info->size()}});
    }
  }
  json["params"] = params;
  json["param_bytes"] = kernel.param_bytes();
  json["attributes"] = ToObject(kernel.attributes());
  json["handle"] = Hex(kernel.handle());
}

void Fields(const fb::KernelAttribute& a, const RecordContext& context,
            Json& json) {
  json["kernel"] = a.kernel();
  json["name"] = context.names().Name(a.kernel());
  json["attribute"] = a.attribute();
  json["value"] = a.value();
  json["api"] = Text(a.api());
}

void Fields(const fb::Global& global, const RecordContext&, Json& json) {
  json["module_id"] = global.module_id();
  json["name"] = Text(global.name());
  json["address"] = Hex(global.address());
  json["size"] = global.size();
}

void Fields(const fb::Alloc& alloc, const RecordContext& context, Json& json) {
  json["buffer"] = absl::StrCat("buf", context.buffers().count() + 1);
  json["address"] = Hex(alloc.address());
  json["size"] = alloc.size();
  json["kind"] = EnumText(alloc.kind(), fb::EnumNameMemoryKind(alloc.kind()));
  json["stream"] = Hex(alloc.stream());
  if (alloc.pool() != 0) json["pool"] = Hex(alloc.pool());
  json["flags"] = alloc.flags();
  if (alloc.device_address() != 0) {
    json["device_address"] = Hex(alloc.device_address());
  }
  json["api"] = Text(alloc.api());
}

void Fields(const fb::Free& free, const RecordContext& context, Json& json) {
  AddAddress("address", free.address(), context.buffers(), &json);
  json["size"] = free.size();
  json["kind"] = EnumText(free.kind(), fb::EnumNameMemoryKind(free.kind()));
  json["stream"] = Hex(free.stream());
  json["api"] = Text(free.api());
}

void Fields(const fb::Launch& launch, const RecordContext& context,
            Json& json) {
  AddFields(launch, context, &json);
}
void Fields(const fb::Memcpy& copy, const RecordContext& context, Json& json) {
  AddFields(copy, context, &json);
}
void Fields(const fb::Memset& fill, const RecordContext& context, Json& json) {
  AddFields(fill, context, &json);
}
void Fields(const fb::HostFunc& host, const RecordContext& context,
            Json& json) {
  AddFields(host, context, &json);
}
void Fields(const fb::MemOp& memop, const RecordContext& context, Json& json) {
  AddFields(memop, context, &json);
}
void Fields(const fb::Graph& graph, const RecordContext& context, Json& json) {
  AddFields(graph, context, &json);
}

void Fields(const fb::Stream& stream, const RecordContext&, Json& json) {
  json["op"] = EnumText(stream.op(), fb::EnumNameStreamOp(stream.op()));
  json["handle"] = Hex(stream.handle());
  json["flags"] = stream.flags();
  json["priority"] = stream.priority();
}

void Fields(const fb::Event& event, const RecordContext&, Json& json) {
  json["op"] = EnumText(event.op(), fb::EnumNameEventOp(event.op()));
  json["handle"] = Hex(event.handle());
  json["stream"] = Hex(event.stream());
  json["flags"] = event.flags();
  if (event.capturing()) json["capturing"] = true;
}

void Fields(const fb::Sync& sync, const RecordContext&, Json& json) {
  json["op"] = EnumText(sync.op(), fb::EnumNameSyncOp(sync.op()));
  json["handle"] = Hex(sync.handle());
  if (sync.status() != 0) json["status"] = sync.status();
}

void Fields(const fb::Capture& capture, const RecordContext&, Json& json) {
  json["op"] = EnumText(capture.op(), fb::EnumNameCaptureOp(capture.op()));
  json["stream"] = Hex(capture.stream());
  json["mode"] = capture.mode();
  json["graph"] = Hex(capture.graph());
  if (capture.status() != 0) json["status"] = capture.status();
}

void Fields(const fb::GraphExec& exec, const RecordContext& context,
            Json& json) {
  json["op"] = EnumText(exec.op(), fb::EnumNameGraphExecOp(exec.op()));
  json["handle"] = Hex(exec.handle());
  json["graph"] = exec.graph();
  json["flags"] = exec.flags();
  if (exec.op() == fb::GraphExecOp::kNodeUpdate ||
      exec.op() == fb::GraphExecOp::kNodeEnable) {
    json["node"] = exec.node();
    json["enabled"] = exec.enabled();
  }
  if (exec.update() != nullptr) {
    json["update"] = NodeToJson(*exec.update(), context);
  }
  json["api"] = Text(exec.api());
  if (exec.status() != 0) json["status"] = exec.status();
}

void Fields(const fb::GraphLaunch& launch, const RecordContext&, Json& json) {
  json["exec"] = Hex(launch.exec());
  json["graph"] = launch.graph();
  json["stream"] = Hex(launch.stream());
  if (launch.capturing()) json["capturing"] = true;
  if (launch.status() != 0) json["status"] = launch.status();
}

void Fields(const fb::TensorMap& map, const RecordContext& context,
            Json& json) {
  json["kind"] = EnumText(map.kind(), fb::EnumNameTensorMapKind(map.kind()));
  if (map.bytes() != nullptr) {
    json["bytes"] =
        HexBytes(absl::MakeConstSpan(map.bytes()->data(), map.bytes()->size()));
  }
  json["data_type"] = map.data_type();
  json["rank"] = map.rank();
  AddAddress("address", map.address(), context.buffers(), &json);
  json["dims"] = ToArray(map.dims());
  json["strides"] = ToArray(map.strides());
  json["box"] = ToArray(map.box());
  json["element_strides"] = ToArray(map.element_strides());
  json["interleave"] = map.interleave();
  json["swizzle"] = map.swizzle();
  json["l2_promotion"] = map.l2_promotion();
  json["oob_fill"] = map.oob_fill();
  if (map.kind() == fb::TensorMapKind::kTiled) return;
  json["box_corners"] = ToArray(map.box_corners());
  json["channels_per_pixel"] = map.channels_per_pixel();
  json["pixels_per_column"] = map.pixels_per_column();
}

void Fields(const fb::Range& range, const RecordContext&, Json& json) {
  json["op"] = EnumText(range.op(), fb::EnumNameRangeOp(range.op()));
  json["name"] = Text(range.name());
  json["domain"] = Hex(range.domain());
  json["id"] = range.id();
}

void Fields(const fb::Step& step, const RecordContext&, Json& json) {
  json["op"] = EnumText(step.op(), fb::EnumNameStepOp(step.op()));
  json["index"] = step.index();
  json["source"] = Text(step.source());
}

void Fields(const fb::Snapshot& snapshot, const RecordContext&, Json& json) {
  json["id"] = snapshot.id();
  json["when"] =
      EnumText(snapshot.when(), fb::EnumNameSnapshotWhen(snapshot.when()));
  json["step"] = snapshot.step();
  json["policy"] = Text(snapshot.policy());
  json["ranges"] = snapshot.ranges();
  json["complete"] = snapshot.complete();
}

void Fields(const fb::MemoryRange& range, const RecordContext& context,
            Json& json) {
  json["snapshot"] = range.snapshot();
  AddAddress("address", range.address(), context.buffers(), &json);
  json["size"] = range.size();
  json["fill"] = EnumText(range.fill(), fb::EnumNameFillKind(range.fill()));
  if (range.hash() != nullptr) json["hash"] = ToHash(range.hash()).ToHex();
  if (range.fill() == fb::FillKind::kDescribed) {
    json["likely"] =
        EnumText(range.likely(), fb::EnumNameScalarType(range.likely()));
    json["mean"] = range.mean();
    json["stddev"] = range.stddev();
  }
}

void Fields(const fb::Unsupported& what, const RecordContext&, Json& json) {
  json["api"] = Text(what.api());
  json["detail"] = Text(what.detail());
}

void Fields(const fb::Note& note, const RecordContext&, Json& json) {
  json["severity"] = note.severity();
  json["text"] = Text(note.text());
}

}  // namespace

Json RecordToJson(const trace::Record& record, const RecordContext& context) {
  Json json;
  json["call"] = record.index;
  json["type"] = trace::RecordTypeName(record.type);
  AddStamp(StampOf(record), &json);
  switch (record.type) {
#define HEDDLE_CASE(Table)                          \
  case fb::RecordType::k##Table:                    \
    Fields(*record.As<fb::Table>(), context, json); \
    return json;
    HEDDLE_RECORD_TABLES(HEDDLE_CASE)
#undef HEDDLE_CASE
    default:
      json["bytes"] = record.payload.size();
      return json;
  }
}

}  // namespace heddle::tools
