// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_E2E_GOLDEN_TOOL_RUNNER_H_
#define HEDDLE_TESTS_E2E_GOLDEN_TOOL_RUNNER_H_

#include <string>
#include <utility>
#include <vector>

namespace heddle::tools {

struct ToolResult {
  int exit_code = -1;  // 128 + n: ended by signal n
  std::string out;
  std::string err;
};

// A program that runs in the background.
class Tool {
 public:
  // `program` with `args` in the folder `directory` ("": here), with variables
  // added to the environment.
  Tool(
      const std::string& program, const std::vector<std::string>& args,
      const std::string& directory = "",
      const std::vector<std::pair<std::string, std::string>>& environment = {});
  // Ends the program if Wait was not called.
  ~Tool();
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  int pid() const { return pid_; }
  // What it has written to stdout so far.
  std::string OutSoFar() const;
  ToolResult Wait();

 private:
  std::string out_path_;
  std::string err_path_;
  int pid_ = -1;
};

// The heddle command of this build.
ToolResult RunHeddle(const std::vector<std::string>& args,
                     const std::string& directory = "");

// A folder for one test, removed with what is in it.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadText(const std::string& path);
void WriteText(const std::string& path, const std::string& text);

}  // namespace heddle::tools

#endif  // HEDDLE_TESTS_E2E_GOLDEN_TOOL_RUNNER_H_
