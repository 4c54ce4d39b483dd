// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_CASE_RUNNER_H_
#define HEDDLE_TESTS_UNIT_ACCESS_CASE_RUNNER_H_

// Runs code in the place of a kernel of a test image on the machine of
// tests/sass_machine, and compares with what the analysis predicts. All that is
// near kFirst is memory.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/access/code_image.h"
#include "tests/sass_machine/machine.h"
#include "tests/unit/access/coverage_check.h"
#include "tests/unit/access/random_code.h"
#include "tests/unit/access/trap_cases.h"

namespace heddle::access {

inline constexpr uint64_t kFirst = 0x7f1000000000;

struct Case {
  std::vector<Word128> code;
  std::vector<TrapBuffer> buffers;
  sass_machine::Launch launch;
};

// One allocation around kFirst.
MemoryView OneAllocation();

class CaseRunner {
 public:
  // Images `name`.sm_`arch`.cubin of HEDDLE_TEST_IMAGES. Aborts without them.
  CaseRunner(const std::vector<std::string>& names, int arch);

  // The image that cases are of from now on.
  void Use(const std::string& name);
  const sass_machine::Program& program() const { return program_; }
  const sass_machine::Program& program(const std::string& name) const {
    return programs_.at(name);
  }
  const CodeImage& image() const { return *image_; }
  std::vector<Word128> CodeOf(const std::string& kernel) const;

  CoverageResult Check(const Case& made);
  // What the analysis says of it.
  KernelFootprint Analyze(const Case& made) const;
  // Without whatever the complaint does not need.
  Case Smallest(Case made);
  std::string Listing(const Case& made) const;

  // Cases whose run came to an end, and did not. What ran before an error ran.
  uint64_t ended() const { return ended_; }
  uint64_t failed() const { return failed_; }

 private:
  // Of the case's parameters, which must stay.
  LaunchValues ValuesOf(const Case& made) const;

  std::map<std::string, sass_machine::Program> programs_;
  std::map<std::string, std::unique_ptr<CodeImage>> images_;
  sass_machine::Program program_;
  const CodeImage* image_ = nullptr;
  uint64_t ended_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_CASE_RUNNER_H_
