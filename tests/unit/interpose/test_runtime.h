/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TESTS_UNIT_INTERPOSE_TEST_RUNTIME_H_
#define HEDDLE_TESTS_UNIT_INTERPOSE_TEST_RUNTIME_H_

/* A runtime that hooks what it is told to and counts.
 *
 * Environment: TEST_HOOKS=all hooks every symbol at attach; TEST_ATTACH is what
 * the entry returns (0 by default); TEST_SLOW_ATTACH=1 makes it take a while;
 * TEST_LOG names a file that gets a line for each callback. */

#include "runtime/record/hook_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Found with dlsym in the library that HEDDLE_RUNTIME_LIBRARY names. */
const HeddleInterposer *test_runtime_interposer(void);
/* Calls of the hook on a symbol, or of all hooks with -1, by all threads. */
unsigned long test_runtime_hook_calls(int index);
/* The counting hook of a symbol, for set_hook. */
void *test_runtime_hook(int index);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TESTS_UNIT_INTERPOSE_TEST_RUNTIME_H_ */
