// SPDX-License-Identifier: Apache-2.0
#include "tools/command.h"

namespace heddle::tools {

absl::Span<const Command* const> Commands() {
  // In the order of a session: record, look, take apart, replay; then live.
  static const Command* const kCommands[] = {
      &RecordCommand(), &InfoCommand(),    &DumpCommand(), &ConvertCommand(),
      &GraphCommand(),  &ExplainCommand(), &DiffCommand(), &TrimCommand(),
      &PackCommand(),   &PlanCommand(),    &ProbeCommand(),
#ifdef HEDDLE_HAVE_CMD_REPLAY
      &ReplayCommand(),
#endif
#ifdef HEDDLE_HAVE_CMD_DOCTOR
      &DoctorCommand(),
#endif
      &RunCommand(),    &ReportCommand(),
  };
  return kCommands;
}

}  // namespace heddle::tools
