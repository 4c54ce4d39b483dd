// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_DOCTOR_H_
#define HEDDLE_RUNTIME_RECORD_DOCTOR_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "runtime/record/hook_table.h"

namespace heddle::record {

// Writes what `interposer` has counted, for `heddle doctor`: JSON in the format
// of tools/doctor_report.h, to `path` (through a temporary file beside it, so
// that a reader never sees half of it). `is_hooked` says whether heddle gives a
// symbol's calls a meaning. Counts are complete only if counting has been on
// since the first call. Works after the driver has been torn down.
absl::Status WriteDoctorReport(
    const HeddleInterposer& interposer, const std::string& path,
    const std::function<bool(const char* symbol)>& is_hooked);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_DOCTOR_H_
