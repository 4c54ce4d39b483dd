// SPDX-License-Identifier: Apache-2.0
#include "tools/command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/trace.h"
#include "tools/version.h"

namespace heddle::tools {
namespace {

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

void PrintError(const std::string& text) { std::fputs(text.c_str(), stderr); }

std::string Overview() {
  std::string text =
      "heddle records the GPU kernels of a CUDA program, shows and replays "
      "what it\nrecorded, and runs programs with their CUDA graphs rewritten "
      "so "
      "that kernels\noverlap.\n\nusage: heddle VERB [flags] ...\n\n";
  for (const Command* command : Commands()) {
    const size_t pad = 10 - std::min<size_t>(9, std::strlen(command->name));
    absl::StrAppend(&text, "  ", command->name, std::string(pad, ' '),
                    command->synopsis, "\n");
  }
  absl::StrAppend(&text,
                  "\n`heddle help VERB` explains a verb and its flags; `heddle "
                  "--version` prints the\nversion. Exit codes: 0 done, 1 the "
                  "answer is no (differs, not verified),\n2 bad usage or "
                  "input.\n");
  return text;
}

// Joins the lines of each paragraph and breaks them to 80 columns. Lines that
// begin with a blank stay.
std::string Wrap(absl::string_view text) {
  constexpr size_t kWidth = 80;
  std::string wrapped;
  size_t column = 0;
  const auto end_line = [&] {
    if (column > 0) wrapped += '\n';
    column = 0;
  };
  for (absl::string_view line :
       absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (line.empty() || line[0] == ' ') {
      end_line();
      absl::StrAppend(&wrapped, line, "\n");
      continue;
    }
    for (absl::string_view word : absl::StrSplit(line, ' ')) {
      if (column + 1 + word.size() > kWidth) end_line();
      absl::StrAppend(&wrapped, column > 0 ? " " : "", word);
      column += word.size() + (column > 0 ? 1 : 0);
    }
  }
  end_line();
  return wrapped;
}

int UnknownVerb(const std::string& name) {
  std::string message = absl::StrCat("heddle: unknown verb \"", name, "\"");
  if (const Command* nearest = NearestCommand(name); nearest != nullptr) {
    absl::StrAppend(&message, ", did you mean \"", nearest->name, "\"?");
  } else {
    message += ";";
  }
  PrintError(absl::StrCat(message, " `heddle help` lists the verbs.\n"));
  return kExitBadInput;
}

int RunCommand(const Command& command, std::vector<std::string> args) {
  Invocation call(command, std::move(args));
  absl::StatusOr<int> result = command.run(call);
  int exit_code = kExitBadInput;
  if (result.ok()) {
    exit_code = *result;
  } else {
    // What was printed so far comes first, also when both go to one terminal.
    std::fflush(stdout);
    PrintError(absl::StrCat("heddle ", command.name, ": ",
                            result.status().message(), "\n"));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    PrintError(absl::StrCat(
        "heddle ", command.name,
        ": cannot write to standard output: ", std::strerror(errno), "\n"));
    return kExitBadInput;
  }
  return exit_code;
}

}  // namespace

std::optional<int> Invocation::Parse(const Positionals& expected) {
  absl::StatusOr<FlagSet::Parsed> parsed = flags_.Parse(args_);
  if (!parsed.ok()) return UsageError(parsed.status().message());
  if (parsed->help) {
    const std::string flag_help = flags_.Help();
    Print(absl::StrCat("heddle ", command_.name, ": ", command_.synopsis,
                       "\n\nusage: heddle ", command_.name, " ",
                       command_.arguments, "\n"));
    if (command_.help[0] != '\0') {
      Print(absl::StrCat("\n", Wrap(command_.help)));
    }
    if (!flag_help.empty()) Print(absl::StrCat("\nflags:\n", flag_help));
    return kExitOk;
  }
  positional_ = std::move(parsed->positional);
  rest_ = std::move(parsed->rest);
  if (expected.rest && rest_.empty()) {
    return UsageError("no command to run: put it after --");
  }
  if (!expected.rest && parsed->has_rest) {
    // "--" only ends the flags here.
    positional_.insert(positional_.end(), rest_.begin(), rest_.end());
    rest_.clear();
  }
  const int count = static_cast<int>(positional_.size());
  if (count > expected.max) {
    return UsageError(absl::StrCat(
        "unexpected argument \"", positional_[expected.max], "\"",
        expected.rest ? "; the command to run goes after --" : ""));
  }
  if (count < expected.min) {
    return UsageError(absl::StrCat("missing argument: heddle ", command_.name,
                                   " ", command_.arguments));
  }
  return std::nullopt;
}

int Invocation::UsageError(absl::string_view message) const {
  PrintError(absl::StrCat("heddle ", command_.name, ": ", message,
                          " (see `heddle help ", command_.name, "`)\n"));
  return kExitBadInput;
}

const Command* FindCommand(const std::string& name) {
  for (const Command* command : Commands()) {
    if (name == command->name) return command;
  }
  return nullptr;
}

const Command* NearestCommand(const std::string& name) {
  const Command* nearest = nullptr;
  int best = 3;  // more edits than this are no typing error
  for (const Command* command : Commands()) {
    const int distance = EditDistance(name, command->name);
    if (distance < best) {
      nearest = command;
      best = distance;
    }
  }
  return nearest;
}

int Main(const std::vector<std::string>& args) {
  if (args.empty()) {
    PrintError(Overview());
    return kExitBadInput;
  }
  const std::string& verb = args[0];
  if (verb == "--version" || verb == "version") {
    Print(absl::StrCat("heddle ", kVersion, " (trace format ",
                       trace::kFormatVersion, ", reads traces that need ",
                       trace::kFormatVersion, " or less)\n"));
    return kExitOk;
  }
  if (verb == "--help" || verb == "-h" || verb == "help") {
    if (verb != "help" || args.size() == 1) {
      Print(Overview());
      return kExitOk;
    }
    const Command* command = FindCommand(args[1]);
    if (command == nullptr) return UnknownVerb(args[1]);
    return RunCommand(*command, {"--help"});
  }
  const Command* command = FindCommand(verb);
  if (command == nullptr) return UnknownVerb(verb);
  return RunCommand(*command,
                    std::vector<std::string>(args.begin() + 1, args.end()));
}

}  // namespace heddle::tools
