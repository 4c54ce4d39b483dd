/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_PROC_ADDRESS_H_
#define HEDDLE_INTERPOSE_PROC_ADDRESS_H_

#include "interpose/surface.h"

/* The functions that stand before cuGetProcAddress and cuGetProcAddress_v2, and
 * before any hook on them, and put wrappers in the place of driver functions.
 * NULL for every other symbol. */
void *heddle_interceptor(enum heddle_family family, int index);

/* The symbol that cuGetProcAddress means by a base name, a CUDA version and a
 * stream variant, by the toolkit's own list: the newest that is not newer than
 * `version`. -1 if unknown, and for versions newer than the toolkit's: the
 * driver may then mean a function that the list does not have. */
int heddle_symbol_of_key(const char *base, int version, int per_thread);

#endif /* HEDDLE_INTERPOSE_PROC_ADDRESS_H_ */
