// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_MEASURE_H_
#define HEDDLE_RUNTIME_RECORD_MEASURE_H_

namespace heddle::record {

// heddle_measure() of include/heddle/measure.h, for the current recorder.
int Measure(int mode);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_MEASURE_H_
