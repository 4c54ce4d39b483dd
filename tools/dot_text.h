// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_DOT_TEXT_H_
#define HEDDLE_TOOLS_DOT_TEXT_H_

// Text in pictures for Graphviz's dot.

#include <string>
#include <vector>

namespace heddle::tools {

// "text" with what dot would take for syntax escaped.
std::string DotQuote(const std::string& text);
// The same for several lines.
std::string DotQuoteLines(const std::vector<std::string>& lines);
// At most as long as a label should be, with "..." for the rest.
std::string DotShorten(std::string text);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_DOT_TEXT_H_
