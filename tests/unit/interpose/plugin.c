/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is linked with the driver and loaded late. */
int cuMemAlloc_v2(unsigned long *pointer, unsigned long size);

int plugin_alloc(void);
int plugin_alloc(void) {
  unsigned long pointer = 0;
  return cuMemAlloc_v2(&pointer, 64);
}
