// SPDX-License-Identifier: Apache-2.0
#include "tools/info_json.h"

#include <algorithm>

#include "tools/launch_json.h"

namespace heddle::tools {
namespace {

Json ProcessJson(const fb::Process& process) {
  Json command = Json::array();
  if (process.command() != nullptr) {
    for (const auto* word : *process.command()) {
      command.push_back(word->str());
    }
  }
  return {{"pid", process.pid()},
          {"command", command},
          {"executable", Text(process.executable())},
          {"host", Text(process.host())},
          {"rank", process.rank()},
          {"driver_version", process.driver_version()},
          {"heddle_version", Text(process.heddle_version())},
          {"options", Text(process.options())}};
}

Json StepsJson(const Summary& summary, const KernelNames& names) {
  const trace::StepList& list = summary.steps;
  Json steps = Json::array();
  for (const trace::Step& step : list.steps) {
    Json item = {{"first_call", step.first_record},
                 {"end_call", step.end_record},
                 {"launches", step.launches},
                 {"signature", Hex(step.signature)}};
    if (step.snapshot_record != trace::kNoSnapshot) {
      item["snapshot_call"] = step.snapshot_record;
    }
    steps.push_back(item);
  }
  Json varying = Json::array();
  for (const trace::VaryingWord& word : summary.step_params.varying) {
    Json item = {{"launch", word.launch},
                 {"kernel", word.kernel},
                 {"name", names.Name(word.kernel)},
                 {"param", static_cast<int32_t>(word.param)},
                 {"offset", word.offset},
                 {"size", word.size}};
    if (word.variation == trace::Variation::kAffine) {
      item["variation"] = "affine";
      item["first"] = Hex(word.first);
      item["slope"] = word.slope;
    } else {
      item["variation"] = "other";
    }
    varying.push_back(item);
  }
  return {{"source", list.source},
          {"count", list.steps.size()},
          {"signature", Hex(list.signature)},
          {"matching", list.matching},
          {"shapes_vary", list.shapes_vary},
          {"params",
           {{"steps", summary.step_params.steps},
            {"launches", summary.step_params.launches},
            {"constant", summary.step_params.constant},
            {"affine", summary.step_params.affine},
            {"other", summary.step_params.other},
            {"varying", varying}}},
          {"list", steps}};
}

Json KernelsJson(const Summary& summary, const KernelNames& names) {
  Json kernels = Json::array();
  for (const auto& [id, use] : summary.kernel_uses) {
    kernels.push_back(
        {{"kernel", id}, {"name", names.Name(id)}, {"launches", use.launches}});
  }
  return kernels;
}

}  // namespace

Json InfoToJson(const trace::Reader& reader, const Summary& summary,
                const KernelNames& names) {
  Json json;
  json["trace"] = {{"path", reader.path()},
                   {"size", reader.file_size()},
                   {"version", reader.header().version},
                   {"uuid", HexBytes(reader.header().uuid)},
                   {"start_unix_ns", reader.header().start_unix_ns},
                   {"duration_ns", summary.end_ns},
                   {"records", reader.records().size()},
                   {"truncated", reader.truncated()},
                   {"truncation", reader.truncation()},
                   {"end_reason", summary.end_reason}};
  if (summary.process != nullptr) {
    json["process"] = ProcessJson(*summary.process);
  }
  json["devices"] = Json::array();
  for (const fb::Device* device : summary.devices) {
    json["devices"].push_back({{"ordinal", device->ordinal()},
                               {"name", Text(device->name())},
                               {"compute_major", device->compute_major()},
                               {"compute_minor", device->compute_minor()},
                               {"multiprocessors", device->multiprocessors()},
                               {"total_memory", device->total_memory()}});
  }
  json["threads"] = summary.threads;
  json["streams"] = summary.streams;
  json["modules"] = {{"count", summary.modules},
                     {"images", summary.images},
                     {"image_bytes", summary.image_bytes},
                     {"stored_image_bytes", summary.stored_image_bytes}};
  Json copies = Json::object();
  for (const auto& [kind, use] : summary.copies) {
    copies[EnumText(kind, fb::EnumNameMemcpyKind(kind))] = {
        {"count", use.count}, {"bytes", use.bytes}};
  }
  json["work"] = {{"launches", summary.launches},
                  {"captured_launches", summary.captured_launches},
                  {"failed", summary.failed},
                  {"copies", copies},
                  {"fills", summary.fills},
                  {"host_functions", summary.host_functions}};
  json["graphs"] = {{"count", summary.graphs},
                    {"nodes", summary.graph_nodes},
                    {"instances", summary.graph_instances},
                    {"launches", summary.graph_launches},
                    {"kernels_run", summary.graph_kernels}};
  Json memory = Json::object();
  for (const auto& [kind, use] : summary.memory) {
    memory[EnumText(kind, fb::EnumNameMemoryKind(kind))] = {
        {"allocations", use.allocations},
        {"live_bytes", use.live},
        {"peak_bytes", use.peak}};
  }
  json["memory"] = {{"kinds", memory}, {"device_peak", summary.device_peak}};
  json["steps"] = StepsJson(summary, names);
  json["snapshots"] = Json::array();
  for (const SnapshotUse& use : summary.snapshots) {
    json["snapshots"].push_back(
        {{"call", use.record},
         {"step", use.snapshot->step()},
         {"when", EnumText(use.snapshot->when(),
                           fb::EnumNameSnapshotWhen(use.snapshot->when()))},
         {"policy", Text(use.snapshot->policy())},
         {"ranges", use.ranges},
         {"complete",
          use.snapshot->complete() && use.ranges == use.snapshot->ranges()},
         {"exact_bytes", use.exact},
         {"zero_bytes", use.zero},
         {"described_bytes", use.described}});
  }
  json["unsupported"] = Json::object();
  for (const auto& [api, count] : summary.unsupported) {
    json["unsupported"][api] = count;
  }
  json["notes"] = Json::array();
  for (const fb::Note* note : summary.notes) {
    json["notes"].push_back(Text(note->text()));
  }
  json["kernels"] = KernelsJson(summary, names);
  return json;
}

}  // namespace heddle::tools
