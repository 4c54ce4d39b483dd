// SPDX-License-Identifier: Apache-2.0
// The parts of `heddle doctor` that do not run a program.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/unit/interpose/fixture.h"
#include "tools/doctor_checks.h"
#include "tools/doctor_report.h"
#include "tools/driver_calls.h"
#include "tools/elf_facts.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;
using interpose_test::Environment;

Getenv From(const Environment& environment) {
  return [environment](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
}

// The one finding whose text has `text`.
const Finding* Find(const std::vector<Finding>& findings,
                    const std::string& text) {
  for (const Finding& finding : findings) {
    if (finding.what.find(text) != std::string::npos) return &finding;
  }
  return nullptr;
}

class DoctorFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("heddle-doctor-test-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

TEST_F(DoctorFiles, ACommandIsFoundInPathAndScriptsLeadToTheirInterpreter) {
  const std::string program = Write("program", "\177ELF");
  const Getenv getenv = From({{"PATH", "/nonexistent:" + folder_.string()}});
  EXPECT_EQ(FindExecutable("program", getenv).value(), program);
  EXPECT_EQ(FindExecutable(program, getenv).value(), program);
  Write("script", "#!/usr/bin/env -S A=b program -x\n");
  Write("script2", "#! " + folder_.string() + "/script with args\n");
  EXPECT_EQ(FindExecutable("script", getenv).value(), program);
  EXPECT_EQ(FindExecutable("script2", getenv).value(), program);
  EXPECT_FALSE(FindExecutable("absent", getenv).ok());
  EXPECT_FALSE(FindExecutable("/absent", getenv).ok());
  Write("loop", "#!" + folder_.string() + "/loop");
  EXPECT_FALSE(FindExecutable("loop", getenv).ok());
  Write("empty", "");
  EXPECT_TRUE(FindExecutable("empty", getenv).ok());
  Write("bare", "#!");
  EXPECT_TRUE(FindExecutable("bare", getenv).ok());
}

TEST_F(DoctorFiles, ADynamicProgramHasNoFindings) {
  EXPECT_TRUE(CheckExecutable("/proc/self/exe").empty());
}

TEST_F(DoctorFiles, AStaticProgramIsAnError) {
  const Finding* finding = nullptr;
  const std::vector<Finding> findings =
      CheckExecutable(interpose_test::Program("static_program"));
  finding = Find(findings, "linked statically");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kError);
}

TEST_F(DoctorFiles, AProgramWithItsOwnDriverIsAnError) {
  const std::vector<Finding> findings =
      CheckExecutable(interpose_test::Program("driver_inside"));
  ASSERT_NE(Find(findings, "cuInit"), nullptr);
  EXPECT_EQ(Find(findings, "cuInit")->severity, Severity::kError);
}

TEST_F(DoctorFiles, ARunPathWithADriverIsNamed) {
  const std::string program = interpose_test::Program("probe_direct");
  std::vector<Finding> findings = CheckExecutable(program);
  const Finding* finding = Find(findings, "DT_RUNPATH");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->what.find(interpose_test::kDriverFolder),
            std::string::npos);
  EXPECT_EQ(finding->severity, Severity::kWarning);
  findings = CheckExecutable(interpose_test::Program("rpath_program"));
  EXPECT_NE(Find(findings, "DT_RPATH $ORIGIN/../driver"), nullptr);
}

TEST_F(DoctorFiles, SpecialRightsAreAnError) {
  const std::string copy = (folder_ / "copy").string();
  fs::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(chmod(copy.c_str(), S_ISUID | 0755), 0);
  const std::vector<Finding> findings = CheckExecutable(copy);
  ASSERT_NE(Find(findings, "set-user-ID"), nullptr);
  EXPECT_EQ(Find(findings, "set-user-ID")->severity, Severity::kError);
}

TEST_F(DoctorFiles, WhatIsNotAProgramIsSaid) {
  EXPECT_NE(Find(CheckExecutable(Write("text", "hello")), "not an ELF"),
            nullptr);
  EXPECT_NE(Find(CheckExecutable("/nonexistent"), "cannot read"), nullptr);
  EXPECT_NE(Find(CheckExecutable(folder_), "cannot read"), nullptr);
  std::string other = Read(interpose_test::Program("libplugin.so"));
  other[18] = 8;  // e_machine: MIPS
  EXPECT_NE(Find(CheckExecutable(Write("other", other)), "another kind"),
            nullptr);
}

TEST_F(DoctorFiles, TornAndFlippedExecutablesAreReadAsFarAsTheyMakeSense) {
  const std::string whole = Read(interpose_test::Program("libplugin.so"));
  ASSERT_GT(whole.size(), 4096u);
  for (size_t size = 0; size < whole.size(); size += 97) {
    (void)ReadElfFacts(Write("torn", whole.substr(0, size)));
  }
  const std::string path = Write("flipped", whole);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](size_t at, char value) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(value).flush();
  };
  for (size_t at = 4; at < whole.size(); at += at < 1024 ? 1 : 61) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      put(at, static_cast<char>(whole[at] ^ flip));
      EXPECT_TRUE(ReadElfFacts(path).ok()) << at;
    }
    put(at, whole[at]);
  }
  EXPECT_EQ(Read(path), whole);
}

TEST_F(DoctorFiles, OtherToolsInTheEnvironmentAreNamed) {
  const std::string own = "/opt/lib/libheddle_preload.so";
  const std::string tool = interpose_test::Program("libplugin.so");
  const std::string interposer =
      interpose_test::kDriverFolder + "/libcuda.so.1";
  EXPECT_TRUE(CheckEnvironment(From({}), own, "/nonexistent").empty());
  EXPECT_TRUE(CheckEnvironment(From({{"LD_PRELOAD", own},
                                     {"CUDA_INJECTION64_PATH", own},
                                     {"NVTX_INJECTION64_PATH", own}}),
                               own, "/nonexistent")
                  .empty());
  std::vector<Finding> findings =
      CheckEnvironment(From({{"LD_PRELOAD", tool + ":" + interposer},
                             {"CUDA_INJECTION64_PATH", "/opt/nsys.so"},
                             {"NVTX_INJECTION64_PATH", "/opt/nvtx.so"},
                             {"HEDDLE_DISABLE", "1"}}),
                       own, "/nonexistent");
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_EQ(Find(findings, tool)->severity, Severity::kInfo);
  EXPECT_EQ(Find(findings, interposer)->severity, Severity::kWarning);
  EXPECT_NE(Find(findings, "/opt/nsys.so"), nullptr);
  EXPECT_NE(Find(findings, "/opt/nvtx.so"), nullptr);
  EXPECT_NE(Find(findings, "HEDDLE_DISABLE"), nullptr);
  const std::string file = Write("ld.so.preload", tool + "\n");
  findings = CheckEnvironment(From({}), own, file);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].what.find(file), std::string::npos);
}

TEST(DoctorReport, IsReadBack) {
  const absl::StatusOr<DoctorReport> report = ParseDoctorReport(
      R"({"schema": 1, "pid": 7, "exe": "/bin/x", "driver": "/lib/libcuda.so.1",
          "future": [], "symbols": [
            {"name": "cuInit", "calls": 2, "hooked": true,
             "routes": {"elf": 1, "dlsym": 2, "proc_address": 3,
                        "injection": 4, "other": 5}},
            {"name": "cuMemFree_v2"}]})");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->pid, 7);
  EXPECT_EQ(report->exe, "/bin/x");
  EXPECT_EQ(report->driver, "/lib/libcuda.so.1");
  ASSERT_EQ(report->symbols.size(), 2u);
  EXPECT_EQ(report->symbols[0].name, "cuInit");
  EXPECT_EQ(report->symbols[0].calls, 2u);
  EXPECT_TRUE(report->symbols[0].hooked);
  EXPECT_EQ(report->symbols[0].elf, 1u);
  EXPECT_EQ(report->symbols[0].dlsym, 2u);
  EXPECT_EQ(report->symbols[0].proc_address, 3u);
  EXPECT_EQ(report->symbols[0].injection, 4u);
  EXPECT_EQ(report->symbols[1].calls, 0u);
  EXPECT_FALSE(report->symbols[1].hooked);
}

TEST(DoctorReport, DamagedOrNewerReportsAreRefused) {
  const std::string good =
      R"({"schema":1,"pid":7,"symbols":[{"name":"cuInit","calls":2}]})";
  ASSERT_TRUE(ParseDoctorReport(good).ok());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseDoctorReport(good.substr(0, size)).ok()) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (int value = 1; value < 256; value *= 2) {
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ value);
      (void)ParseDoctorReport(flipped);  // must come back
    }
  }
  EXPECT_FALSE(ParseDoctorReport(R"({"schema": 2})").ok());
  EXPECT_FALSE(ParseDoctorReport(R"([1, 2])").ok());
  EXPECT_FALSE(ParseDoctorReport(R"({"symbols": [3]})").ok());
  EXPECT_FALSE(ParseDoctorReport(R"({"pid": "x"})").ok());
  EXPECT_FALSE(ReadDoctorReport("/nonexistent").ok());
}

TEST(DriverCalls, QuestionsAndWaitsAreHarmlessAndNothingElseIs) {
  for (const char* name :
       {"cuInit", "cuDriverGetVersion", "cuDeviceGetAttribute",
        "cuCtxGetCurrent", "cuMemGetInfo_v2", "cuGetErrorString",
        "cuGetProcAddress_v2", "cuStreamGetCaptureInfo_v3_ptsz",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuStreamQuery_ptsz",
        "cuEventQuery", "cuStreamSynchronize_ptsz", "cuCtxSynchronize",
        "cuFuncGetParamInfo", "cuPointerGetAttribute"}) {
    EXPECT_TRUE(IsHarmlessDriverCall(name)) << name;
  }
  for (const char* name :
       {"cuMemAlloc_v2", "cuLaunchKernel", "cuMemcpyHtoD_v2",
        "cuIpcGetMemHandle", "cuIpcGetEventHandle",
        "cuGraphicsResourceGetMappedPointer_v2", "cuStreamWaitEvent",
        "cuGraphInstantiateWithFlags", "cuFuncSetAttribute", "cuCtxSetLimit",
        "cuMemGetHandleForAddressRange", "cuStreamWriteValue32_v2", "cu", "",
        "cuGetter"}) {
    EXPECT_FALSE(IsHarmlessDriverCall(name)) << name;
  }
}

}  // namespace
}  // namespace heddle::tools
