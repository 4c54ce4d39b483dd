// SPDX-License-Identifier: Apache-2.0
#include "tools/dot_text.h"

#include "tools/names.h"

namespace heddle::tools {
namespace {

constexpr size_t kLabelWidth = 48;

}  // namespace

std::string DotQuoteLines(const std::vector<std::string>& lines) {
  std::string quoted = "\"";
  for (const std::string& line : lines) {
    if (&line != &lines.front()) quoted += "\\n";
    for (const char c : Printable(line)) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string DotQuote(const std::string& text) { return DotQuoteLines({text}); }

std::string DotShorten(std::string text) {
  if (text.size() > kLabelWidth) {
    text.resize(kLabelWidth - 3);
    text += "...";
  }
  return text;
}

}  // namespace heddle::tools
