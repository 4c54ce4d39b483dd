/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_RUNTIME_LOADER_H_
#define HEDDLE_INTERPOSE_RUNTIME_LOADER_H_

#include "runtime/record/hook_table.h"

/* Loading libheddle_runtime.so, once in a process, at its first CUDA call. */

/* Does the environment ask for heddle, and has it not been stopped? While this
 * is false nothing is substituted anywhere. The environment is read once. */
int heddle_is_active(void);

/* Loads the runtime if asked for. Other threads wait until it has attached, so
 * that their first calls are seen too. Returns at once in the thread that is
 * loading. */
void heddle_start_runtime(void);

/* Has it attached, or will it never? Until then targets stay slow. */
int heddle_runtime_is_settled(void);

/* Is this thread inside the loading of the runtime? */
int heddle_in_runtime(void);

/* Is this code the runtime's own? It must reach the driver, not us. */
int heddle_is_runtime_code(const void *address);

/* The runtime's callbacks; NULL unless it is attached. */
const HeddleRuntime *heddle_runtime(void);

#endif /* HEDDLE_INTERPOSE_RUNTIME_LOADER_H_ */
