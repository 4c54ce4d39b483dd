// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/command.h"
#include "tools/diff.h"
#include "tools/record_json.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

struct DiffFlags {
  std::string calls;
  std::string calls_b;
  std::string by = "auto";
  int64_t limit = 100;
  bool exact = false;
  bool json = false;
  bool mangled = false;
};

absl::StatusOr<std::function<bool(uint64_t)>> Selection(
    const trace::Reader& reader, const std::string& calls,
    const std::string& by) {
  if (calls.empty()) return std::function<bool(uint64_t)>();
  absl::StatusOr<CallSet> set = CallSet::Parse(
      calls, [&] { return trace::FindSteps(reader, {.by = by}); });
  if (!set.ok()) {
    return absl::Status(
        set.status().code(),
        absl::StrCat(reader.path(), ": ", set.status().message()));
  }
  return std::function<bool(uint64_t)>(
      [set = *std::move(set)](uint64_t record) {
        return set.Contains(record);
      });
}

const char* KindName(Difference::Kind kind) {
  switch (kind) {
    case Difference::Kind::kRemoved:
      return "removed";
    case Difference::Kind::kAdded:
      return "added";
    case Difference::Kind::kChanged:
      return "changed";
  }
  return "";
}

void PrintText(const DiffResult& result, const trace::Reader& a,
               const trace::Reader& b, int64_t limit) {
  if (result.same()) {
    std::printf("same: %llu operations\n",
                static_cast<unsigned long long>(result.operations_a));
    return;
  }
  std::string text = absl::StrCat("--- ", a.path(), "\n+++ ", b.path(), "\n");
  int64_t shown = 0;
  for (const Difference& difference : result.differences) {
    if (limit > 0 && shown++ == limit) {
      absl::StrAppend(&text, "... ", result.differences.size() - limit,
                      " more differences (--limit 0 shows all)\n");
      break;
    }
    switch (difference.kind) {
      case Difference::Kind::kRemoved:
        absl::StrAppend(&text, "- ", *difference.a, "  ", difference.text_a,
                        "\n");
        break;
      case Difference::Kind::kAdded:
        absl::StrAppend(&text, "+ ", *difference.b, "  ", difference.text_b,
                        "\n");
        break;
      case Difference::Kind::kChanged:
        absl::StrAppend(&text, "~ ", *difference.a, "/", *difference.b, "  ",
                        difference.text_a, "\n");
        for (const std::string& change : difference.changes) {
          absl::StrAppend(&text, "      ", change, "\n");
        }
        break;
    }
  }
  absl::StrAppend(&text, "differ: ", result.removed, " removed, ", result.added,
                  " added, ", result.changed, " changed, of ",
                  result.operations_a, " and ", result.operations_b,
                  " operations\n");
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void PrintJson(const DiffResult& result) {
  Json json = {{"same", result.same()},
               {"operations_a", result.operations_a},
               {"operations_b", result.operations_b},
               {"removed", result.removed},
               {"added", result.added},
               {"changed", result.changed}};
  json["differences"] = Json::array();
  for (const Difference& difference : result.differences) {
    Json item = {{"kind", KindName(difference.kind)}};
    if (difference.a.has_value()) {
      item["call_a"] = *difference.a;
      item["text_a"] = difference.text_a;
    }
    if (difference.b.has_value()) {
      item["call_b"] = *difference.b;
      item["text_b"] = difference.text_b;
    }
    if (!difference.changes.empty()) item["changes"] = difference.changes;
    json["differences"].push_back(item);
  }
  std::printf("%s\n", DumpJson(json, 2).c_str());
}

absl::StatusOr<int> Run(Invocation& call) {
  DiffFlags options;
  call.flags()
      .String("calls", "SET", &options.calls, "compare these records of A")
      .String("calls-b", "SET", &options.calls_b,
              "and these of B (default: those of --calls)")
      .String("by", "SOURCE", &options.by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], "
              "repeat[:N]")
      .Bool("exact", &options.exact,
            "compare addresses as numbers, too, not as places in buffers")
      .Int("limit", "N", &options.limit, "differences to print, 0 = all")
      .Bool("json", &options.json, "one JSON object with all differences")
      .Bool("mangled", &options.mangled,
            "kernel names as they are in the image");
  if (std::optional<int> exit = call.Parse({.min = 2, .max = 2})) return *exit;
  if (!call.flags().WasSet("calls-b")) options.calls_b = options.calls;

  auto a = OpenTrace(call.positional()[0]);
  if (!a.ok()) return a.status();
  auto b = OpenTrace(call.positional()[1]);
  if (!b.ok()) return b.status();
  DiffOptions diff;
  diff.exact = options.exact;
  diff.mangled = options.mangled;
  auto in_a = Selection(**a, options.calls, options.by);
  if (!in_a.ok()) return in_a.status();
  diff.in_a = *std::move(in_a);
  auto in_b = Selection(**b, options.calls_b, options.by);
  if (!in_b.ok()) return in_b.status();
  diff.in_b = *std::move(in_b);

  const DiffResult result = DiffTraces(**a, **b, diff);
  if (options.json) {
    PrintJson(result);
  } else {
    PrintText(result, **a, **b, options.limit);
  }
  return result.same() ? kExitOk : kExitNo;
}

}  // namespace

const Command& DiffCommand() {
  static const std::string& help = *new std::string(absl::StrCat(
      "Aligns the launches, copies, fills and graph launches of two traces by "
      "what they\nare, and compares each pair: shape, stream, parameters, "
      "copied bytes. Addresses are\ncompared as places in buffers (the 12th "
      "allocation here against the 12th there);\ntimes and handles do not "
      "count. Exit code 0: the same, 1: they differ, 2: an error.\n\nTwo "
      "steps of one trace: heddle diff --calls step3 --calls-b step4 T T\n\n",
      kCallSetHelp));
  static const Command kCommand = {.name = "diff",
                                   .synopsis = "compare what two traces do",
                                   .arguments = "[flags] A B",
                                   .help = help.c_str(),
                                   .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
