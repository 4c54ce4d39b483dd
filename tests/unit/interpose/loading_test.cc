// SPDX-License-Identifier: Apache-2.0
// When the preload library loads the runtime, when it must not, and what it
// does to programs and tools that have nothing to do with it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/interpose/fixture.h"

namespace heddle::interpose_test {
namespace {

namespace fs = std::filesystem;

ProcessResult OneCall(const Environment& environment,
                      const std::string& scenario = "one_call") {
  return RunProcess({Program("scenario"), scenario}, environment, kPrograms);
}

TEST(Inert, ProgramsWithoutCudaLoadNothing) {
  Environment environment = Hooked();
  environment["HEDDLE_TRACE"] = "/nonexistent/trace";
  const std::vector<std::vector<std::string>> commands = {
      {"/bin/true"},
      {"/bin/bash", "-c", "cat /proc/$$/maps; type cd; cat /proc/self/maps"},
      {"python3", "-c",
       "import ctypes; ctypes.CDLL(None).getpid();"
       "print(open('/proc/self/maps').read())"},
      {"cat", "/proc/self/maps"}};
  for (const std::vector<std::string>& command : commands) {
    const ProcessResult result = RunProcess(command, environment);
    EXPECT_EQ(result.exit_code, 0) << command[0] << result.err;
    EXPECT_EQ(result.err, "") << command[0];
    EXPECT_EQ(result.out.find("test_runtime"), std::string::npos);
    EXPECT_EQ(result.out.find("libcuda"), std::string::npos);
    if (command.size() > 1) {
      EXPECT_NE(result.out.find("libheddle_preload"), std::string::npos);
    }
  }
}

TEST(Inert, TheRuntimeIsNotLoadedUnlessAVariableAsks) {
  const auto loaded = [](const Environment& environment) {
    const fs::path log = fs::path(testing::TempDir()) /
                         ("heddle-loaded-" + std::to_string(getpid()) + ".log");
    fs::remove(log);
    Environment with_log = environment;
    with_log["TEST_LOG"] = log;
    EXPECT_EQ(OneCall(with_log).out, "ok\n");
    return fs::exists(log);
  };
  Environment environment = Active();
  EXPECT_TRUE(loaded(environment));
  environment["HEDDLE_RUNTIME"] = "0";
  EXPECT_FALSE(loaded(environment));
  for (const char* variable :
       {"HEDDLE_TRACE", "HEDDLE_OPT", "HEDDLE_PLAN", "HEDDLE_DOCTOR"}) {
    Environment asking = environment;
    asking[variable] = "x";
    EXPECT_TRUE(loaded(asking)) << variable;
    asking["HEDDLE_DISABLE"] = "1";
    EXPECT_FALSE(loaded(asking)) << variable;
    asking["HEDDLE_DISABLE"] = "0";
    EXPECT_TRUE(loaded(asking)) << variable;
    asking[variable] = "";
    EXPECT_FALSE(loaded(asking)) << variable;
  }
}

TEST(Loading, AMissingRuntimeIsSaidOnceAndTheProgramRunsOn) {
  Environment environment = Active();
  environment["HEDDLE_RUNTIME_LIBRARY"] = "/nonexistent/libruntime.so";
  for (const char* scenario : {"one_call", "keeps_errno", "float"}) {
    const ProcessResult result = OneCall(environment, scenario);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, "ok\n");
    ASSERT_EQ(Lines(result.err).size(), 1u) << result.err;
    EXPECT_EQ(result.err.find("heddle: the program runs on without heddle: "),
              0u)
        << result.err;
    EXPECT_NE(result.err.find("/nonexistent/libruntime.so"), std::string::npos);
  }
}

TEST(Loading, ALibraryThatIsNoRuntimeIsRefused) {
  Environment environment = Active();
  environment["HEDDLE_RUNTIME_LIBRARY"] = Program("libplugin.so");
  const ProcessResult result = OneCall(environment);
  EXPECT_EQ(result.out, "ok\n");
  EXPECT_NE(result.err.find("heddle_runtime_attach"), std::string::npos);
}

TEST(Loading, ARuntimeThatDeclinesLeavesThePureDriver) {
  for (const char* answer : {"1", "-1"}) {
    Environment environment = Hooked();
    environment["TEST_ATTACH"] = answer;
    const ProcessResult result =
        RunProcess({Program("probe_lookup"), "dlsym"}, environment);
    const ProcessResult plain =
        RunProcess({Program("probe_lookup"), "dlsym"}, Plain());
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(result.out == plain.out) << "a hook was called";
    EXPECT_EQ(result.err, "");
  }
}

// Copies of the libraries in the layouts of the build folder and of an
// installation.
class Layout : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("heddle-layout-test-" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "lib/heddle");
    log_ = root_ / "log";
    environment_ = Active();
    environment_.erase("HEDDLE_RUNTIME_LIBRARY");
    environment_["TEST_LOG"] = log_;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Install(const std::string& preload, const std::string& runtime) {
    fs::copy_file(kPreload, root_ / preload);
    if (!runtime.empty()) fs::copy_file(kRuntime, root_ / runtime);
    environment_["LD_PRELOAD"] = (root_ / preload).string();
  }

  fs::path root_;
  fs::path log_;
  Environment environment_;
};

TEST_F(Layout, TheRuntimeIsFoundBesideThePreloadLibrary) {
  Install("lib/libheddle_preload.so", "lib/libheddle_runtime.so");
  EXPECT_EQ(OneCall(environment_).err, "");
  EXPECT_TRUE(fs::exists(log_));
}

TEST_F(Layout, TheRuntimeIsFoundOneFolderUpWhenInstalled) {
  Install("lib/heddle/libheddle_preload.so", "lib/libheddle_runtime.so");
  EXPECT_EQ(OneCall(environment_).err, "");
  EXPECT_TRUE(fs::exists(log_));
}

TEST_F(Layout, TheRuntimeIsFoundAfterTheProgramHasLeftItsFolder) {
  Install("lib/libheddle_preload.so", "lib/libheddle_runtime.so");
  environment_["LD_PRELOAD"] = "./lib/libheddle_preload.so";
  const ProcessResult result =
      RunProcess({Program("scenario"), "leave_folder"}, environment_, root_);
  EXPECT_EQ(result.out, "ok\n");
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(fs::exists(log_));
}

TEST_F(Layout, WithoutARuntimeTheFoldersAreNamed) {
  Install("lib/libheddle_preload.so", "");
  const ProcessResult result = OneCall(environment_);
  EXPECT_EQ(result.out, "ok\n");
  EXPECT_NE(result.err.find((root_ / "lib").string()), std::string::npos)
      << result.err;
}

TEST_F(Layout, ASecondCopyThatIsInjectedStaysOut) {
  Install("lib/libheddle_preload.so", "");
  Environment environment = Hooked();
  environment["CUDA_INJECTION64_PATH"] = environment_["LD_PRELOAD"];
  environment["HEDDLE_LOG"] = "warn";
  const ProcessResult result =
      RunProcess({Program("injected")}, environment, kPrograms);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("second copy"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("import: driver 1 hook 1\n"), std::string::npos)
      << result.out;
}

// Other tools that preload themselves and use RTLD_NEXT.

std::string Chain(Environment environment, const std::string& preload) {
  environment["LD_PRELOAD"] = preload;
  const ProcessResult result = RunProcess({Program("chain")}, environment);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(OtherTools, FindWhatTheyWouldFindWithoutUs) {
  const std::string one = Program("libother_tool_1.so");
  const std::string two = Program("libother_tool_2.so");
  const std::string expected = Chain(Plain(), one + ":" + two);
  // 1 + 3 * 10 * (2 + 0): each tool asks three times.
  EXPECT_EQ(expected, "chain 61\nalloc 0\ndriver 1\n");
  for (const Environment& environment : {Preloaded(), Active(), Hooked()}) {
    EXPECT_EQ(Chain(environment, kPreload + ":" + one + ":" + two), expected);
    EXPECT_EQ(Chain(environment, one + ":" + kPreload + ":" + two), expected);
    EXPECT_EQ(Chain(environment, one + ":" + two + ":" + kPreload), expected);
  }
}

// Python's ctypes: a program that was not written for this test.
TEST(Python, CtypesReachesTheHooks) {
  const std::string script =
      "import ctypes, os\n"
      "cuda = ctypes.CDLL('libcuda.so.1')\n"
      "p = ctypes.c_uint64()\n"
      "assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4)) == 0\n"
      "runtime = ctypes.CDLL(os.environ['HEDDLE_RUNTIME_LIBRARY'])\n"
      "runtime.test_runtime_hook_calls.restype = ctypes.c_ulong\n"
      "print(runtime.test_runtime_hook_calls(-1))\n";
  Environment environment = Hooked();
  const ProcessResult result =
      RunProcess({"python3", "-c", script}, environment);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "1\n");
}

TEST(Log, GoesToTheNamedFileAndKeepsToTheLevel) {
  const fs::path folder = fs::path(testing::TempDir()) /
                          ("heddle-log-test-" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  Environment environment = Active();
  EXPECT_EQ(OneCall(environment).err, "");
  environment["HEDDLE_LOG"] = "info";
  const std::string text = OneCall(environment).err;
  EXPECT_NE(text.find("heddle: runtime attached\n"), std::string::npos) << text;
  environment["HEDDLE_LOG_FILE"] = folder / "log-%r-%p";
  environment["RANK"] = "3";
  EXPECT_EQ(OneCall(environment).err, "");
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    ++files;
    EXPECT_EQ(entry.path().filename().string().find("log-3-"), 0u);
    EXPECT_EQ(entry.path().filename().string().find('%'), std::string::npos);
    std::ifstream in(entry.path());
    const std::string written{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(written, text);
  }
  EXPECT_EQ(files, 1);
  // A file that cannot be opened costs the log, not the program.
  environment["HEDDLE_LOG_FILE"] = "/nonexistent/folder/log";
  EXPECT_EQ(OneCall(environment).out, "ok\n");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace heddle::interpose_test
