/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_DLSYM_H_
#define HEDDLE_INTERPOSE_DLSYM_H_

/* The exported dlsym (dlsym_entry.S) asks heddle_filter_dlsym() and then either
 * returns its answer or jumps to the real dlsym as if it had never been there:
 * what RTLD_NEXT and RTLD_DEFAULT mean depends on the return address.
 *
 * dlvsym is not interposed: the driver's symbols have no versions, and it is
 * the only safe way to the C library's own dlsym. */

typedef void *(*heddle_dlsym_fn)(void *handle, const char *name);

/* The next dlsym after ours: the C library's, or that of another tool. */
heddle_dlsym_fn heddle_real_dlsym(void);

/* Returned in two registers. */
struct heddle_dlsym_answer {
  void *value; /* the result if `decided`, else the function to jump to */
  long decided;
};

/* Answers a program's dlsym with a wrapper only if the real look-up finds the
 * driver's own function for exactly this name, and the caller is neither the
 * driver nor our runtime. */
struct heddle_dlsym_answer heddle_filter_dlsym(void *handle, const char *name,
                                               void *caller);

/* dlsym as exported; its address goes into import tables on injection. */
extern const char heddle_dlsym_entry[];

#endif /* HEDDLE_INTERPOSE_DLSYM_H_ */
