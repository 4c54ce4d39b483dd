/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the fake driver, and the record of calls. The definitions
 * are weak: fake_driver_special.c has the few that do something. */
#include "tests/unit/interpose/fake_driver.h"

#include <stdatomic.h>

#include "tests/unit/interpose/fake_driver_record.h"

static _Atomic unsigned long counts[2][HEDDLE_SYMBOL_COUNT];
static _Thread_local struct fake_call last_call = {-1, -1, {0}};

int fake_record(int family, int index, unsigned long a, unsigned long b,
                unsigned long c, unsigned long d, unsigned long e,
                unsigned long f, unsigned long g, unsigned long h,
                unsigned long i, unsigned long j, unsigned long k) {
  atomic_fetch_add(&counts[family][index], 1);
  last_call =
      (struct fake_call){family, index, {a, b, c, d, e, f, g, h, i, j, k}};
  return 0;
}

#define PARAMETERS                                                        \
  unsigned long a, unsigned long b, unsigned long c, unsigned long d,     \
      unsigned long e, unsigned long f, unsigned long g, unsigned long h, \
      unsigned long i, unsigned long j, unsigned long k
#define ARGUMENTS a, b, c, d, e, f, g, h, i, j, k

#define HEDDLE_SYMBOL(index, name)                          \
  __attribute__((weak)) int name(PARAMETERS);               \
  __attribute__((weak)) int name(PARAMETERS) {              \
    return fake_record(FAKE_FAMILY_ELF, index, ARGUMENTS);  \
  }                                                         \
  static int proc_##name(PARAMETERS) {                      \
    return fake_record(FAKE_FAMILY_PROC, index, ARGUMENTS); \
  }
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL

void *const fake_functions[2][HEDDLE_SYMBOL_COUNT] = {{
#define HEDDLE_SYMBOL(index, name) (void *)name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
                                                      },
                                                      {
#define HEDDLE_SYMBOL(index, name) (void *)proc_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
                                                      }};

struct fake_call fake_driver_last_call(void) {
  return last_call;
}

void fake_driver_reset(void) {
  last_call.family = -1;
  last_call.index = -1;
}

unsigned long fake_driver_calls(int family, int index) {
  return atomic_load(&counts[family][index]);
}

unsigned long fake_driver_all_calls(void) {
  unsigned long sum = 0;
  for (int i = 0; i < HEDDLE_SYMBOL_COUNT; ++i) {
    sum += fake_driver_calls(0, i) + fake_driver_calls(1, i);
  }
  return sum;
}
