/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_SELF_PATH_H_
#define HEDDLE_INTERPOSE_SELF_PATH_H_

#include <stddef.h>

/* The absolute folder that this library was loaded from, without a slash at the
 * end. Returns 0 if unknown or too long. */
int heddle_own_folder(char *folder, size_t size);

#endif /* HEDDLE_INTERPOSE_SELF_PATH_H_ */
