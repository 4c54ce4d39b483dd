// SPDX-License-Identifier: Apache-2.0
// What the preload library shows to the process, and what it needs of it.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/unit/interpose/fixture.h"

namespace heddle::interpose_test {
namespace {

std::set<std::string> Surface() {
  std::ifstream in(kSymbolsFile);
  std::set<std::string> names;
  for (std::string name; in >> name;) names.insert(name);
  return names;
}

// The dynamic symbols that a library defines.
std::set<std::string> Exports(const std::string& library) {
  const ProcessResult nm =
      RunProcess({"nm", "-D", "--defined-only", library}, Plain());
  EXPECT_EQ(nm.exit_code, 0) << nm.err;
  std::set<std::string> names;
  for (const std::string& line : Lines(nm.out)) {
    std::istringstream words(line);
    std::string address, type, name;
    words >> address >> type >> name;
    if (type != "A") names.insert(name.substr(0, name.find('@')));
  }
  return names;
}

TEST(Exports, AreTheDriverSurfaceAndTheEntriesAndNothingElse) {
  std::set<std::string> expected = Surface();
  ASSERT_GT(expected.size(), 500u);
  expected.insert({"dlsym", "InitializeInjection", "InitializeInjectionNvtx2",
                   "heddle_measure", "heddle_measure_own_graphs"});
  EXPECT_EQ(Exports(kPreload), expected);
}

TEST(Exports, CoverEverySymbolOfTheToolkitsStubDriver) {
  const std::string stub = HEDDLE_TEST_STUB_DRIVER;
  if (!std::ifstream(stub)) GTEST_SKIP() << "no " << stub;
  const std::set<std::string> ours = Exports(kPreload);
  for (const std::string& name : Exports(stub)) {
    EXPECT_EQ(ours.count(name), 1u) << name;
  }
}

TEST(Exports, NeedTheCLibraryAlone) {
  const ProcessResult readelf =
      RunProcess({"readelf", "-dW", kPreload}, Plain());
  ASSERT_EQ(readelf.exit_code, 0) << readelf.err;
  int needed = 0;
  for (const std::string& line : Lines(readelf.out)) {
    EXPECT_EQ(line.find("TEXTREL"), std::string::npos) << line;
    if (line.find("(NEEDED)") == std::string::npos) continue;
    ++needed;
    EXPECT_TRUE(line.find("[libc.so.6]") != std::string::npos ||
                line.find("[ld-linux") != std::string::npos)
        << line;
  }
  EXPECT_GE(needed, 1);
}

TEST(Exports, LeaveNoDriverSymbolUndefined) {
  const ProcessResult nm =
      RunProcess({"nm", "-D", "--undefined-only", kPreload}, Plain());
  ASSERT_EQ(nm.exit_code, 0);
  for (const std::string& line : Lines(nm.out)) {
    EXPECT_EQ(line.find(" cu"), std::string::npos) << line;
    EXPECT_EQ(line.find("_dl_sym"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace heddle::interpose_test
