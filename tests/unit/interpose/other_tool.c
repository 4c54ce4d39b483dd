/* SPDX-License-Identifier: Apache-2.0 */
/* Another preloaded library, which finds what it stands before with RTLD_NEXT,
 * again and again. */
#include <dlfcn.h>
#include <stdio.h>

int heddle_test_chain(void);
int heddle_test_chain(void) {
  int sum = TOOL_NUMBER;
  for (int i = 0; i < 3; ++i) {
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "heddle_test_chain");
    if (!next) {
      if (dlerror() == NULL) return -1;
      continue;
    }
    sum += 10 * next();
  }
  return sum;
}

/* And one driver function. */
int cuMemAlloc_v2(unsigned long *pointer, unsigned long size);
int cuMemAlloc_v2(unsigned long *pointer, unsigned long size) {
  int (*next)(unsigned long *, unsigned long) = NULL;
  for (int i = 0; i < 3; ++i) {
    next = (int (*)(unsigned long *, unsigned long))dlsym(RTLD_NEXT,
                                                          "cuMemAlloc_v2");
  }
  fprintf(stderr, "tool %d\n", TOOL_NUMBER);
  return next ? next(pointer, size) : 999;
}
