// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_TRACE_GOLDEN_H_
#define HEDDLE_TESTS_UNIT_TRACE_GOLDEN_H_

#include <string>
#include <vector>

#include "heddle/trace.h"
#include "tests/unit/trace/schema_samples.h"

namespace heddle::trace {

// The content of a trace as JSON, a line per record. Fields that have their
// default are left out, so that fields of later versions change nothing.
std::vector<std::string> GoldenText(SchemaSamples& samples,
                                    const Reader& reader);

}  // namespace heddle::trace

#endif  // HEDDLE_TESTS_UNIT_TRACE_GOLDEN_H_
