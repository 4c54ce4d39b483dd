/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/maps.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int parse(char *line, struct heddle_mapping *mapping) {
  char permissions[5];
  int path_offset = 0;
  unsigned long start, end;
  if (sscanf(line, "%lx-%lx %4s %*x %*s %*u %n", &start, &end, permissions,
             &path_offset) != 3 ||
      path_offset == 0) {
    return 0;
  }
  mapping->start = start;
  mapping->end = end;
  mapping->protection = (permissions[0] == 'r' ? PROT_READ : 0) |
                        (permissions[1] == 'w' ? PROT_WRITE : 0) |
                        (permissions[2] == 'x' ? PROT_EXEC : 0);
  mapping->path = line + path_offset;
  line[strcspn(line, "\n")] = 0;
  return 1;
}

int heddle_visit_mappings(int (*visit)(const struct heddle_mapping *mapping,
                                       void *data),
                          void *data) {
  FILE *file = fopen("/proc/self/maps", "re");
  if (!file) return 0;
  char line[PATH_MAX + 128];
  int result = 0;
  while (result == 0 && fgets(line, sizeof line, file)) {
    struct heddle_mapping mapping;
    if (parse(line, &mapping)) result = visit(&mapping, data);
  }
  fclose(file);
  return result;
}
