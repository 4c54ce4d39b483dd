// SPDX-License-Identifier: Apache-2.0
// cuMemcpy* and cuMemset*. What the host may rely on when a call returns
// follows "API synchronization behavior" in the driver API's documentation.

#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

enum class Form : uint8_t { kSync, kAsync };

// Whether the host owns these bytes and the driver knows nothing of them.
bool Pageable(CUmemorytype type, const void* host, CUdeviceptr device) {
  const uint64_t address =
      type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device;
  return Device::Get().memory().Find(address) == nullptr;
}

bool OnDevice(CUmemorytype type, const void* host, CUdeviceptr device) {
  const uint64_t address =
      type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device;
  const Allocation* allocation = Device::Get().memory().Find(address);
  return allocation != nullptr && allocation->kind != AllocationKind::kHost &&
         allocation->kind != AllocationKind::kRegistered;
}

CUresult Copy(CopyWork work, CUstream hStream, Form form) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  work.context = stream->context;
  HD_TRY(CheckCopy(work));
  const CUDA_MEMCPY3D& copy = work.copy;
  if (form == Form::kAsync && stream->capture != nullptr) {
    return CaptureWork(stream, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(work),
                       false);
  }
  if (form == Form::kSync) {
    HD_TRY(RefuseInCapture(stream));
    HD_TRY(CheckUnsafe());
  }
  const bool source_pageable =
      Pageable(copy.srcMemoryType, copy.srcHost, copy.srcDevice);
  const bool destination_pageable =
      Pageable(copy.dstMemoryType, copy.dstHost, copy.dstDevice);
  const bool source_on_device =
      OnDevice(copy.srcMemoryType, copy.srcHost, copy.srcDevice);
  const bool destination_on_device =
      OnDevice(copy.dstMemoryType, copy.dstHost, copy.dstDevice);

  bool wait = false;
  if (source_pageable && destination_on_device) {
    // The source is staged now; the copy to the device may come later, also of
    // a "synchronous" call, which first waits for its stream.
    if (form == Form::kSync) {
      HD_TRY(CheckLegacy(stream));
      HD_TRY(Synchronize(stream));
    }
    work.staging = StageSource(work);
  } else if (destination_pageable) {
    wait = true;
  } else if (source_on_device && destination_on_device) {
    wait = false;
  } else {
    wait = form == Form::kSync;
  }
  std::shared_ptr<Op> op;
  HD_TRY(Enqueue(stream, std::move(work), &op));
  return wait ? Device::Get().scheduler().Wait({op}) : CUDA_SUCCESS;
}

CopyWork Linear(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type,
                uint64_t src, size_t bytes) {
  CopyWork work;
  CUDA_MEMCPY3D& copy = work.copy;
  copy.dstMemoryType = dst_type;
  copy.srcMemoryType = src_type;
  if (dst_type == CU_MEMORYTYPE_HOST) {
    copy.dstHost = reinterpret_cast<void*>(dst);
  } else {
    copy.dstDevice = dst;
  }
  if (src_type == CU_MEMORYTYPE_HOST) {
    copy.srcHost = reinterpret_cast<const void*>(src);
  } else {
    copy.srcDevice = src;
  }
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return work;
}

CopyWork Plane(const CUDA_MEMCPY2D& plane) {
  CopyWork work;
  CUDA_MEMCPY3D& copy = work.copy;
  copy.srcXInBytes = plane.srcXInBytes;
  copy.srcY = plane.srcY;
  copy.srcMemoryType = plane.srcMemoryType;
  copy.srcHost = plane.srcHost;
  copy.srcDevice = plane.srcDevice;
  copy.srcArray = plane.srcArray;
  copy.srcPitch = plane.srcPitch;
  copy.dstXInBytes = plane.dstXInBytes;
  copy.dstY = plane.dstY;
  copy.dstMemoryType = plane.dstMemoryType;
  copy.dstHost = plane.dstHost;
  copy.dstDevice = plane.dstDevice;
  copy.dstArray = plane.dstArray;
  copy.dstPitch = plane.dstPitch;
  copy.WidthInBytes = plane.WidthInBytes;
  copy.Height = plane.Height;
  copy.Depth = 1;
  return work;
}

CUresult Set(CUdeviceptr dst, size_t pitch, unsigned value,
             unsigned element_size, size_t width, size_t height,
             CUstream hStream, Form form) {
  HD_ENTER(kContext);
  Stream* stream = FindStream(call.context(), hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  SetWork work;
  work.set.dst = dst;
  work.set.pitch = pitch;
  work.set.value = value;
  work.set.elementSize = element_size;
  work.set.width = width;
  work.set.height = height;
  work.context = stream->context;
  HD_TRY(CheckSet(work));
  if (form == Form::kAsync && stream->capture != nullptr) {
    return CaptureWork(stream, CU_GRAPH_NODE_TYPE_MEMSET, std::move(work),
                       false);
  }
  if (form == Form::kSync) {
    HD_TRY(RefuseInCapture(stream));
    HD_TRY(CheckUnsafe());
  }
  std::shared_ptr<Op> op;
  HD_TRY(Enqueue(stream, std::move(work), &op));
  // Fills are asynchronous to the host unless they hit host memory.
  const Allocation* target = Device::Get().memory().Find(dst);
  const bool wait = form == Form::kSync && target != nullptr &&
                    (target->kind == AllocationKind::kHost ||
                     target->kind == AllocationKind::kRegistered ||
                     target->kind == AllocationKind::kManaged);
  return wait ? Device::Get().scheduler().Wait({op}) : CUDA_SUCCESS;
}

constexpr CUmemorytype kHost = CU_MEMORYTYPE_HOST;
constexpr CUmemorytype kDevice = CU_MEMORYTYPE_DEVICE;
constexpr CUmemorytype kUnified = CU_MEMORYTYPE_UNIFIED;

uint64_t Address(const void* host) { return reinterpret_cast<uint64_t>(host); }

}  // namespace

HD_DEFAULT_STREAM_API(cuMemcpy,
                      (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
                      (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
                       CUstream hStream),
                      (dst, src, ByteCount, hStream)) {
  return Copy(Linear(kUnified, dst, kUnified, src, ByteCount), hStream,
              Form::kSync);
}

HD_DEFAULT_STREAM_API(cuMemcpyHtoD_v2,
                      (CUdeviceptr dstDevice, const void* srcHost,
                       size_t ByteCount),
                      (CUdeviceptr dstDevice, const void* srcHost,
                       size_t ByteCount, CUstream hStream),
                      (dstDevice, srcHost, ByteCount, hStream)) {
  return Copy(Linear(kDevice, dstDevice, kHost, Address(srcHost), ByteCount),
              hStream, Form::kSync);
}

HD_DEFAULT_STREAM_API(cuMemcpyDtoH_v2,
                      (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount),
                      (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                       CUstream hStream),
                      (dstHost, srcDevice, ByteCount, hStream)) {
  return Copy(Linear(kHost, Address(dstHost), kDevice, srcDevice, ByteCount),
              hStream, Form::kSync);
}

HD_DEFAULT_STREAM_API(cuMemcpyDtoD_v2,
                      (CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                       size_t ByteCount),
                      (CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                       size_t ByteCount, CUstream hStream),
                      (dstDevice, srcDevice, ByteCount, hStream)) {
  return Copy(Linear(kDevice, dstDevice, kDevice, srcDevice, ByteCount),
              hStream, Form::kSync);
}

HD_DEFAULT_STREAM_API(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* pCopy),
                      (const CUDA_MEMCPY2D* pCopy, CUstream hStream),
                      (pCopy, hStream)) {
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(Plane(*pCopy), hStream, Form::kSync);
}

HD_DEFAULT_STREAM_API(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* pCopy),
                      (const CUDA_MEMCPY2D* pCopy, CUstream hStream),
                      (pCopy, hStream)) {
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(Plane(*pCopy), hStream, Form::kSync);
}

HD_DEFAULT_STREAM_API(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* pCopy),
                      (const CUDA_MEMCPY3D* pCopy, CUstream hStream),
                      (pCopy, hStream)) {
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyWork work;
  work.copy = *pCopy;
  return Copy(std::move(work), hStream, Form::kSync);
}

HD_STREAM_API(cuMemcpyAsync,
              (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
               CUstream hStream),
              (dst, src, ByteCount, hStream)) {
  return Copy(Linear(kUnified, dst, kUnified, src, ByteCount), hStream,
              Form::kAsync);
}

HD_STREAM_API(cuMemcpyHtoDAsync_v2,
              (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
               CUstream hStream),
              (dstDevice, srcHost, ByteCount, hStream)) {
  return Copy(Linear(kDevice, dstDevice, kHost, Address(srcHost), ByteCount),
              hStream, Form::kAsync);
}

HD_STREAM_API(cuMemcpyDtoHAsync_v2,
              (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
               CUstream hStream),
              (dstHost, srcDevice, ByteCount, hStream)) {
  return Copy(Linear(kHost, Address(dstHost), kDevice, srcDevice, ByteCount),
              hStream, Form::kAsync);
}

HD_STREAM_API(cuMemcpyDtoDAsync_v2,
              (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
               CUstream hStream),
              (dstDevice, srcDevice, ByteCount, hStream)) {
  return Copy(Linear(kDevice, dstDevice, kDevice, srcDevice, ByteCount),
              hStream, Form::kAsync);
}

HD_STREAM_API(cuMemcpy2DAsync_v2,
              (const CUDA_MEMCPY2D* pCopy, CUstream hStream),
              (pCopy, hStream)) {
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(Plane(*pCopy), hStream, Form::kAsync);
}

HD_STREAM_API(cuMemcpy3DAsync_v2,
              (const CUDA_MEMCPY3D* pCopy, CUstream hStream),
              (pCopy, hStream)) {
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyWork work;
  work.copy = *pCopy;
  return Copy(std::move(work), hStream, Form::kAsync);
}

// There is one device and one address space.
HD_DEFAULT_STREAM_API(
    cuMemcpyPeer,
    (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
     CUcontext srcContext, size_t ByteCount),
    (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
     CUcontext srcContext, size_t ByteCount, CUstream hStream),
    (dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream)) {
  (void)dstContext;
  (void)srcContext;
  return Copy(Linear(kDevice, dstDevice, kDevice, srcDevice, ByteCount),
              hStream, Form::kSync);
}

HD_STREAM_API(cuMemcpyPeerAsync,
              (CUdeviceptr dstDevice, CUcontext dstContext,
               CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
               CUstream hStream),
              (dstDevice, dstContext, srcDevice, srcContext, ByteCount,
               hStream)) {
  (void)dstContext;
  (void)srcContext;
  return Copy(Linear(kDevice, dstDevice, kDevice, srcDevice, ByteCount),
              hStream, Form::kAsync);
}

#define HD_MEMSET(bits, type)                                               \
  HD_DEFAULT_STREAM_API(                                                    \
      cuMemsetD##bits##_v2, (CUdeviceptr dst, type value, size_t N),        \
      (CUdeviceptr dst, type value, size_t N, CUstream hStream),            \
      (dst, value, N, hStream)) {                                           \
    return Set(dst, N * ((bits) / 8), value, (bits) / 8, N, 1, hStream,     \
               Form::kSync);                                                \
  }                                                                         \
  HD_DEFAULT_STREAM_API(                                                    \
      cuMemsetD2D##bits##_v2,                                               \
      (CUdeviceptr dst, size_t pitch, type value, size_t w, size_t h),      \
      (CUdeviceptr dst, size_t pitch, type value, size_t w, size_t h,       \
       CUstream hStream),                                                   \
      (dst, pitch, value, w, h, hStream)) {                                 \
    return Set(dst, pitch, value, (bits) / 8, w, h, hStream, Form::kSync);  \
  }                                                                         \
  HD_STREAM_API(cuMemsetD##bits##Async,                                     \
                (CUdeviceptr dst, type value, size_t N, CUstream hStream),  \
                (dst, value, N, hStream)) {                                 \
    return Set(dst, N * ((bits) / 8), value, (bits) / 8, N, 1, hStream,     \
               Form::kAsync);                                               \
  }                                                                         \
  HD_STREAM_API(cuMemsetD2D##bits##Async,                                   \
                (CUdeviceptr dst, size_t pitch, type value, size_t w,       \
                 size_t h, CUstream hStream),                               \
                (dst, pitch, value, w, h, hStream)) {                       \
    return Set(dst, pitch, value, (bits) / 8, w, h, hStream, Form::kAsync); \
  }

HD_MEMSET(8, unsigned char)
HD_MEMSET(16, unsigned short)
HD_MEMSET(32, unsigned int)

}  // namespace heddle::hostdevice
