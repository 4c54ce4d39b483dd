// SPDX-License-Identifier: Apache-2.0
// Tensor maps: 128 opaque bytes that depend on the arguments alone. No host
// kernel reads them; programs pass them on and heddle looks for them among the
// parameters.

#include <cstring>
#include <vector>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/device.h"
#include "tests/hostdevice/random.h"

namespace heddle::hostdevice {
namespace {

// A number for everything that goes into the map.
class Digest {
 public:
  template <typename T>
  void Add(T value) {
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(value));
    hash_ = Random(hash_ ^ word).Next();
  }
  template <typename T>
  void AddAll(const T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) Add(values[i]);
  }
  void Write(void* address, CUtensorMap* map) const {
    Random bytes(hash_);
    for (cuuint64_t& word : map->opaque) word = bytes.Next();
    // Real maps start with the address, too.
    map->opaque[0] = reinterpret_cast<cuuint64_t>(address);
  }

 private:
  uint64_t hash_ = 0;
};

bool Common(const CUtensorMap* map, cuuint32_t rank, const void* address,
            const cuuint64_t* dim, const cuuint64_t* strides,
            const cuuint32_t* element_strides) {
  // cuda.h: the map's own address is a multiple of 64, the tensor's of 16.
  if (map == nullptr || reinterpret_cast<uintptr_t>(map) % 64 != 0) {
    return false;
  }
  if (rank == 0 || rank > 5 || reinterpret_cast<uintptr_t>(address) % 16 != 0) {
    return false;
  }
  if (dim == nullptr || element_strides == nullptr) return false;
  if (rank > 1 && strides == nullptr) return false;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (dim[i] == 0 || dim[i] > (cuuint64_t{1} << 32)) return false;
    if (element_strides[i] == 0 || element_strides[i] > 8) return false;
    if (i + 1 < rank && strides[i] % 16 != 0) return false;
  }
  return true;
}

}  // namespace

HD_API(cuTensorMapEncodeTiled,
       (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType,
        cuuint32_t tensorRank, void* globalAddress, const cuuint64_t* globalDim,
        const cuuint64_t* globalStrides, const cuuint32_t* boxDim,
        const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
        CUtensorMapFloatOOBfill oobFill)) {
  HD_ENTER(kNothing);
  if (!Common(tensorMap, tensorRank, globalAddress, globalDim, globalStrides,
              elementStrides) ||
      boxDim == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Digest digest;
  for (cuuint32_t i = 0; i < tensorRank; ++i) {
    if (boxDim[i] == 0 || boxDim[i] > 256) return CUDA_ERROR_INVALID_VALUE;
  }
  digest.Add(1);
  digest.Add(tensorDataType);
  digest.Add(globalAddress);
  digest.AddAll(globalDim, tensorRank);
  digest.AddAll(globalStrides, tensorRank - 1);
  digest.AddAll(boxDim, tensorRank);
  digest.AddAll(elementStrides, tensorRank);
  digest.Add(interleave);
  digest.Add(swizzle);
  digest.Add(l2Promotion);
  digest.Add(oobFill);
  digest.Write(globalAddress, tensorMap);
  return CUDA_SUCCESS;
}

HD_API(cuTensorMapEncodeIm2col,
       (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType,
        cuuint32_t tensorRank, void* globalAddress, const cuuint64_t* globalDim,
        const cuuint64_t* globalStrides, const int* pixelBoxLowerCorner,
        const int* pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
        cuuint32_t pixelsPerColumn, const cuuint32_t* elementStrides,
        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)) {
  HD_ENTER(kNothing);
  if (!Common(tensorMap, tensorRank, globalAddress, globalDim, globalStrides,
              elementStrides) ||
      tensorRank < 3 || pixelBoxLowerCorner == nullptr ||
      pixelBoxUpperCorner == nullptr || channelsPerPixel > 256 ||
      pixelsPerColumn > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Digest digest;
  digest.Add(2);
  digest.Add(tensorDataType);
  digest.Add(globalAddress);
  digest.AddAll(globalDim, tensorRank);
  digest.AddAll(globalStrides, tensorRank - 1);
  digest.AddAll(pixelBoxLowerCorner, tensorRank - 2);
  digest.AddAll(pixelBoxUpperCorner, tensorRank - 2);
  digest.Add(channelsPerPixel);
  digest.Add(pixelsPerColumn);
  digest.AddAll(elementStrides, tensorRank);
  digest.Add(interleave);
  digest.Add(swizzle);
  digest.Add(l2Promotion);
  digest.Add(oobFill);
  digest.Write(globalAddress, tensorMap);
  return CUDA_SUCCESS;
}

HD_API(cuTensorMapReplaceAddress,
       (CUtensorMap * tensorMap, void* globalAddress)) {
  HD_ENTER(kNothing);
  if (tensorMap == nullptr ||
      reinterpret_cast<uintptr_t>(globalAddress) % 16 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  tensorMap->opaque[0] = reinterpret_cast<cuuint64_t>(globalAddress);
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
