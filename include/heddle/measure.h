/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_MEASURE_H_
#define HEDDLE_MEASURE_H_

/* What recording costs and what rewriting gains, measured inside one process.
 *
 * Two runs of one program differ by more than recording costs, so a comparison
 * of processes says little. libheddle_preload.so therefore exports a function
 * that leads the program's work past the recorder and back while it runs; a
 * benchmark alternates short blocks of steps. It is for measurement alone: a
 * trace that was switched has holes (each switch is a Note record in it).
 *
 * What is switched: the calls that a step repeats, and that recording needs to
 * know only in order to write them down. Launches (cuLaunch*, cuGraphLaunch),
 * copies and fills (cuMemcpy*, cuMemset*), recording, waiting for and asking
 * events and streams, memory operations of streams, host functions.
 *
 * What is not: everything that changes what recording knows. Contexts, modules
 * and kernels, memory, streams, creation of events, captures, graphs and their
 * executables, tensor maps; also NVTX ranges. Those calls are seen in every
 * mode, so their cost is no part of what two modes differ by, and recording is
 * right again from the switch back on.
 *
 * The library need not be there: find the function at run time,
 *
 *   int (*measure)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "heddle_measure");
 *
 * in Python ctypes.CDLL(None).heddle_measure. */

#ifdef __cplusplus
extern "C" {
#endif

/* The argument. */
enum {
  /* Recording as its options say: where the program starts. */
  HEDDLE_MEASURE_ATTACHED = 0,
  /* Work goes straight to the driver (to the rewriter, if that is on, too), at
   * the cost of one jump. */
  HEDDLE_MEASURE_DETACHED = 1,
  /* All work is written to the trace, whatever HEDDLE_WINDOW says. Memory is
   * not kept. */
  HEDDLE_MEASURE_WRITING = 2
};

/* The result. */
enum {
  HEDDLE_MEASURE_DONE = 0,
  /* Nothing is recorded in this process (any more), or no CUDA call was made
   * yet. */
  HEDDLE_MEASURE_OFF = 1,
  /* Not now: a step is being recorded, a stream captures, or another thread is
   * in this function. Nothing has changed. */
  HEDDLE_MEASURE_BUSY = 2,
  HEDDLE_MEASURE_BAD_MODE = 3
};

/* Changes the mode of the whole process. In modes other than ATTACHED no step
 * is begun. Any thread may call it; a call of the driver that another thread is
 * in meanwhile counts for either mode. */
int heddle_measure(int mode);

/* Which form of a rewritten graph runs, for comparing both in one process (the
 * rewriter has to be on: HEDDLE_OPT). 1: every launch runs the program's own
 * graph. 0: what the rewriter chose, where the program starts. Launches that
 * are still trials are trials either way.
 *
 * Returns how many of the program's graphs have a rewritten form in use, or -1
 * if nothing is rewritten in this process. Any thread may call it. */
int heddle_measure_own_graphs(int own);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_MEASURE_H_ */
