// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_FLAGS_H_
#define HEDDLE_TOOLS_FLAGS_H_

// Flags of a verb. Abseil's flags are global to a process, so every verb would
// show the flags of all others; these belong to one invocation and write to
// variables of the verb.
//
// Syntax: --name=value, --name value, --name and --no-name for booleans, and a
// one-letter short form where one is given (-o FILE, -oFILE). Flags and other
// words may be mixed; "--" ends them. Names are matched exactly.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::tools {

class FlagSet {
 public:
  // Each `value` holds the default, shown in the help, and must outlive Parse.
  // `metavar` names the value in the help, e.g. "FILE".
  FlagSet& Bool(const char* name, bool* value, const char* help);
  FlagSet& String(const char* name, const char* metavar, std::string* value,
                  const char* help);
  // Decimal, or hexadecimal with 0x; K, M and G suffixes multiply by 1024^n. A
  // negative default is not shown in the help.
  FlagSet& Int(const char* name, const char* metavar, int64_t* value,
               const char* help);
  FlagSet& Double(const char* name, const char* metavar, double* value,
                  const char* help);
  // Comma-separated; a repeated flag adds to the list.
  FlagSet& List(const char* name, const char* metavar,
                std::vector<std::string>* value, const char* help);
  FlagSet& Choice(const char* name, std::initializer_list<const char*> choices,
                  std::string* value, const char* help);
  // One-letter short form of the flag declared last.
  FlagSet& Short(char letter);

  struct Parsed {
    std::vector<std::string> positional;
    std::vector<std::string> rest;  // after "--"
    bool has_rest = false;          // "--" was there
    bool help = false;              // --help or -h was there; nothing else is
                                    // set after it
  };
  // Errors: InvalidArgument with what is wrong with which flag.
  absl::StatusOr<Parsed> Parse(absl::Span<const std::string> args) const;

  // Whether the last Parse set the flag (not: whether it differs from the
  // default).
  bool WasSet(const std::string& name) const;

  // "  --name VALUE  help (default: x)" lines for all flags, in order; empty
  // if there are none.
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    char letter = 0;
    std::string metavar;  // empty: boolean, takes no value
    std::string help;
    std::string default_text;
    std::function<absl::Status(const std::string& value)> set;
    mutable bool was_set = false;
  };

  Flag& Add(const char* name, const char* metavar, const char* help,
            std::string default_text,
            std::function<absl::Status(const std::string&)> set);
  const Flag* Find(const std::string& name) const;
  absl::Status Set(const Flag& flag, const std::string& shown,
                   const std::string& value) const;
  absl::Status UnknownFlag(const std::string& shown) const;

  std::vector<Flag> flags_;
};

// Number of insertions, deletions, replacements and swaps of neighbours that
// turn `a` into `b`. For "did you mean".
int EditDistance(const std::string& a, const std::string& b);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_FLAGS_H_
