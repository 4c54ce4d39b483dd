// SPDX-License-Identifier: Apache-2.0
#include "tools/flags.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace heddle::tools {
namespace {

// Help texts start in this column when the flag's own text leaves room.
constexpr size_t kHelpColumn = 26;
constexpr size_t kHelpWidth = 80;

absl::Status ParseInt(const std::string& text, int64_t* value) {
  std::string digits = text;
  int shift = 0;
  if (!digits.empty()) {
    switch (absl::ascii_toupper(static_cast<unsigned char>(digits.back()))) {
      case 'K':
        shift = 10;
        break;
      case 'M':
        shift = 20;
        break;
      case 'G':
        shift = 30;
        break;
      default:
        break;
    }
  }
  const bool hexadecimal = digits.rfind("0x", 0) == 0;
  if (shift != 0) digits.pop_back();
  int64_t number = 0;
  const bool parsed = hexadecimal ? absl::SimpleHexAtoi(digits, &number)
                                  : absl::SimpleAtoi(digits, &number);
  const int64_t limit = std::numeric_limits<int64_t>::max() >> shift;
  if (!parsed || number > limit || number < -limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a whole number"));
  }
  *value = number * (int64_t{1} << shift);
  return absl::OkStatus();
}

// Appends `text` broken at blanks to lines that start in kHelpColumn. The
// current line of `out` has `used` characters.
void AppendWrapped(const std::string& text, size_t used, std::string* out) {
  if (used + 2 > kHelpColumn) {
    out->push_back('\n');
    used = 0;
  }
  out->append(kHelpColumn - used, ' ');
  size_t column = kHelpColumn;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column > kHelpColumn && column + 1 + word.size() > kHelpWidth) {
      out->push_back('\n');
      out->append(kHelpColumn, ' ');
      column = kHelpColumn;
    } else if (column > kHelpColumn) {
      out->push_back(' ');
      ++column;
    }
    absl::StrAppend(out, word);
    column += word.size();
  }
  out->push_back('\n');
}

}  // namespace

FlagSet::Flag& FlagSet::Add(
    const char* name, const char* metavar, const char* help,
    std::string default_text,
    std::function<absl::Status(const std::string&)> set) {
  Flag flag;
  flag.name = name;
  flag.metavar = metavar;
  flag.help = help;
  flag.default_text = std::move(default_text);
  flag.set = std::move(set);
  flags_.push_back(std::move(flag));
  return flags_.back();
}

FlagSet& FlagSet::Bool(const char* name, bool* value, const char* help) {
  Add(name, "", help, *value ? "yes" : "",
      [value](const std::string& text) -> absl::Status {
        if (text == "true" || text == "yes" || text == "1") {
          *value = true;
        } else if (text == "false" || text == "no" || text == "0") {
          *value = false;
        } else {
          return absl::InvalidArgumentError(
              absl::StrCat("\"", text, "\" is neither true nor false"));
        }
        return absl::OkStatus();
      });
  return *this;
}

FlagSet& FlagSet::String(const char* name, const char* metavar,
                         std::string* value, const char* help) {
  Add(name, metavar, help, *value, [value](const std::string& text) {
    *value = text;
    return absl::OkStatus();
  });
  return *this;
}

FlagSet& FlagSet::Int(const char* name, const char* metavar, int64_t* value,
                      const char* help) {
  // A negative default stands for "not given".
  Add(name, metavar, help, *value < 0 ? "" : absl::StrCat(*value),
      [value](const std::string& text) { return ParseInt(text, value); });
  return *this;
}

FlagSet& FlagSet::Double(const char* name, const char* metavar, double* value,
                         const char* help) {
  Add(name, metavar, help, absl::StrCat(*value),
      [value](const std::string& text) -> absl::Status {
        if (absl::SimpleAtod(text, value)) return absl::OkStatus();
        return absl::InvalidArgumentError(
            absl::StrCat("\"", text, "\" is not a number"));
      });
  return *this;
}

FlagSet& FlagSet::List(const char* name, const char* metavar,
                       std::vector<std::string>* value, const char* help) {
  // The first use replaces the default, later ones add.
  auto first = std::make_shared<bool>(true);
  Add(name, metavar, help, absl::StrJoin(*value, ","),
      [value, first](const std::string& text) {
        if (std::exchange(*first, false)) value->clear();
        for (absl::string_view item :
             absl::StrSplit(text, ',', absl::SkipEmpty())) {
          value->emplace_back(item);
        }
        return absl::OkStatus();
      });
  return *this;
}

FlagSet& FlagSet::Choice(const char* name,
                         std::initializer_list<const char*> choices,
                         std::string* value, const char* help) {
  const std::vector<std::string> allowed(choices.begin(), choices.end());
  const std::string joined = absl::StrJoin(allowed, "|");
  Add(name, joined.c_str(), help, *value,
      [allowed, joined, value](const std::string& text) -> absl::Status {
        if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
          return absl::InvalidArgumentError(
              absl::StrCat("\"", text, "\" is not one of ", joined));
        }
        *value = text;
        return absl::OkStatus();
      });
  return *this;
}

FlagSet& FlagSet::Short(char letter) {
  flags_.back().letter = letter;
  return *this;
}

const FlagSet::Flag* FlagSet::Find(const std::string& name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

bool FlagSet::WasSet(const std::string& name) const {
  const Flag* flag = Find(name);
  return flag != nullptr && flag->was_set;
}

absl::Status FlagSet::Set(const Flag& flag, const std::string& shown,
                          const std::string& value) const {
  const absl::Status status = flag.set(value);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": ", status.message()));
  }
  flag.was_set = true;
  return absl::OkStatus();
}

absl::Status FlagSet::UnknownFlag(const std::string& shown) const {
  const std::string name(absl::StripPrefix(absl::StripPrefix(shown, "-"), "-"));
  const Flag* nearest = nullptr;
  int best = 3;  // more edits than this are no typing error
  for (const Flag& flag : flags_) {
    const int distance = EditDistance(name, flag.name);
    const bool abbreviation = name.size() >= 2 && flag.name.rfind(name, 0) == 0;
    if (distance < best || abbreviation) {
      nearest = &flag;
      best = abbreviation ? 0 : distance;
    }
  }
  std::string message = absl::StrCat("unknown flag ", shown);
  if (nearest != nullptr) {
    absl::StrAppend(&message, ", did you mean --", nearest->name, "?");
  }
  return absl::InvalidArgumentError(message);
}

absl::StatusOr<FlagSet::Parsed> FlagSet::Parse(
    absl::Span<const std::string> args) const {
  for (const Flag& flag : flags_) flag.was_set = false;
  Parsed parsed;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word == "--") {
      parsed.has_rest = true;
      parsed.rest.assign(args.begin() + i + 1, args.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      parsed.positional.push_back(word);
      continue;
    }
    if (word == "--help" || word == "-h") {
      parsed.help = true;
      return parsed;
    }
    const Flag* flag = nullptr;
    std::string shown;  // as the user wrote it, without the value
    std::string value;
    bool has_value = false;
    if (word[1] == '-') {
      const size_t equals = word.find('=');
      shown = word.substr(0, equals);
      if (equals != std::string::npos) {
        value = word.substr(equals + 1);
        has_value = true;
      }
      const std::string name = shown.substr(2);
      flag = Find(name);
      if (flag == nullptr && name.rfind("no-", 0) == 0 && !has_value) {
        flag = Find(name.substr(3));
        if (flag != nullptr && !flag->metavar.empty()) flag = nullptr;
        if (flag != nullptr) {
          value = "false";
          has_value = true;
        }
      }
    } else {
      shown = word.substr(0, 2);
      for (const Flag& candidate : flags_) {
        if (candidate.letter == word[1]) flag = &candidate;
      }
      if (word.size() > 2) {
        value = word.substr(2);
        has_value = true;
        if (flag != nullptr && flag->metavar.empty()) flag = nullptr;
        if (flag == nullptr) shown = word;
      }
    }
    if (flag == nullptr) return UnknownFlag(shown);
    if (!has_value && flag->metavar.empty()) {
      value = "true";
    } else if (!has_value) {
      // A value may begin with a dash (a negative number), but not be one of
      // the flags: then the value was forgotten.
      const bool missing =
          i + 1 == args.size() || args[i + 1] == "--" ||
          (args[i + 1].rfind("--", 0) == 0 &&
           Find(args[i + 1].substr(2, args[i + 1].find('=') - 2)) != nullptr);
      if (missing) {
        return absl::InvalidArgumentError(
            absl::StrCat(shown, " needs a value: ", flag->metavar));
      }
      value = args[++i];
    }
    if (absl::Status status = Set(*flag, shown, value); !status.ok()) {
      return status;
    }
  }
  return parsed;
}

std::string FlagSet::Help() const {
  std::string help;
  for (const Flag& flag : flags_) {
    std::string head = "  ";
    if (flag.letter != 0) {
      absl::StrAppend(&head, "-", std::string(1, flag.letter), ", ");
    }
    absl::StrAppend(&head, "--", flag.name);
    if (!flag.metavar.empty()) absl::StrAppend(&head, " ", flag.metavar);
    std::string text = flag.help;
    if (!flag.default_text.empty()) {
      absl::StrAppend(&text, " (default: ", flag.default_text, ")");
    }
    const size_t used = head.size();
    help += head;
    AppendWrapped(text, used, &help);
  }
  return help;
}

int EditDistance(const std::string& a, const std::string& b) {
  // Optimal string alignment distance, three rows of the usual table.
  std::vector<int> before(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace heddle::tools
