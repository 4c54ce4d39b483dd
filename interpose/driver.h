/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_DRIVER_H_
#define HEDDLE_INTERPOSE_DRIVER_H_

#include "interpose/surface.h"

/* What the loaded driver exports. Immutable once published. */
struct heddle_driver {
  const void *base; /* where the driver's object is loaded */
  /* The driver's own function for each symbol; NULL if it has none. */
  void *real[HEDDLE_SYMBOL_COUNT];
  /* The same by address, ascending; symbols may share one address. */
  struct heddle_driver_address {
    void *address;
    int index;
  } by_address[HEDDLE_SYMBOL_COUNT];
  int address_count;
};

/* The driver, found and read on the first call: the object that holds `hint` if
 * that is a driver, else the libcuda.so.1 that the process has loaded. If there
 * is none, `load` says whether to load it. NULL if there is no driver. Any
 * thread; takes no lock of ours, since the dynamic linker takes its own. */
const struct heddle_driver *heddle_driver(const void *hint, int load);

/* The same without looking for it: NULL before the first success. */
const struct heddle_driver *heddle_known_driver(void);

/* First entry of by_address with `address`, or -1. Entries of equal address
 * follow each other. */
int heddle_driver_find(const struct heddle_driver *driver, const void *address);

/* Is this code the driver's own (libcuda.so*, libcudadebugger.so*)? */
int heddle_is_driver_code(const void *address);

/* Is `path` the file name of a CUDA driver library? Not libcudart's. */
int heddle_is_driver_path(const char *path);

#endif /* HEDDLE_INTERPOSE_DRIVER_H_ */
