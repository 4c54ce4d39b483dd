// SPDX-License-Identifier: Apache-2.0
// Calls that queue work or touch device memory and have no other hook here.

#include "runtime/live/hooks.h"

namespace heddle::live {

void AddGateHooks(HookList* list) {
  HEDDLE_LIVE_GATED_PTSZ(list, cuLaunchKernel);
  HEDDLE_LIVE_GATED_PTSZ(list, cuLaunchKernelEx);
  HEDDLE_LIVE_GATED_PTSZ(list, cuLaunchCooperativeKernel);
  HEDDLE_LIVE_GATED_PTSZ(list, cuLaunchHostFunc);
  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamAddCallback);
#if CUDA_VERSION < 13000
  HEDDLE_LIVE_GATED(list, cuLaunchCooperativeKernelMultiDevice);
#endif

  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpy);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyAsync);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyHtoD_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyHtoDAsync_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyDtoH_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyDtoHAsync_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyDtoD_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyDtoDAsync_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyPeer);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyPeerAsync);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpy2D_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpy2DUnaligned_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpy2DAsync_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpy3D_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpy3DAsync_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpy3DPeer);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpy3DPeerAsync);
#if CUDA_VERSION >= 13000
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyBatchAsync_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpy3DBatchAsync_v2);
#endif
#if CUDA_VERSION >= 12080
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyBatchAsync);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpy3DBatchAsync);
#endif
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyDtoA_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyAtoD_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyHtoA_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyAtoH_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemcpyAtoA_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyHtoAAsync_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemcpyAtoHAsync_v2);

  HEDDLE_LIVE_GATED_PTDS(list, cuMemsetD8_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemsetD16_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemsetD32_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemsetD2D8_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemsetD2D16_v2);
  HEDDLE_LIVE_GATED_PTDS(list, cuMemsetD2D32_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemsetD8Async);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemsetD16Async);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemsetD32Async);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemsetD2D8Async);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemsetD2D16Async);
  HEDDLE_LIVE_GATED_PTSZ(list, cuMemsetD2D32Async);

  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamBatchMemOp_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamWriteValue32_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamWriteValue64_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamWaitValue32_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamWaitValue64_v2);
  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamAttachMemAsync);
  HEDDLE_LIVE_GATED_PTSZ(list, cuEventRecord);
  HEDDLE_LIVE_GATED_PTSZ(list, cuEventRecordWithFlags);
  HEDDLE_LIVE_GATED_PTSZ(list, cuStreamWaitEvent);
  HEDDLE_LIVE_GATED_PTSZ(list, cuGraphUpload);
}

}  // namespace heddle::live
