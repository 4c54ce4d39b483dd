#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An installation works: the tool finds its libraries, other projects the API.

usage: install_test.py BUILD_DIR [unittest arguments]
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()

CONSUMER = """
#include <cstdio>
#include "heddle/trace.h"
int main(int, char** argv) {
  const auto reader = heddle::trace::Reader::Open(argv[1]);
  if (!reader.ok()) return 1;
  int launches = 0;
  for (const heddle::trace::Record& record : (*reader)->records()) {
    launches += record.As<heddle::fb::Launch>() != nullptr;
  }
  std::printf("%d launches\\n", launches);
}
"""

# C, without any library of heddle's.
MEASURED = """
#include <dlfcn.h>
#include <stdio.h>
#include "heddle/measure.h"
int main(void) {
  int (*measure)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "heddle_measure");
  int (*own)(int) =
      (int (*)(int))dlsym(RTLD_DEFAULT, "heddle_measure_own_graphs");
  if (measure == NULL || own == NULL) {
    printf("not there\\n");
  } else {
    printf("%d %d\\n", measure(HEDDLE_MEASURE_DETACHED) == HEDDLE_MEASURE_OFF,
           own(1));
  }
  return 0;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(heddle REQUIRED)
add_executable(consumer consumer.cc)
target_link_libraries(consumer PRIVATE heddle::trace)
"""


class Install(unittest.TestCase):

    def check(self, command, **kwargs):
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=300, **kwargs)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}"
                                             f"{done.stderr}")
        return done.stdout + done.stderr

    def test_an_installation_records_and_serves_other_projects(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            prefix = root / "prefix"
            self.check(["cmake", "--install", str(BUILD), "--prefix",
                        str(prefix)])
            trace = root / "t.htrace"
            env = dict(os.environ)
            env["LD_LIBRARY_PATH"] = str(BUILD / "lib/hostdevice")
            env["HEDDLE_HOSTDEVICE_KERNELS"] = str(
                BUILD / "lib/libdecode_host_kernels.so")
            self.check([str(prefix / "bin/heddle"), "record", "-o", str(trace),
                        "--", str(BUILD / "bin/decode"), "--tokens", "2"],
                       env=env)
            # Rewriting, with the runtime beside the preload library.
            report = root / "r.jsonl"
            env["HEDDLE_LEAST_GAIN"] = "0"
            env["HEDDLE_CACHE_DIR"] = str(root / "cache")
            self.check([str(prefix / "bin/heddle"), "run", "-O1", "--report",
                        str(report), "--", str(BUILD / "bin/decode"),
                        "--graph", "--tokens", "8"], env=env)
            self.assertIn("rewritten", self.check(
                [str(prefix / "bin/heddle"), "report", str(report)]))
            (root / "measured.c").write_text(MEASURED)
            self.check(["cc", "-std=c99", "-Wall", "-Werror",
                        f"-I{prefix / 'include'}", str(root / "measured.c"),
                        "-o", str(root / "measured"), "-ldl"])
            self.assertEqual(self.check([str(root / "measured")]),
                             "not there\n")
            (preload,) = prefix.rglob("libheddle_preload.so")
            self.assertEqual(
                self.check([str(root / "measured")],
                           env={**os.environ, "LD_PRELOAD": str(preload)}),
                "1 -1\n")
            source = root / "consumer"
            source.mkdir()
            (source / "consumer.cc").write_text(CONSUMER)
            (source / "CMakeLists.txt").write_text(CMAKE)
            self.check(["cmake", "-S", str(source), "-B", str(source / "b"),
                        f"-DCMAKE_PREFIX_PATH={prefix}"])
            self.check(["cmake", "--build", str(source / "b")])
            output = self.check([str(source / "b/consumer"), str(trace)])
            self.assertEqual(output, "156 launches\n")
            # The same by pkg-config.
            env = dict(os.environ)
            env["PKG_CONFIG_PATH"] = ":".join(
                str(path.parent) for path in prefix.rglob("heddle.pc"))
            flags = self.check(["pkg-config", "--cflags", "--libs", "heddle"],
                               env=env).split()
            self.check(["c++", "-std=c++20", str(source / "consumer.cc"), "-o",
                        str(root / "by_pc"), *flags])
            output = self.check([str(root / "by_pc"), str(trace)])
            self.assertEqual(output, "156 launches\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
