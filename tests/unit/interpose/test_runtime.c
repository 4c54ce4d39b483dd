/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/interpose/test_runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
#define HEDDLE_SYMBOL(index, name) INDEX_##name = (index),
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
  COUNT
};

static const HeddleInterposer *interposer;
static _Atomic unsigned long hook_calls[COUNT];
static _Atomic unsigned long all_hook_calls;

#define PARAMETERS                                                        \
  unsigned long a, unsigned long b, unsigned long c, unsigned long d,     \
      unsigned long e, unsigned long f, unsigned long g, unsigned long h, \
      unsigned long i, unsigned long j, unsigned long k

/* Takes and passes on eleven words, which covers every function of integer
 * parameters. */
#define HEDDLE_SYMBOL(index, name)                                             \
  static int hook_##name(PARAMETERS) {                                         \
    atomic_fetch_add(&hook_calls[index], 1);                                   \
    atomic_fetch_add(&all_hook_calls, 1);                                      \
    return ((int (*)(PARAMETERS))interposer->real(#name))(a, b, c, d, e, f, g, \
                                                          h, i, j, k);         \
  }
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL

static void *const hooks[COUNT] = {
#define HEDDLE_SYMBOL(index, name) (void *)hook_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
};

static void note(const char *text) {
  const char *path = getenv("TEST_LOG");
  if (!path) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  char line[512];
  const int length = snprintf(line, sizeof line, "%s\n", text);
  if (file < 0 || write(file, line, (size_t)length) != length) abort();
  close(file);
}

static void at_exit(void) { note("at_exit"); }
static void before_fork(void) { note("before_fork"); }
static void after_fork_parent(void) { note("after_fork_parent"); }
static void after_fork_child(void) { note("after_fork_child"); }

static void note_range(const char *what, unsigned long domain, unsigned long id,
                       const char *name) {
  char line[400];
  snprintf(line, sizeof line, "%s domain=%lu id=%lu name=%s", what, domain, id,
           name ? name : "(null)");
  note(line);
}
static void push(uint64_t domain, const char *name) {
  note_range("push", domain, 0, name);
}
static void pop(uint64_t domain) { note_range("pop", domain, 0, ""); }
static void start(uint64_t domain, uint64_t id, const char *name) {
  note_range("start", domain, id, name);
}
static void end(uint64_t domain, uint64_t id) {
  note_range("end", domain, id, "");
}
static void mark(uint64_t domain, const char *name) {
  note_range("mark", domain, 0, name);
}

const HeddleInterposer *test_runtime_interposer(void) { return interposer; }

unsigned long test_runtime_hook_calls(int index) {
  return atomic_load(index < 0 ? &all_hook_calls : &hook_calls[index]);
}

void *test_runtime_hook(int index) { return hooks[index]; }

/* A runtime that looks the driver up by itself must reach the driver. */
static void check_own_lookup(void) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return;
  if (dlsym(handle, "cuMemAlloc_v2") != interposer->real("cuMemAlloc_v2")) {
    note("own look-up was substituted");
  }
}

int heddle_runtime_attach(const HeddleInterposer *table,
                          HeddleRuntime *runtime);
int heddle_runtime_attach(const HeddleInterposer *table,
                          HeddleRuntime *runtime) {
  if (table->abi_version != HEDDLE_HOOK_ABI_VERSION ||
      table->struct_size != sizeof *table || table->symbol_count != COUNT ||
      runtime->struct_size != sizeof *runtime) {
    return -1;
  }
  interposer = table;
  note("attach");
  check_own_lookup();
  if (getenv("TEST_SLOW_ATTACH")) usleep(200 * 1000);
  const char *which = getenv("TEST_HOOKS");
  for (int i = 0; which && strcmp(which, "all") == 0 && i < COUNT; ++i) {
    if (table->set_hook(table->symbols[i], hooks[i]) != 0) return -1;
  }
  if (table->set_hook("cuNoSuchFunction", hooks[0]) != -1) return -1;
  runtime->at_exit = at_exit;
  runtime->before_fork = before_fork;
  runtime->after_fork_parent = after_fork_parent;
  runtime->after_fork_child = after_fork_child;
  runtime->nvtx_push = push;
  runtime->nvtx_pop = pop;
  runtime->nvtx_start = start;
  runtime->nvtx_end = end;
  runtime->nvtx_mark = mark;
  const char *result = getenv("TEST_ATTACH");
  return result ? atoi(result) : 0;
}
