// SPDX-License-Identifier: Apache-2.0
// Waits for and writes of values in memory, in stream order.

#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/graph_params.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

CUresult BatchMemOp(CUstream hStream, unsigned count,
                    const CUstreamBatchMemOpParams* ops, unsigned flags) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HD_TRY(CheckMemOps(count, ops));
  MemOpWork work;
  work.ops.assign(ops, ops + count);
  work.context = stream->context;
  work.flags = flags;
  if (stream->capture != nullptr) {
    return CaptureWork(stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(work),
                       false);
  }
  return Enqueue(stream, std::move(work));
}

CUresult WaitValue(CUstream hStream, CUstreamBatchMemOpType operation,
                   CUdeviceptr addr, uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = operation;
  op.waitValue.address = addr;
  op.waitValue.value64 = value;
  op.waitValue.flags = flags;
  return BatchMemOp(hStream, 1, &op, 0);
}

CUresult WriteValue(CUstream hStream, CUstreamBatchMemOpType operation,
                    CUdeviceptr addr, uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = operation;
  op.writeValue.address = addr;
  op.writeValue.value64 = value;
  op.writeValue.flags = flags;
  return BatchMemOp(hStream, 1, &op, 0);
}

}  // namespace

HD_STREAM_API(cuStreamWaitValue32_v2,
              (CUstream hStream, CUdeviceptr addr, cuuint32_t value,
               unsigned int flags),
              (hStream, addr, value, flags)) {
  return WaitValue(hStream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

HD_STREAM_API(cuStreamWaitValue64_v2,
              (CUstream hStream, CUdeviceptr addr, cuuint64_t value,
               unsigned int flags),
              (hStream, addr, value, flags)) {
  return WaitValue(hStream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

HD_STREAM_API(cuStreamWriteValue32_v2,
              (CUstream hStream, CUdeviceptr addr, cuuint32_t value,
               unsigned int flags),
              (hStream, addr, value, flags)) {
  return WriteValue(hStream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value,
                    flags);
}

HD_STREAM_API(cuStreamWriteValue64_v2,
              (CUstream hStream, CUdeviceptr addr, cuuint64_t value,
               unsigned int flags),
              (hStream, addr, value, flags)) {
  return WriteValue(hStream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value,
                    flags);
}

HD_STREAM_API(cuStreamBatchMemOp_v2,
              (CUstream hStream, unsigned int count,
               CUstreamBatchMemOpParams* paramArray, unsigned int flags),
              (hStream, count, paramArray, flags)) {
  return BatchMemOp(hStream, count, paramArray, flags);
}

}  // namespace heddle::hostdevice
