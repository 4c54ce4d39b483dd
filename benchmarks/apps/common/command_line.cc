// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/common/command_line.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace apps {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr size_t kHelpColumn = 22;
constexpr size_t kColumns = 80;

const Option* FindOption(const std::vector<Option>& options,
                         absl::string_view name) {
  for (const Option& option : options) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

void AppendOption(const Option& option, std::string* text) {
  std::string line = absl::StrCat("  ", option.name);
  if (option.argument != nullptr) absl::StrAppend(&line, " ", option.argument);
  line.resize(std::max(line.size() + 1, kHelpColumn), ' ');
  bool first = true;
  for (const absl::string_view word : absl::StrSplit(option.help, ' ')) {
    if (!first && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(text, line, "\n");
      line = std::string(kHelpColumn, ' ');
      first = true;
    }
    absl::StrAppend(&line, first ? "" : " ", word);
    first = false;
  }
  absl::StrAppend(text, line, "\n");
}

}  // namespace

absl::Status ParseCommandLine(const std::vector<Option>& options,
                              const std::vector<std::string>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const std::vector<std::string> parts =
        absl::StrSplit(args[i], absl::MaxSplits('=', 1));
    const Option* option = FindOption(options, parts[0]);
    if (option == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown option \"", args[i], "\"; --help lists the options"));
    }
    std::string value;
    if (parts.size() > 1) {
      value = parts[1];
      if (option->argument == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat(option->name, " takes no value"));
      }
    } else if (option->argument != nullptr) {
      if (i + 1 == args.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(option->name, " wants a value: ", option->help));
      }
      value = args[++i];
    }
    const absl::Status status = option->apply(value);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(option->name, " \"", value, "\": ", status.message()));
    }
  }
  return absl::OkStatus();
}

std::string OptionsText(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options) {
    if (option.section != nullptr) {
      absl::StrAppend(&text, "\n", option.section, ":\n");
    }
    AppendOption(option, &text);
  }
  return text;
}

OptionHandler SetInt(int* target, int low, int high) {
  return [=](const std::string& value) {
    int parsed = 0;
    if (!absl::SimpleAtoi(value, &parsed) || parsed < low || parsed > high) {
      return absl::InvalidArgumentError(
          high == kMaxInt
              ? absl::StrCat("wants a whole number of at least ", low)
              : absl::StrCat("wants a whole number from ", low, " to ", high));
    }
    *target = parsed;
    return absl::OkStatus();
  };
}

OptionHandler SetCount(int* target) { return SetInt(target, 1, kMaxInt); }

OptionHandler SetPositive(float* target) {
  return [=](const std::string& value) {
    float parsed = 0;
    if (!absl::SimpleAtof(value, &parsed) || !std::isfinite(parsed) ||
        parsed <= 0) {
      return absl::InvalidArgumentError("wants a number above 0");
    }
    *target = parsed;
    return absl::OkStatus();
  };
}

OptionHandler SetSeed(uint64_t* target) {
  return [=](const std::string& value) {
    if (absl::SimpleAtoi(value, target)) return absl::OkStatus();
    return absl::InvalidArgumentError("wants a whole number of at least 0");
  };
}

OptionHandler SetFlag(bool* target) {
  return [=](const std::string&) {
    *target = true;
    return absl::OkStatus();
  };
}

OptionHandler SetPath(std::string* target) {
  return [=](const std::string& value) {
    if (value.empty()) return absl::InvalidArgumentError("wants a file name");
    *target = value;
    return absl::OkStatus();
  };
}

}  // namespace apps
