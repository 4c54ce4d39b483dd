// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/copy_record.h"

#include <cstring>

#include "runtime/record/snapshot.h"

namespace heddle::record {
namespace {

enum class Side { kHost, kDevice, kArray, kUnified };

Side SideOf(CUmemorytype type) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return Side::kHost;
    case CU_MEMORYTYPE_DEVICE:
      return Side::kDevice;
    case CU_MEMORYTYPE_ARRAY:
      return Side::kArray;
    default:
      return Side::kUnified;
  }
}

fb::MemcpyKind KindOf(Side src, Side dst) {
  if (src == Side::kArray && dst == Side::kArray) return fb::MemcpyKind::kAtoA;
  if (src == Side::kArray) {
    return dst == Side::kHost ? fb::MemcpyKind::kAtoH : fb::MemcpyKind::kAtoD;
  }
  if (dst == Side::kArray) {
    return src == Side::kHost ? fb::MemcpyKind::kHtoA : fb::MemcpyKind::kDtoA;
  }
  if (src == Side::kUnified || dst == Side::kUnified) {
    return fb::MemcpyKind::kDefault;
  }
  if (src == Side::kHost) {
    return dst == Side::kHost ? fb::MemcpyKind::kHtoH : fb::MemcpyKind::kHtoD;
  }
  return dst == Side::kHost ? fb::MemcpyKind::kDtoH : fb::MemcpyKind::kDtoD;
}

uint64_t Address(CUmemorytype type, const void* host, CUdeviceptr device,
                 CUarray array) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return reinterpret_cast<uint64_t>(host);
    case CU_MEMORYTYPE_ARRAY:
      return reinterpret_cast<uint64_t>(array);
    default:
      return device;
  }
}

// Rows without their padding.
std::vector<uint8_t> Gather(const CopyCall& call) {
  std::vector<uint8_t> bytes(call.bytes());
  const auto* base = reinterpret_cast<const uint8_t*>(call.src);
  uint8_t* out = bytes.data();
  for (uint64_t z = 0; z < call.depth; ++z) {
    for (uint64_t y = 0; y < call.height; ++y) {
      std::memcpy(out, base + z * call.src_slice + y * call.src_pitch,
                  call.width);
      out += call.width;
    }
  }
  return bytes;
}

}  // namespace

CopyCall FromCopy2D(const CUDA_MEMCPY2D& copy) {
  CopyCall call;
  call.kind = KindOf(SideOf(copy.srcMemoryType), SideOf(copy.dstMemoryType));
  call.width = copy.WidthInBytes;
  call.height = copy.Height;
  // A pitch of 0 means rows without padding.
  call.src_pitch = copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes;
  call.dst_pitch = copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes;
  call.src =
      Address(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray);
  call.dst =
      Address(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray);
  if (copy.srcMemoryType != CU_MEMORYTYPE_ARRAY) {
    call.src += copy.srcY * call.src_pitch + copy.srcXInBytes;
  }
  if (copy.dstMemoryType != CU_MEMORYTYPE_ARRAY) {
    call.dst += copy.dstY * call.dst_pitch + copy.dstXInBytes;
  }
  return call;
}

CopyCall FromCopy3D(const CUDA_MEMCPY3D& copy) {
  CopyCall call;
  call.kind = KindOf(SideOf(copy.srcMemoryType), SideOf(copy.dstMemoryType));
  call.width = copy.WidthInBytes;
  call.height = copy.Height;
  call.depth = copy.Depth;
  call.src_pitch = copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes;
  call.dst_pitch = copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes;
  call.src_slice =
      call.src_pitch * (copy.srcHeight != 0 ? copy.srcHeight : copy.Height);
  call.dst_slice =
      call.dst_pitch * (copy.dstHeight != 0 ? copy.dstHeight : copy.Height);
  call.src =
      Address(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray);
  call.dst =
      Address(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray);
  if (copy.srcMemoryType != CU_MEMORYTYPE_ARRAY) {
    call.src += copy.srcZ * call.src_slice + copy.srcY * call.src_pitch +
                copy.srcXInBytes;
  }
  if (copy.dstMemoryType != CU_MEMORYTYPE_ARRAY) {
    call.dst += copy.dstZ * call.dst_slice + copy.dstY * call.dst_pitch +
                copy.dstXInBytes;
  }
  return call;
}

fb::MemcpyKind ResolveKind(const Recorder& recorder, const CopyCall& call) {
  if (call.kind != fb::MemcpyKind::kDefault) return call.kind;
  const device::Driver& driver = recorder.driver();
  const auto on_device = [&](uint64_t address) {
    if (driver.PointerGetAttribute == nullptr) return false;
    unsigned int type = 0;
    // Fails for pageable host memory, which is then what it is.
    return driver.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      address) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
  };
  return KindOf(on_device(call.src) ? Side::kDevice : Side::kHost,
                on_device(call.dst) ? Side::kDevice : Side::kHost);
}

fb::MemcpyT MakeCopy(Recorder& recorder, const CopyCall& call) {
  fb::MemcpyT record;
  record.stamp = recorder.StampPtr();
  record.dst = call.dst;
  record.src = call.src;
  record.width = call.width;
  record.height = call.height;
  record.depth = call.depth;
  record.dst_pitch = call.dst_pitch;
  record.src_pitch = call.src_pitch;
  record.dst_slice = call.dst_slice;
  record.src_slice = call.src_slice;
  record.kind = call.kind;
  const MemoryPolicy policy = recorder.options().memory;
  const bool keep =
      record.kind == fb::MemcpyKind::kHtoD && call.bytes() > 0 &&
      (policy == MemoryPolicy::kFull ||
       (policy == MemoryPolicy::kSmall && call.bytes() <= kSmallRange));
  if (keep) {
    const trace::Hash128 hash =
        call.height * call.depth == 1
            ? recorder.writer().AppendBlob(absl::MakeConstSpan(
                  reinterpret_cast<const uint8_t*>(call.src), call.width))
            : recorder.writer().AppendBlob(Gather(call));
    record.data = std::make_unique<fb::Hash128>(hash.lo, hash.hi);
  }
  return record;
}

}  // namespace heddle::record
