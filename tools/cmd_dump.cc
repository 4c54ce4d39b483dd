// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/command.h"
#include "tools/record_json.h"
#include "tools/record_text.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

absl::StatusOr<int> Run(Invocation& call) {
  RecordFilter filter;
  bool json = false;
  bool mangled = false;
  filter.Declare(&call.flags());
  call.flags()
      .Bool("json", &json, "JSON Lines instead of text")
      .Bool("mangled", &mangled, "kernel names as they are in the image");
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;

  auto opened = OpenTrace(call.positional()[0]);
  if (!opened.ok()) return opened.status();
  const trace::Reader& reader = **opened;
  if (absl::Status status = filter.Prepare(reader); !status.ok()) {
    return status;
  }
  RecordContext context(reader, mangled);
  for (const trace::Record& record : reader.records()) {
    if (record.index > filter.last()) break;
    if (filter.Contains(record, context.names())) {
      const std::string text =
          json
              ? absl::StrCat(DumpJson(RecordToJson(record, context)), "\n")
              : absl::StrCat(record.index, "  ", RecordToText(record, context));
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    context.Follow(record);
  }
  return kExitOk;
}

}  // namespace

const Command& DumpCommand() {
  static const std::string& help = *new std::string(absl::StrCat(
      "Without flags it shows everything. ", kCallSetHelp,
      "\nParameters are shown by what they hold: buf12+0x400 is byte 0x400 of "
      "the 12th\nallocation of the trace, 1.5f a float, 4096 a number, {1720 "
      "B, @16 buf3} a struct\nwith a pointer to the third allocation at byte "
      "16.\n\n--json prints ",
      kRecordJsonHelp));
  static const Command kCommand = {.name = "dump",
                                   .synopsis = "show the records of a trace",
                                   .arguments = "[flags] TRACE",
                                   .help = help.c_str(),
                                   .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
