/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TESTS_HOSTDEVICE_CONTROL_H_
#define HEDDLE_TESTS_HOSTDEVICE_CONTROL_H_

/* What tests may ask of the host device beyond the driver API. Like the
 * functions of timeline.h, these are exported by libcuda.so.1.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the random choices anew, as HEDDLE_HOSTDEVICE_SEED does for the first
 * time. Synchronize before, or what is queued is ordered by both. */
void heddleHostDeviceSetSeed(uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TESTS_HOSTDEVICE_CONTROL_H_ */
