// SPDX-License-Identifier: Apache-2.0
//
// make_synthetic_trace FILE: writes the trace that the golden tests read,
// traces/synthetic-decode.htrace. It was written once; tests read the
// committed file, so that they notice when an old trace is shown differently.
#include <cstdio>
#include <string>

#include "tests/e2e/golden/synthetic_trace.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_synthetic_trace FILE\n");
    return 2;
  }
  const absl::Status status = heddle::tools::WriteSyntheticTrace(argv[1], {});
  if (!status.ok()) {
    std::fprintf(stderr, "make_synthetic_trace: %s\n",
                 std::string(status.message()).c_str());
    return 2;
  }
  return 0;
}
