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
