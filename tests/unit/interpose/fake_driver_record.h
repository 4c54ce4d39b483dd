/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TESTS_UNIT_INTERPOSE_FAKE_DRIVER_RECORD_H_
#define HEDDLE_TESTS_UNIT_INTERPOSE_FAKE_DRIVER_RECORD_H_

/* Between the two files of the fake driver. */

enum {
#define HEDDLE_SYMBOL(index, name) FAKE_INDEX_##name = (index),
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
  HEDDLE_SYMBOL_COUNT
};

extern void *const fake_functions[2][HEDDLE_SYMBOL_COUNT];

int fake_record(int family, int index, unsigned long a, unsigned long b,
                unsigned long c, unsigned long d, unsigned long e,
                unsigned long f, unsigned long g, unsigned long h,
                unsigned long i, unsigned long j, unsigned long k);

#endif /* HEDDLE_TESTS_UNIT_INTERPOSE_FAKE_DRIVER_RECORD_H_ */
