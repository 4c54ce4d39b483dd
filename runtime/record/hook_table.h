/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_RUNTIME_RECORD_HOOK_TABLE_H_
#define HEDDLE_RUNTIME_RECORD_HOOK_TABLE_H_

/* The private C interface between whoever interposes the CUDA driver API
 * (libheddle_preload.so) and the runtime (libheddle_runtime.so). Plain C types
 * alone, so that neither side's C++ library enters the other's scope.
 *
 * The interposer owns one dispatch slot for each ELF symbol of the driver
 * ("cuMemAlloc_v2", "cuLaunchKernel_ptsz", ...). A slot leads to the driver's
 * function until the runtime sets a hook: a function with exactly the same
 * signature, which calls the driver's function itself. Setting and clearing are
 * atomic per symbol and allowed at any time from any thread.
 *
 * The runtime never blocks the program: its errors lead to `disable`, after
 * which every slot leads to the driver again.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_HOOK_ABI_VERSION 1u

/* How the program reached a driver symbol; indexes
 * HeddleInterposer.route_calls. */
enum {
  HEDDLE_ROUTE_ELF = 0,   /* direct ELF symbol */
  HEDDLE_ROUTE_DLSYM = 1, /* dlsym / dlvsym */
  HEDDLE_ROUTE_PROC_ADDRESS =
      2, /* cuGetProcAddress, _v2, and through it cudaGetDriverEntryPoint */
  HEDDLE_ROUTE_INJECTION = 3, /* pointers replaced by InitializeInjection */
  HEDDLE_ROUTE_COUNT = 4
};

typedef struct HeddleInterposer {
  uint32_t abi_version;
  uint32_t struct_size;

  uint32_t symbol_count;
  const char* const* symbols; /* sorted by strcmp */

  /* The driver's own function, or NULL if this driver has no such symbol. Never
   * a wrapper. */
  void* (*real)(const char* symbol);
  /* Leads `symbol` to `replacement`, or back to the driver with NULL. 0 = done,
   * -1 = no such symbol. */
  int (*set_hook)(const char* symbol, void* replacement);

  /* Counts of calls per symbol (index as in `symbols`), kept only while
   * counting is on (it is off at the start). Approximate. */
  void (*enable_counting)(int on);
  uint64_t (*calls)(uint32_t symbol_index);
  /* How many look-ups or first calls came by this route, for this symbol;
   * exact. */
  uint64_t (*route_calls)(uint32_t symbol_index, int route);

  /* Fail open: every slot back to the driver, for good. `reason` is printed
   * once. */
  void (*disable)(const char* reason);
} HeddleInterposer;

/* Filled in by the runtime. Any pointer may be NULL. */
typedef struct HeddleRuntime {
  uint32_t abi_version;
  uint32_t struct_size;

  /* The process ends normally (exit handler or destructor; the driver may be
   * gone already). */
  void (*at_exit)(void);
  /* Around fork(). `child` runs in the child before fork() returns there. */
  void (*before_fork)(void);
  void (*after_fork_parent)(void);
  void (*after_fork_child)(void);

  /* NVTX events of the program, through the interposer's NVTX injection entry.
   * `name` may be NULL. Domain 0 = default. */
  void (*nvtx_push)(uint64_t domain, const char* name);
  void (*nvtx_pop)(uint64_t domain);
  void (*nvtx_start)(uint64_t domain, uint64_t id, const char* name);
  void (*nvtx_end)(uint64_t domain, uint64_t id);
  void (*nvtx_mark)(uint64_t domain, const char* name);

  /* heddle_measure() of include/heddle/measure.h. */
  int (*measure)(int mode);
  /* heddle_measure_own_graphs(), the same. */
  int (*own_graphs)(int own);
} HeddleRuntime;

/* The runtime's one entry. `runtime` has abi_version and struct_size set by the
 * caller. Returns 0 when the runtime is active, 1 when it has nothing to do in
 * this process (no HEDDLE_* variable asks for anything), -1 on an error
 * (already printed). */
typedef int (*HeddleRuntimeAttachFn)(const HeddleInterposer* interposer,
                                     HeddleRuntime* runtime);
#define HEDDLE_RUNTIME_ATTACH_SYMBOL "heddle_runtime_attach"

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_RUNTIME_RECORD_HOOK_TABLE_H_ */
