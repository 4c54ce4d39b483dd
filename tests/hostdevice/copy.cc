// SPDX-License-Identifier: Apache-2.0
// Executing copies and fills, and checking them.

#include <cstring>

#include "tests/hostdevice/device.h"
#include "tests/hostdevice/work.h"

namespace heddle::hostdevice {
namespace {

struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  uint64_t x;  // bytes
  uint64_t y;
  uint64_t z;
  uint64_t pitch;
  uint64_t height;

  uint64_t address() const {
    return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host)
                                      : device;
  }
  uint64_t Row(uint64_t row, uint64_t slice) const {
    return address() + ((z + slice) * height + y + row) * pitch + x;
  }
};

Side Source(const CUDA_MEMCPY3D& copy) {
  Side side{copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
            copy.srcY,          copy.srcZ,    copy.srcPitch,  copy.srcHeight};
  // Zeros mean "packed".
  if (side.pitch == 0) side.pitch = copy.WidthInBytes + side.x;
  if (side.height == 0) side.height = copy.Height + side.y;
  return side;
}

Side Destination(const CUDA_MEMCPY3D& copy) {
  Side side{copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
            copy.dstY,          copy.dstZ,    copy.dstPitch,  copy.dstHeight};
  if (side.pitch == 0) side.pitch = copy.WidthInBytes + side.x;
  if (side.height == 0) side.height = copy.Height + side.y;
  return side;
}

CUresult CheckSide(const Side& side, const CUDA_MEMCPY3D& copy) {
  switch (side.type) {
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      break;
    case CU_MEMORYTYPE_ARRAY:
      return CUDA_ERROR_NOT_SUPPORTED;  // there are no arrays here
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (side.address() == 0) return CUDA_ERROR_INVALID_VALUE;
  if (copy.Height > 1 || copy.Depth > 1) {
    if (side.pitch < copy.WidthInBytes + side.x) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const uint64_t first = side.Row(0, 0);
  const uint64_t last =
      side.Row(copy.Height - 1, copy.Depth - 1) + copy.WidthInBytes;
  Memory& memory = Device::Get().memory();
  if (side.type == CU_MEMORYTYPE_DEVICE || Memory::InDeviceRange(first)) {
    if (!memory.Contains(first, last - first)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CheckCopy(const CopyWork& work) {
  if (work.Bytes() == 0) return CUDA_SUCCESS;
  HD_TRY(CheckSide(Source(work.copy), work.copy));
  return CheckSide(Destination(work.copy), work.copy);
}

CUresult CheckSet(const SetWork& work) {
  const CUDA_MEMSET_NODE_PARAMS_v1& set = work.set;
  if (set.elementSize != 1 && set.elementSize != 2 && set.elementSize != 4) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (set.width == 0 || set.height == 0) return CUDA_SUCCESS;
  const uint64_t row = uint64_t{set.width} * set.elementSize;
  if (set.dst % set.elementSize != 0 ||
      (set.height > 1 &&
       (set.pitch < row || set.pitch % set.elementSize != 0))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t size = (set.height - 1) * set.pitch + row;
  if (!Device::Get().memory().Contains(set.dst, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

void RunCopy(const CopyWork& work) {
  const CUDA_MEMCPY3D& copy = work.copy;
  if (work.Bytes() == 0) return;
  if (CheckCopy(work) != CUDA_SUCCESS) {
    // The memory went while the copy was on its way.
    Device::Get().scheduler().Fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    return;
  }
  const Side source = Source(copy);
  const Side destination = Destination(copy);
  const uint8_t* staged =
      work.staging == nullptr ? nullptr : work.staging->data();
  for (uint64_t slice = 0; slice < copy.Depth; ++slice) {
    for (uint64_t row = 0; row < copy.Height; ++row) {
      const void* from = reinterpret_cast<const void*>(source.Row(row, slice));
      if (staged != nullptr) {
        from = staged;
        staged += copy.WidthInBytes;
      }
      std::memmove(reinterpret_cast<void*>(destination.Row(row, slice)), from,
                   copy.WidthInBytes);
    }
  }
}

std::shared_ptr<std::vector<uint8_t>> StageSource(const CopyWork& work) {
  auto staging = std::make_shared<std::vector<uint8_t>>(work.Bytes());
  if (staging->empty()) return staging;
  const CUDA_MEMCPY3D& copy = work.copy;
  const Side source = Source(copy);
  uint8_t* out = staging->data();
  for (uint64_t slice = 0; slice < copy.Depth; ++slice) {
    for (uint64_t row = 0; row < copy.Height; ++row) {
      std::memcpy(out, reinterpret_cast<const void*>(source.Row(row, slice)),
                  copy.WidthInBytes);
      out += copy.WidthInBytes;
    }
  }
  return staging;
}

void RunSet(const SetWork& work) {
  const CUDA_MEMSET_NODE_PARAMS_v1& set = work.set;
  if (set.width == 0 || set.height == 0) return;
  if (CheckSet(work) != CUDA_SUCCESS) {
    Device::Get().scheduler().Fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    return;
  }
  for (uint64_t row = 0; row < set.height; ++row) {
    auto* out = reinterpret_cast<uint8_t*>(set.dst + row * set.pitch);
    for (uint64_t i = 0; i < set.width; ++i) {
      std::memcpy(out + i * set.elementSize, &set.value, set.elementSize);
    }
  }
}

}  // namespace heddle::hostdevice
