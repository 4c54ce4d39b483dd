// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/interpose/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace heddle::interpose_test {
namespace {

std::string ReadAll(int file) {
  std::string text;
  std::array<char, 4096> buffer;
  lseek(file, 0, SEEK_SET);
  for (;;) {
    const ssize_t n = read(file, buffer.data(), buffer.size());
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  close(file);
  return text;
}

// An unnamed file: unlike a pipe it cannot fill up.
int TemporaryFile() {
  std::string path = "/tmp/heddle-test-XXXXXX";
  const int file = mkstemp(path.data());
  unlink(path.c_str());
  return file;
}

}  // namespace

ProcessResult RunProcess(const std::vector<std::string>& command,
                         const Environment& environment,
                         const std::string& folder) {
  const int out = TemporaryFile();
  const int err = TemporaryFile();
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::string> settings;
    for (const auto& [name, value] : environment) {
      settings.push_back(name + "=" + value);
    }
    std::vector<char*> env;
    for (std::string& setting : settings) env.push_back(setting.data());
    env.push_back(nullptr);
    std::vector<std::string> words = command;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    alarm(60);
    execvpe(argv[0], argv.data(), env.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ProcessResult result;
  result.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = ReadAll(out);
  result.err = ReadAll(err);
  return result;
}

}  // namespace heddle::interpose_test
