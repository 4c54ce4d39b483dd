// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_HALF_H_
#define HEDDLE_TESTS_SASS_MACHINE_HALF_H_

// Conversions of 16-bit floats, to nearest even.

#include <cstdint>

namespace heddle::sass_machine {

float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);
uint16_t DoubleToHalf(double value);
float BrainToFloat(uint16_t brain);
uint16_t FloatToBrain(float value);

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_HALF_H_
