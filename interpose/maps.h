/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_MAPS_H_
#define HEDDLE_INTERPOSE_MAPS_H_

#include <stdint.h>

/* One line of /proc/self/maps. */
struct heddle_mapping {
  uintptr_t start;
  uintptr_t end;
  int protection;   /* PROT_READ, PROT_WRITE, PROT_EXEC */
  const char *path; /* valid during the callback; "" if there is none */
};

/* Calls `visit` for each mapping, in ascending order, until it returns
 * non-zero. Returns that, or 0 at the end or if the list cannot be read. */
int heddle_visit_mappings(int (*visit)(const struct heddle_mapping *mapping,
                                       void *data),
                          void *data);

#endif /* HEDDLE_INTERPOSE_MAPS_H_ */
