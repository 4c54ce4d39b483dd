// SPDX-License-Identifier: Apache-2.0
#include "tools/chrome_export.h"

#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tools/launch_json.h"

namespace heddle::tools {
namespace {

// Lanes are "threads" of one "process" each.
constexpr int kHost = 1;
constexpr int kStreams = 2;
constexpr int kSteps = 3;

// Calls have no recorded end. They are drawn this long, in microseconds, so
// that arrows can start from them.
constexpr double kCallUs = 0.2;

double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

class ChromeExport {
 public:
  ChromeExport(const trace::Reader& reader, bool mangled,
               const std::function<void(const std::string&)>& write)
      : reader_(reader), context_(reader, mangled), write_(write) {}

  void Run(const trace::StepList& steps,
           const std::function<bool(const trace::Record&)>& wanted) {
    write_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    Name("process_name", kHost, 0, "host threads");
    Name("process_name", kStreams, 0, "streams (order of submission)");
    for (const trace::Record& record : reader_.records()) {
      if (wanted(record)) Add(record);
      context_.Follow(record);
      Count(record);
    }
    if (!steps.steps.empty()) AddSteps(steps);
    write_("\n]}\n");
  }

 private:
  void Event(const Json& event) {
    write_(absl::StrCat(first_ ? "" : ",\n", DumpJson(event)));
    first_ = false;
  }

  void Name(const char* what, int process, uint64_t lane,
            const std::string& name) {
    Event({{"ph", "M"},
           {"name", what},
           {"pid", process},
           {"tid", lane},
           {"args", {{"name", name}}}});
  }

  uint64_t ThreadLane(uint32_t thread) {
    if (threads_.insert({thread, true}).second) {
      Name("thread_name", kHost, thread, absl::StrCat("thread ", thread));
    }
    return thread;
  }

  uint64_t StreamLane(uint64_t handle) {
    const auto [found, is_new] = streams_.try_emplace(handle, streams_.size());
    if (is_new) {
      Name("thread_name", kStreams, found->second,
           absl::StrCat("stream ", Hex(handle)));
    }
    return found->second;
  }

  // A call on its thread's lane; in a stream, if it is work, with an arrow.
  void Call(const trace::Record& record, const std::string& name,
            const Json& args, const uint64_t* stream) {
    const fb::Stamp* stamp = StampOf(record);
    if (stamp == nullptr) return;
    const double at = Microseconds(stamp->time_ns());
    const uint64_t thread = ThreadLane(stamp->thread());
    Json slice = {{"ph", "X"},     {"name", name}, {"pid", kHost},
                  {"tid", thread}, {"ts", at},     {"dur", kCallUs},
                  {"args", args}};
    Event(slice);
    if (stream == nullptr) return;
    const uint64_t lane = StreamLane(*stream);
    slice["pid"] = kStreams;
    slice["tid"] = lane;
    Event(slice);
    Json arrow = {{"ph", "s"},       {"name", "submit"},
                  {"cat", "submit"}, {"id", record.index},
                  {"pid", kHost},    {"tid", thread},
                  {"ts", at}};
    Event(arrow);
    arrow["ph"] = "f";
    arrow["bp"] = "e";
    arrow["pid"] = kStreams;
    arrow["tid"] = lane;
    Event(arrow);
  }

  void Add(const trace::Record& record) {
    if (const auto* range = record.As<fb::Range>(); range != nullptr) {
      AddRange(*range);
      return;
    }
    uint64_t stream = 0;
    const std::string type = trace::RecordTypeName(record.type);
    Json args = {{"call", record.index}};
    if (const auto* launch = record.As<fb::Launch>(); launch != nullptr) {
      if (launch->head() == nullptr) return;
      stream = launch->head()->stream();
      // Kineto's names.
      const fb::Dim3& grid = launch->head()->grid();
      const fb::Dim3& block = launch->head()->block();
      args["grid"] = {grid.x(), grid.y(), grid.z()};
      args["block"] = {block.x(), block.y(), block.z()};
      args["shared memory"] = launch->head()->shared_bytes();
      args["stream"] = Hex(stream);
      if (launch->capturing()) args["capturing"] = true;
      Call(record, context_.names().Name(launch->head()->kernel()), args,
           &stream);
    } else if (const auto* copy = record.As<fb::Memcpy>(); copy != nullptr) {
      stream = copy->stream();
      args["bytes"] = copy->width() * copy->height() * copy->depth();
      Call(record,
           absl::StrCat(
               "memcpy ",
               EnumText(copy->kind(), fb::EnumNameMemcpyKind(copy->kind()))),
           args, &stream);
    } else if (const auto* fill = record.As<fb::Memset>(); fill != nullptr) {
      stream = fill->stream();
      args["bytes"] = fill->width() * fill->height() * fill->element_size();
      Call(record, type, args, &stream);
    } else if (const auto* start = record.As<fb::GraphLaunch>();
               start != nullptr) {
      stream = start->stream();
      args["graph"] = start->graph();
      Call(record, absl::StrCat("graph ", start->graph()), args, &stream);
    } else if (const auto* host = record.As<fb::HostFunc>(); host != nullptr) {
      stream = host->stream();
      Call(record, type, args, &stream);
    } else if (record.type == fb::RecordType::kSync ||
               record.type == fb::RecordType::kAlloc ||
               record.type == fb::RecordType::kFree ||
               record.type == fb::RecordType::kEvent ||
               record.type == fb::RecordType::kModule ||
               record.type == fb::RecordType::kGraphExec) {
      Call(record, type, args, nullptr);
    }
  }

  void AddRange(const fb::Range& range) {
    if (range.stamp() == nullptr) return;
    const double at = Microseconds(range.stamp()->time_ns());
    const uint64_t lane = ThreadLane(range.stamp()->thread());
    const char* phase = "i";
    switch (range.op()) {
      case fb::RangeOp::kPush:
        phase = "B";
        break;
      case fb::RangeOp::kPop:
        phase = "E";
        break;
      case fb::RangeOp::kStart:
        phase = "b";
        break;
      case fb::RangeOp::kEnd:
        phase = "e";
        break;
      case fb::RangeOp::kMark:
        break;
    }
    Json event = {{"ph", phase},   {"name", Text(range.name())},
                  {"cat", "nvtx"}, {"pid", kHost},
                  {"tid", lane},   {"ts", at}};
    if (phase[0] == 'b' || phase[0] == 'e') event["id"] = range.id();
    if (phase[0] == 'i') event["s"] = "t";
    Event(event);
  }

  void Count(const trace::Record& record) {
    const auto* alloc = record.As<fb::Alloc>();
    const auto* free = record.As<fb::Free>();
    const fb::Stamp* stamp = StampOf(record);
    if (stamp == nullptr || (alloc == nullptr && free == nullptr)) return;
    const auto on_device = [](fb::MemoryKind kind) {
      return kind != fb::MemoryKind::kHost && kind != fb::MemoryKind::kIpc;
    };
    if (alloc != nullptr) {
      if (!on_device(alloc->kind())) return;
      live_bytes_ += alloc->size();
      live_[alloc->address()] = alloc->size();
    } else {
      const auto found = live_.find(free->address());
      if (found == live_.end()) return;
      live_bytes_ -= found->second;
      live_.erase(found);
    }
    Event({{"ph", "C"},
           {"name", "device memory"},
           {"pid", kHost},
           {"ts", Microseconds(stamp->time_ns())},
           {"args", {{"bytes", live_bytes_}}}});
  }

  void AddSteps(const trace::StepList& list) {
    Name("process_name", kSteps, 0, absl::StrCat("steps (", list.source, ")"));
    for (size_t i = 0; i < list.steps.size(); ++i) {
      const trace::Step& step = list.steps[i];
      // The first and last records that have a time.
      const fb::Stamp* begin = nullptr;
      const fb::Stamp* end = nullptr;
      for (uint64_t r = step.first_record;
           begin == nullptr && r < step.end_record; ++r) {
        begin = StampOf(reader_.records()[r]);
      }
      for (uint64_t r = step.end_record;
           end == nullptr && r-- > step.first_record;) {
        end = StampOf(reader_.records()[r]);
      }
      if (begin == nullptr || end == nullptr) continue;
      const double at = Microseconds(begin->time_ns());
      Event({{"ph", "X"},
             {"name", absl::StrCat("step ", i)},
             {"pid", kSteps},
             {"tid", 0},
             {"ts", at},
             {"dur", Microseconds(end->time_ns()) - at + kCallUs},
             {"args", {{"launches", step.launches}}}});
    }
  }

  const trace::Reader& reader_;
  RecordContext context_;
  const std::function<void(const std::string&)>& write_;
  bool first_ = true;
  std::map<uint32_t, bool> threads_;
  std::map<uint64_t, uint64_t> streams_;
  absl::flat_hash_map<uint64_t, uint64_t> live_;
  uint64_t live_bytes_ = 0;
};

}  // namespace

void ExportChrome(const trace::Reader& reader, const trace::StepList& steps,
                  const std::function<bool(const trace::Record&)>& wanted,
                  bool mangled,
                  const std::function<void(const std::string&)>& write) {
  ChromeExport(reader, mangled, write).Run(steps, wanted);
}

}  // namespace heddle::tools
