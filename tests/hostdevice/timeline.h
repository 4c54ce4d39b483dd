/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TESTS_HOSTDEVICE_TIMELINE_H_
#define HEDDLE_TESTS_HOSTDEVICE_TIMELINE_H_

/* What the host device executed and when, in simulated time: its counterpart of
 * CUPTI's activity records. Programs find these functions with dlsym in
 * libcuda.so.1; their absence means a real driver.
 *
 * Simulated time starts at 0 with cuInit and does not depend on the speed of
 * the host: see scheduler.h for the cost model.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum HeddleHostDeviceActivityKind {
  HEDDLE_HOST_DEVICE_KERNEL = 1,
  HEDDLE_HOST_DEVICE_MEMCPY = 2,
  HEDDLE_HOST_DEVICE_MEMSET = 3,
  HEDDLE_HOST_DEVICE_HOST_FUNCTION = 4,
};

typedef struct HeddleHostDeviceActivity {
  uint32_t kind;
  /* Kernel name, or "memcpy" and so on. Valid until the process ends. */
  const char* name;
  uint64_t stream_id; /* as cuStreamGetId tells it */
  /* Of the executable graph and of the node in the graph that it was made
   * from, counted from 1; 0 outside graphs. */
  uint64_t graph_exec_id;
  uint64_t graph_node_id;
  uint64_t correlation; /* order of submission, from 1 */
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t blocks; /* executed */
  uint64_t bytes;  /* copied or set */
  uint64_t start_ns;
  uint64_t end_ns;
} HeddleHostDeviceActivity;

/* Off at the start. */
void heddleHostDeviceEnableTimeline(int enable);
void heddleHostDeviceClearTimeline(void);

/* Copies up to `max` activities, in order of completion, and returns how many
 * there are. Call it once with max = 0 for the count. Waits for nothing:
 * synchronize first. */
int heddleHostDeviceGetTimeline(HeddleHostDeviceActivity* out, int max);

/* The simulated time now: when all that has executed so far was done. */
uint64_t heddleHostDeviceNow(void);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TESTS_HOSTDEVICE_TIMELINE_H_ */
