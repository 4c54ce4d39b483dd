/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_DISPATCH_H_
#define HEDDLE_INTERPOSE_DISPATCH_H_

/* Where each wrapper leads: the state behind HeddleInterposer. All functions
 * may be called by any thread at any time. */

#include "interpose/surface.h"
#include "runtime/record/hook_table.h"

/* The table that the runtime is given. */
extern const HeddleInterposer heddle_interposer;

/* Called by a slow stub: what to call in its place. On the process's first call
 * this starts the runtime. Never NULL: a symbol that the driver lacks leads to
 * a function that returns CUDA_ERROR_NOT_FOUND. */
void *heddle_slow_call(enum heddle_family family, int index);

/* The hook, or else the driver's function; what an interceptor calls. */
void *heddle_hook_or_real(enum heddle_family family, int index);

/* Gives the second wrapper of a symbol its destination, an address that
 * cuGetProcAddress returned. Returns 0 if it has another one already. */
int heddle_set_proc_real(int index, void *address);

void heddle_count_route(int index, int route);

/* Every wrapper to the driver again, for good, without a word. */
void heddle_stop(void);
int heddle_is_stopped(void);

/* The lock over targets is taken before fork() and given back in both
 * processes: another thread may hold it. */
void heddle_dispatch_before_fork(void);
void heddle_dispatch_after_fork(void);

#endif /* HEDDLE_INTERPOSE_DISPATCH_H_ */
