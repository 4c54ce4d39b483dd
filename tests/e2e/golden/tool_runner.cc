// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/golden/tool_runner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

std::string TemporaryFile() {
  std::string path = testing::TempDir() + "/tool-XXXXXX";
  const int fd = mkstemp(path.data());
  EXPECT_GE(fd, 0);
  close(fd);
  return path;
}

void Redirect(const std::string& path, int to) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC);
  dup2(fd, to);
  close(fd);
}

}  // namespace

Tool::Tool(const std::string& program, const std::vector<std::string>& args,
           const std::string& directory,
           const std::vector<std::pair<std::string, std::string>>& environment)
    : out_path_(TemporaryFile()), err_path_(TemporaryFile()) {
  pid_ = fork();
  EXPECT_GE(pid_, 0);
  if (pid_ != 0) return;
  Redirect(out_path_, STDOUT_FILENO);
  Redirect(err_path_, STDERR_FILENO);
  if (!directory.empty() && chdir(directory.c_str()) != 0) _exit(126);
  for (const auto& [name, value] : environment) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::string> words = {program};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

Tool::~Tool() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait();
  }
}

std::string Tool::OutSoFar() const { return ReadText(out_path_); }

ToolResult Tool::Wait() {
  ToolResult result;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  result.exit_code =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.out = ReadText(out_path_);
  result.err = ReadText(err_path_);
  unlink(out_path_.c_str());
  unlink(err_path_.c_str());
  return result;
}

ToolResult RunHeddle(const std::vector<std::string>& args,
                     const std::string& directory) {
  return Tool(HEDDLE_BINARY, args, directory).Wait();
}

TestFolder::TestFolder() : path_(testing::TempDir() + "/heddle-XXXXXX") {
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
  // Names that heddle prints are without links.
  path_ = std::filesystem::canonical(path_).string();
}

TestFolder::~TestFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace heddle::tools
