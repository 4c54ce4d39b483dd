// SPDX-License-Identifier: Apache-2.0
// Hooks of tensor-map encoding: the 128 opaque bytes that a kernel gets as a
// parameter, and the tensor that they stand for.

#include "runtime/live/hooks.h"
#include "runtime/live/optimizer.h"

namespace heddle::live {
namespace {

absl::Span<const uint8_t> BytesOf(const CUtensorMap* map) {
  return {reinterpret_cast<const uint8_t*>(map), sizeof(*map)};
}

void Encoded(const CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
             const void* address, const cuuint64_t* dims,
             const cuuint64_t* strides) {
  if (dims == nullptr || rank == 0 || (rank > 1 && strides == nullptr)) return;
  WithOptimizer([&](Optimizer& optimizer) {
    if (!optimizer.asks_for_accesses()) return;
    access::TensorMaps::Shape shape;
    shape.data_type = type;
    shape.address = reinterpret_cast<uint64_t>(address);
    shape.dims.assign(dims, dims + rank);
    // The innermost stride is the element's size and not given.
    if (rank > 1) shape.strides.assign(strides, strides + rank - 1);
    optimizer.accesses().AddTensorMap(BytesOf(map), std::move(shape));
  });
}

template <typename S>
CUresult EncodeTiled(CUtensorMap* map, CUtensorMapDataType type,
                     cuuint32_t rank, void* address, const cuuint64_t* dims,
                     const cuuint64_t* strides, const cuuint32_t* box,
                     const cuuint32_t* element_strides,
                     CUtensorMapInterleave interleave,
                     CUtensorMapSwizzle swizzle,
                     CUtensorMapL2promotion promotion,
                     CUtensorMapFloatOOBfill fill) {
  const CUresult result =
      S::Real(map, type, rank, address, dims, strides, box, element_strides,
              interleave, swizzle, promotion, fill);
  if (result == CUDA_SUCCESS) Encoded(map, type, rank, address, dims, strides);
  return result;
}

template <typename S>
CUresult EncodeIm2col(CUtensorMap* map, CUtensorMapDataType type,
                      cuuint32_t rank, void* address, const cuuint64_t* dims,
                      const cuuint64_t* strides, const int* lower,
                      const int* upper, cuuint32_t channels, cuuint32_t pixels,
                      const cuuint32_t* element_strides,
                      CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion promotion,
                      CUtensorMapFloatOOBfill fill) {
  const CUresult result =
      S::Real(map, type, rank, address, dims, strides, lower, upper, channels,
              pixels, element_strides, interleave, swizzle, promotion, fill);
  if (result == CUDA_SUCCESS) Encoded(map, type, rank, address, dims, strides);
  return result;
}

#if CUDA_VERSION >= 12080
template <typename S>
CUresult EncodeIm2colWide(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* dims, const cuuint64_t* strides, int lower_width,
    int upper_width, cuuint32_t channels, cuuint32_t pixels,
    const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const CUresult result =
      S::Real(map, type, rank, address, dims, strides, lower_width, upper_width,
              channels, pixels, element_strides, interleave, mode, swizzle,
              promotion, fill);
  if (result == CUDA_SUCCESS) Encoded(map, type, rank, address, dims, strides);
  return result;
}
#endif

template <typename S>
CUresult ReplaceAddress(CUtensorMap* map, void* address) {
  CUtensorMap before;
  if (map != nullptr) before = *map;
  const CUresult result = S::Real(map, address);
  if (result == CUDA_SUCCESS) {
    WithOptimizer([&](Optimizer& optimizer) {
      if (!optimizer.asks_for_accesses()) return;
      optimizer.accesses().ReplaceTensorMap(
          BytesOf(&before), BytesOf(map), reinterpret_cast<uint64_t>(address));
    });
  }
  return result;
}

}  // namespace

void AddTensorMapHooks(HookList* list) {
  HEDDLE_LIVE_HOOK(list, cuTensorMapEncodeTiled, EncodeTiled);
  HEDDLE_LIVE_HOOK(list, cuTensorMapEncodeIm2col, EncodeIm2col);
#if CUDA_VERSION >= 12080
  HEDDLE_LIVE_HOOK(list, cuTensorMapEncodeIm2colWide, EncodeIm2colWide);
#endif
  HEDDLE_LIVE_HOOK(list, cuTensorMapReplaceAddress, ReplaceAddress);
}

}  // namespace heddle::live
