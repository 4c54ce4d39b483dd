// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_DOCTOR_REPORT_H_
#define HEDDLE_TOOLS_DOCTOR_REPORT_H_

// What a program's process tells `heddle doctor` about its driver calls: the
// file that the environment variable HEDDLE_DOCTOR names, written by the
// runtime (runtime/record/doctor.h) when the process ends normally. One JSON
// object:
//
//   {"schema": 1,
//    "pid": 4711,
//    "exe": "/usr/bin/python3.11",     // "" if unknown
//    "driver": "/usr/lib/libcuda.so.1" // "" if no driver was loaded
//    "symbols": [                      // by name; only those that were used
//      {"name": "cuMemAlloc_v2",       // ELF name
//       "calls": 12,                   // since the first CUDA call
//       "hooked": true,                // heddle gives this call a meaning
//       "routes": {                    // how the program came to it:
//         "elf": 0,                    //   imports bound to heddle
//         "dlsym": 1,                  //   answers of dlsym
//         "proc_address": 1,           //   answers of cuGetProcAddress
//         "injection": 0}}]}           //   pointers replaced during cuInit
//
// Readers ignore members that they do not know; a change of meaning raises
// `schema`.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace heddle::tools {

struct DoctorSymbol {
  std::string name;
  uint64_t calls = 0;
  bool hooked = false;
  uint64_t elf = 0;
  uint64_t dlsym = 0;
  uint64_t proc_address = 0;
  uint64_t injection = 0;
};

struct DoctorReport {
  int64_t pid = 0;
  std::string exe;
  std::string driver;
  std::vector<DoctorSymbol> symbols;
};

// Parses one report. Invalid JSON, a wrong type or a newer schema is
// InvalidArgument; missing members are as if empty.
absl::StatusOr<DoctorReport> ParseDoctorReport(const std::string& json);

// Reads and parses the file at `path`.
absl::StatusOr<DoctorReport> ReadDoctorReport(const std::string& path);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_DOCTOR_REPORT_H_
