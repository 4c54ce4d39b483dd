/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TESTS_UNIT_INTERPOSE_FAKE_DRIVER_H_
#define HEDDLE_TESTS_UNIT_INTERPOSE_FAKE_DRIVER_H_

/* A libcuda.so.1 that does nothing but say which of its functions was called.
 * It exports every symbol of the surface, each with a body of its own, and a
 * cuGetProcAddress that follows cuda.h.
 *
 * Environment: FAKE_PROC_ALIAS=1 makes cuGetProcAddress return functions that
 * are not the ELF symbols; FAKE_SHARED=1 makes it return one address for
 * functions that share a stub; FAKE_WSL=1 makes cuInit look itself up with
 * dlsym, as the driver of WSL does; CUDA_INJECTION64_PATH works as in the real
 * driver. */

#ifdef __cplusplus
extern "C" {
#endif

enum { FAKE_FAMILY_ELF = 0, FAKE_FAMILY_PROC = 1, FAKE_ARGUMENTS = 11 };

/* The call that this thread made last; {-1, -1} if none since the last reset.
 */
struct fake_call {
  int family;
  int index;
  unsigned long arguments[FAKE_ARGUMENTS];
};
struct fake_call fake_driver_last_call(void);
void fake_driver_reset(void);

/* Calls of all threads. */
unsigned long fake_driver_calls(int family, int index);
unsigned long fake_driver_all_calls(void);

/* What the last cuParamSetf was given. */
float fake_driver_last_float(void);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TESTS_UNIT_INTERPOSE_FAKE_DRIVER_H_ */
