/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/self_path.h"

#include <string.h>

#include "interpose/maps.h"

struct request {
  char *folder;
  size_t size;
};

static int take_own(const struct heddle_mapping *mapping, void *data) {
  const struct request *request = data;
  const uintptr_t self = (uintptr_t)&heddle_own_folder;
  if (self < mapping->start || self >= mapping->end) return 0;
  const char *slash = strrchr(mapping->path, '/');
  if (!slash) return -1;
  const size_t length = (size_t)(slash - mapping->path);
  if (length >= request->size) return -1;
  memcpy(request->folder, mapping->path, length);
  request->folder[length] = 0;
  return 1;
}

/* Not dladdr(): it repeats the path of LD_PRELOAD, which may be relative to a
 * folder that the program has left since. */
int heddle_own_folder(char *folder, size_t size) {
  struct request request = {folder, size};
  return heddle_visit_mappings(take_own, &request) == 1;
}
