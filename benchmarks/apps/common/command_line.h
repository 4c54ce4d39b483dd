// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_COMMAND_LINE_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_COMMAND_LINE_H_

// Command lines of the sample programs: a table of options, each with what it
// takes, what it does and how it is explained.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace apps {

// Stores an option's value, or says what the option wants ("wants a number").
using OptionHandler = std::function<absl::Status(const std::string& value)>;

struct Option {
  const char* section;   // heading in --help; nullptr: that of the one before
  const char* name;      // with its dashes
  const char* argument;  // what it takes, for --help; nullptr: nothing
  const char* help;
  OptionHandler apply;
};

// Applies `args` (without the program's name) in order. Takes "--name value"
// and "--name=value". InvalidArgument names the option.
absl::Status ParseCommandLine(const std::vector<Option>& options,
                              const std::vector<std::string>& args);

// The option table as text within 80 columns.
std::string OptionsText(const std::vector<Option>& options);

// Handlers. The targets must outlive them.
OptionHandler SetInt(int* target, int low, int high);
OptionHandler SetCount(int* target);  // 1 and more
OptionHandler SetPositive(float* target);
OptionHandler SetSeed(uint64_t* target);
OptionHandler SetFlag(bool* target);
OptionHandler SetPath(std::string* target);

template <typename T>
OptionHandler SetChoice(T* target,
                        std::vector<std::pair<std::string, T>> choices) {
  return [target, choices = std::move(choices)](const std::string& value) {
    std::vector<std::string> names;
    for (const auto& [name, choice] : choices) {
      if (value == name) {
        *target = choice;
        return absl::OkStatus();
      }
      names.push_back(name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("wants one of ", absl::StrJoin(names, ", ")));
  };
}

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_COMMAND_LINE_H_
