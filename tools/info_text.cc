// SPDX-License-Identifier: Apache-2.0
#include "tools/info_text.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/launch_json.h"

namespace heddle::tools {
namespace {

// More than these go behind a flag.
constexpr size_t kFewParams = 4;
constexpr size_t kFewNotes = 3;
constexpr size_t kFewUnsupported = 6;
constexpr size_t kNameWidth = 60;

std::string Count(uint64_t count, absl::string_view one,
                  absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string Shorten(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  return absl::StrCat(text.substr(0, width - 3), "...");
}

std::string Duration(uint64_t ns) {
  const double seconds = static_cast<double>(ns) * 1e-9;
  if (seconds >= 1) return absl::StrFormat("%.2f s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.2f ms", seconds * 1e3);
  return absl::StrFormat("%.1f us", seconds * 1e6);
}

std::string UtcTime(uint64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm utc{};
  std::array<char, 32> text{};
  if (gmtime_r(&seconds, &utc) == nullptr) return "?";
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text.data();
}

std::string Command(const fb::Process& process) {
  std::vector<std::string> words;
  if (process.command() != nullptr) {
    for (const auto* word : *process.command()) words.push_back(word->str());
  }
  return absl::StrJoin(words, " ");
}

// One block character for each part of the timeline.
std::string Bars(const std::vector<uint64_t>& parts) {
  static constexpr std::array<const char*, 9> kBars = {
      " ",      "\u2581", "\u2582", "\u2583", "\u2584",
      "\u2585", "\u2586", "\u2587", "\u2588"};
  const uint64_t most = *std::max_element(parts.begin(), parts.end());
  std::string text;
  for (const uint64_t part : parts) {
    text += kBars[part == 0 ? 0 : 1 + part * 7 / most];
  }
  return text;
}

class InfoWriter {
 public:
  InfoWriter(const trace::Reader& reader, const Summary& summary,
             const KernelNames& names)
      : reader_(reader), summary_(summary), names_(names) {}

  std::string Write(const InfoDetail& detail) {
    File();
    Program();
    Code();
    Work();
    Memory();
    Steps(detail.params);
    Snapshots();
    Problems();
    Timeline();
    if (detail.steps) ListSteps();
    if (detail.kernels) ListKernels();
    return std::move(text_);
  }

 private:
  // A line of the overview. Without a label it continues the one before.
  void Line(absl::string_view label, absl::string_view value) {
    absl::StrAppend(&text_, "  ", absl::StrFormat("%-11s ", label),
                    Printable(value), "\n");
  }

  void File() {
    absl::StrAppend(&text_, reader_.path(), ": ", Bytes(reader_.file_size()),
                    ", ", Count(reader_.records().size(), "record", "records"),
                    ", ", reader_.truncated() ? "TRUNCATED" : "complete", "\n");
    if (reader_.truncated()) Line("truncated", reader_.truncation());
    if (!summary_.end_reason.empty()) Line("ended", summary_.end_reason);
  }

  void Program() {
    Line("recorded",
         absl::StrCat(UtcTime(reader_.header().start_unix_ns), ", ",
                      Duration(summary_.end_ns), ", ",
                      Count(summary_.threads, "thread", "threads")));
    if (const fb::Process* process = summary_.process; process != nullptr) {
      std::string where = absl::StrCat("pid ", process->pid());
      if (!Text(process->host()).empty()) {
        absl::StrAppend(&where, " on ", Text(process->host()));
      }
      if (process->rank() >= 0) {
        absl::StrAppend(&where, ", rank ", process->rank());
      }
      Line("program", absl::StrCat(Shorten(Command(*process), kNameWidth),
                                   "  (", where, ")"));
      if (!Text(process->options()).empty()) {
        Line("options", Text(process->options()));
      }
    }
    for (const fb::Device* device : summary_.devices) {
      const int driver =
          summary_.process == nullptr ? 0 : summary_.process->driver_version();
      std::string text = absl::StrFormat(
          "%s, sm_%d%d, %d multiprocessors, %s", Text(device->name()),
          device->compute_major(), device->compute_minor(),
          device->multiprocessors(), Bytes(device->total_memory()));
      if (driver != 0) {
        absl::StrAppendFormat(&text, ", CUDA %d.%d", driver / 1000,
                              driver % 1000 / 10);
      }
      Line("device", text);
    }
  }

  void Code() {
    Line("modules",
         absl::StrCat(Count(summary_.modules, "module", "modules"), ", ",
                      Count(summary_.images, "image", "images"), " of ",
                      Bytes(summary_.image_bytes), ", ",
                      Bytes(summary_.stored_image_bytes), " kept"));
    Line("kernels", absl::StrCat(summary_.kernel_uses.size(), " run, ",
                                 summary_.kernels, " described"));
  }

  void Work() {
    std::string launches = Count(summary_.launches, "launch", "launches");
    absl::StrAppend(&launches, ", ", Count(summary_.fills, "fill", "fills"));
    for (const auto& [kind, use] : summary_.copies) {
      absl::StrAppend(&launches, ", ", use.count, " ",
                      EnumText(kind, fb::EnumNameMemcpyKind(kind)), " (",
                      Bytes(use.bytes), ")");
    }
    absl::StrAppend(&launches, ", on ",
                    Count(summary_.streams, "stream", "streams"));
    Line("work", launches);
    if (summary_.host_functions != 0) {
      Line("",
           Count(summary_.host_functions, "host function", "host functions"));
    }
    if (summary_.captured_launches != 0) {
      Line("",
           absl::StrCat(Count(summary_.captured_launches, "launch", "launches"),
                        " captured into graphs"));
    }
    if (summary_.failed != 0) {
      Line("", absl::StrCat(summary_.failed, " refused by the driver"));
    }
    if (summary_.graphs != 0 || summary_.graph_launches != 0) {
      Line("graphs",
           absl::StrCat(Count(summary_.graphs, "graph", "graphs"), " with ",
                        Count(summary_.graph_nodes, "node", "nodes"), ", ",
                        summary_.graph_launches, " launched, ",
                        summary_.graph_kernels, " kernels run by them"));
    }
  }

  void Memory() {
    std::string label = "memory";
    for (const auto& [kind, use] : summary_.memory) {
      Line(label,
           absl::StrFormat("%-8s %s, peak %s",
                           EnumText(kind, fb::EnumNameMemoryKind(kind)),
                           Count(use.allocations, "allocation", "allocations"),
                           Bytes(use.peak)));
      label.clear();
    }
    if (summary_.memory.size() > 1) {
      Line(label, absl::StrCat("on the device together: peak ",
                               Bytes(summary_.device_peak)));
    }
  }

  void Steps(bool all_params) {
    const trace::StepList& list = summary_.steps;
    Line("steps", StepsToText(list));
    if (list.steps.empty()) return;
    const trace::StepParams& params = summary_.step_params;
    if (params.steps < 2) return;
    Line("", absl::StrCat("parameters in ", params.steps,
                          " alike: ", params.constant, " constant, ",
                          params.affine, " affine, ", params.other, " other"));
    size_t shown = 0;
    for (const trace::VaryingWord& word : params.varying) {
      if (!all_params && shown == kFewParams) {
        Line("", absl::StrCat("  and ", params.varying.size() - shown,
                              " more (--params)"));
        break;
      }
      ++shown;
      const size_t width = all_params ? std::string::npos : kNameWidth - 20;
      std::string what = absl::StrCat("  launch ", word.launch, ", ",
                                      Shorten(names_.Name(word.kernel), width));
      if (word.param != ~uint32_t{0}) {
        absl::StrAppend(&what, ", parameter ", word.param);
      }
      const fb::Kernel* kernel = names_.Find(word.kernel);
      const bool known = kernel != nullptr && kernel->params() != nullptr &&
                         word.param < kernel->params()->size();
      const uint32_t start =
          known ? kernel->params()->Get(word.param)->offset() : 0;
      if (!known || kernel->params()->Get(word.param)->size() != word.size) {
        absl::StrAppend(&what, " byte ", word.offset - start);
      }
      if (word.variation == trace::Variation::kAffine) {
        absl::StrAppend(&what, ": ", FirstValue(word),
                        word.slope < 0 ? " - " : " + ",
                        word.slope < 0 ? 0 - static_cast<uint64_t>(word.slope)
                                       : static_cast<uint64_t>(word.slope),
                        " * step");
      } else {
        what += ": other";
      }
      Line("", what);
    }
  }

  static std::string FirstValue(const trace::VaryingWord& word) {
    return word.first < (1 << 24) ? absl::StrCat(word.first) : Hex(word.first);
  }

  void Snapshots() {
    std::string label = "snapshots";
    for (const SnapshotUse& use : summary_.snapshots) {
      std::string text = absl::StrCat(
          "record ", use.record, ": ", Count(use.ranges, "range", "ranges"),
          ", ", Bytes(use.exact), " exact, ", Bytes(use.zero), " zero, ",
          Bytes(use.described), " described");
      for (size_t i = 0; i < summary_.steps.steps.size(); ++i) {
        if (summary_.steps.steps[i].snapshot_record == use.record) {
          absl::StrAppend(&text, ", begin of step ", i);
        }
      }
      if (use.ranges < use.snapshot->ranges() || !use.snapshot->complete()) {
        text += ", INCOMPLETE";
      }
      Line(label, text);
      label.clear();
    }
  }

  void Problems() {
    if (summary_.unsupported.empty()) {
      Line("unsupported", "nothing");
    } else {
      std::vector<std::string> calls;
      for (const auto& [api, count] : summary_.unsupported) {
        if (calls.size() == kFewUnsupported) {
          calls.push_back(absl::StrCat(
              "and ", summary_.unsupported.size() - kFewUnsupported,
              " more (heddle dump --type unsupported)"));
          break;
        }
        calls.push_back(count == 1 ? api : absl::StrCat(api, " x ", count));
      }
      Line("unsupported", absl::StrJoin(calls, ", "));
    }
    std::string label = "notes";
    for (size_t i = 0; i < summary_.notes.size(); ++i) {
      if (i == kFewNotes) {
        Line("", absl::StrCat("and ", summary_.notes.size() - i,
                              " more (heddle dump --type note)"));
        break;
      }
      Line(label, Text(summary_.notes[i]->text()));
      label.clear();
    }
  }

  void Timeline() {
    const std::vector<uint64_t>& parts = summary_.timeline;
    if (std::all_of(parts.begin(), parts.end(),
                    [](uint64_t part) { return part == 0; })) {
      return;
    }
    Line("timeline", absl::StrCat(Bars(parts), "|"));
  }

  void ListSteps() {
    absl::StrAppend(&text_, "\nsteps:\n");
    for (size_t i = 0; i < summary_.steps.steps.size(); ++i) {
      const trace::Step& step = summary_.steps.steps[i];
      std::string notes;
      if (step.snapshot_record != trace::kNoSnapshot) {
        absl::StrAppend(&notes, ", snapshot at ", step.snapshot_record);
      }
      if (step.signature != summary_.steps.signature) {
        notes += ", unlike most";
      }
      absl::StrAppendFormat(&text_, "  %5d  records %d-%d, %s%s\n", i,
                            step.first_record, step.end_record - 1,
                            Count(step.launches, "launch", "launches"), notes);
    }
  }

  void ListKernels() {
    std::vector<std::pair<uint64_t, uint32_t>> uses;
    for (const auto& [id, use] : summary_.kernel_uses) {
      uses.emplace_back(use.launches, id);
    }
    std::sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    absl::StrAppend(&text_, "\nkernels by launches:\n");
    for (const auto& [launches, id] : uses) {
      absl::StrAppendFormat(&text_, "  %8d  %s\n", launches,
                            Printable(names_.Name(id)));
    }
  }

  const trace::Reader& reader_;
  const Summary& summary_;
  const KernelNames& names_;
  std::string text_;
};

}  // namespace

std::string StepsToText(const trace::StepList& list) {
  if (list.steps.empty()) return "none found";
  uint64_t launches = 0;
  for (const trace::Step& step : list.steps) {
    if (step.signature == list.signature) launches = step.launches;
  }
  std::string text =
      absl::StrCat(list.matching, " x ", Count(launches, "launch", "launches"),
                   " (", list.source, ")");
  if (list.matching < list.steps.size()) {
    absl::StrAppend(&text, ", ", list.steps.size() - list.matching, " others");
  }
  if (list.shapes_vary) text += ", shapes vary";
  return text;
}

std::string InfoToText(const trace::Reader& reader, const Summary& summary,
                       const KernelNames& names, const InfoDetail& detail) {
  return InfoWriter(reader, summary, names).Write(detail);
}

}  // namespace heddle::tools
