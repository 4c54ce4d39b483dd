// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_COMMAND_H_
#define HEDDLE_TOOLS_COMMAND_H_

// A verb of the `heddle` command. One verb is one file, tools/cmd_<verb>.cc,
// which defines one function `const Command& <Verb>Command()`:
//
//   namespace heddle::tools {
//   namespace {
//   absl::StatusOr<int> Run(Invocation& call) {
//     bool json = false;
//     call.flags().Bool("json", &json, "print JSON instead of text");
//     if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) {
//       return *exit;  // --help was printed, or the usage error was
//     }
//     ... call.positional()[0] ...
//     return kExitOk;
//   }
//   }  // namespace
//   const Command& FooCommand() {
//     static constexpr Command kCommand = {
//         .name = "foo",
//         .synopsis = "one line that says what it is for",
//         .arguments = "[flags] TRACE",
//         .help = "Paragraphs for `heddle help foo`.\n",
//         .run = &Run};
//     return kCommand;
//   }
//   }  // namespace heddle::tools
//
// Results go to stdout, everything else to stderr. An error status that `run`
// returns is printed as the one line "heddle <verb>: <message>" and becomes
// exit code 2, so a message names the file or object and the next step.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/flags.h"

namespace heddle::tools {

// Exit codes of every verb, as in diff(1). `heddle record`, `heddle run` and
// `heddle doctor` pass on the exit status of the command that they ran.
inline constexpr int kExitOk = 0;
inline constexpr int kExitNo = 1;        // differs, verification failed, "no"
inline constexpr int kExitBadInput = 2;  // usage, unreadable or damaged input

class Invocation;

struct Command {
  const char* name;
  const char* synopsis;   // for the list of verbs: one line, no full stop
  const char* arguments;  // what follows the verb in the usage line
  // Paragraphs below it, with an empty line between them. Broken anew to 80
  // columns, but for lines that begin with a blank.
  const char* help;
  absl::StatusOr<int> (*run)(Invocation& call);
};

// One call of a verb: its flags, and after Parse what they were set to.
class Invocation {
 public:
  // `args` are the words after the verb; `command` outlives the invocation.
  Invocation(const Command& command, std::vector<std::string> args)
      : command_(command), args_(std::move(args)) {}
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // Declare flags here before Parse.
  FlagSet& flags() { return flags_; }

  struct Positionals {
    int min = 0;
    int max = 0;        // of the words that are not flags
    bool rest = false;  // needs a command after "--"
  };
  // Sets the declared flags. nullopt: go on. Otherwise return the value: help
  // was asked for and printed (0), or the arguments are wrong and a line on
  // stderr says how (2).
  std::optional<int> Parse(const Positionals& expected);

  const std::vector<std::string>& positional() const { return positional_; }
  // The words after "--".
  const std::vector<std::string>& rest() const { return rest_; }
  const Command& command() const { return command_; }

  // Prints "heddle <verb>: <message>" with a pointer to the help and returns
  // kExitBadInput, for what flags alone cannot check.
  int UsageError(absl::string_view message) const;

 private:
  const Command& command_;
  std::vector<std::string> args_;
  std::vector<std::string> positional_;
  std::vector<std::string> rest_;
  FlagSet flags_;
};

// All verbs, in the order in which `heddle help` lists them.
absl::Span<const Command* const> Commands();
// The verb of that name, or nullptr.
const Command* FindCommand(const std::string& name);
// The verb nearest to a mistyped name, or nullptr if none is near.
const Command* NearestCommand(const std::string& name);

// The whole command line (argv without the program's name). Returns the exit
// code. Never throws.
int Main(const std::vector<std::string>& args);

const Command& ConvertCommand();
const Command& DiffCommand();
const Command& DoctorCommand();
const Command& DumpCommand();
const Command& ExplainCommand();
const Command& GraphCommand();
const Command& InfoCommand();
const Command& PackCommand();
const Command& PlanCommand();
const Command& ProbeCommand();
const Command& RecordCommand();
const Command& ReplayCommand();
const Command& ReportCommand();
const Command& RunCommand();
const Command& TrimCommand();

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_COMMAND_H_
