/* SPDX-License-Identifier: Apache-2.0 */
/* Which pairs of a cuGetProcAddress key and an ELF symbol have unlike types.
 * Here and not in keys_test.cc because the question needs C. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <stddef.h>

/* The first one's typedef, or NULL. */
const char *heddle_test_unlike_key(void);
const char *heddle_test_unlike_key(void) {
#define HEDDLE_KEY(base, version, per_thread, symbol, index, type) \
  if (!__builtin_types_compatible_p(__typeof__(&symbol), type)) return #type;
#include "interpose/keys.inc"
#undef HEDDLE_KEY
  return NULL;
}
