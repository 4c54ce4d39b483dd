// SPDX-License-Identifier: Apache-2.0
// Hooks of tensor-map encoding: the 128 opaque bytes that a kernel gets as a
// parameter, with what they were made from.

#include "runtime/record/hooks.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

void SetBytes(fb::TensorMapT* record, const CUtensorMap* map) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(map);
  record->bytes.assign(bytes, bytes + sizeof(*map));
}

struct Shape {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t* dims;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

fb::TensorMapT Describe(Recorder& recorder, const CUtensorMap* map,
                        fb::TensorMapKind kind, const Shape& shape) {
  fb::TensorMapT record;
  record.stamp = recorder.StampPtr();
  record.kind = kind;
  SetBytes(&record, map);
  record.data_type = shape.type;
  record.rank = shape.rank;
  record.address = reinterpret_cast<uint64_t>(shape.address);
  for (cuuint32_t i = 0; i < shape.rank; ++i) {
    if (shape.dims != nullptr) record.dims.push_back(shape.dims[i]);
    if (shape.element_strides != nullptr) {
      record.element_strides.push_back(shape.element_strides[i]);
    }
    // The innermost stride is the element's size and not given.
    if (i + 1 < shape.rank && shape.strides != nullptr) {
      record.strides.push_back(shape.strides[i]);
    }
  }
  record.interleave = shape.interleave;
  record.swizzle = shape.swizzle;
  record.l2_promotion = shape.promotion;
  record.oob_fill = shape.fill;
  return record;
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
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      fb::TensorMapT record =
          Describe(recorder, map, fb::TensorMapKind::kTiled,
                   {type, rank, address, dims, strides, element_strides,
                    interleave, swizzle, promotion, fill});
      if (box != nullptr) record.box.assign(box, box + rank);
      recorder.writer().AppendObject(record);
    });
  }
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
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      fb::TensorMapT record =
          Describe(recorder, map, fb::TensorMapKind::kIm2col,
                   {type, rank, address, dims, strides, element_strides,
                    interleave, swizzle, promotion, fill});
      // One corner coordinate per spatial dimension.
      const cuuint32_t spatial = rank > 2 ? rank - 2 : 0;
      if (lower != nullptr && upper != nullptr) {
        record.box_corners.assign(lower, lower + spatial);
        record.box_corners.insert(record.box_corners.end(), upper,
                                  upper + spatial);
      }
      record.channels_per_pixel = channels;
      record.pixels_per_column = pixels;
      recorder.writer().AppendObject(record);
    });
  }
  return result;
}

template <typename S>
CUresult ReplaceAddress(CUtensorMap* map, void* address) {
  const CUresult result = S::Real(map, address);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      fb::TensorMapT record;
      record.stamp = recorder.StampPtr();
      record.kind = fb::TensorMapKind::kReplaceAddress;
      SetBytes(&record, map);
      record.address = reinterpret_cast<uint64_t>(address);
      recorder.writer().AppendObject(record);
    });
  }
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
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      fb::TensorMapT record =
          Describe(recorder, map, fb::TensorMapKind::kIm2colWide,
                   {type, rank, address, dims, strides, element_strides,
                    interleave, swizzle, promotion, fill});
      record.box_corners = {lower_width, upper_width};
      record.channels_per_pixel = channels;
      record.pixels_per_column = pixels;
      recorder.writer().AppendObject(record);
    });
  }
  return result;
}
#endif

}  // namespace

void AddTensorMapHooks(HookList* list) {
  HEDDLE_HOOK(list, cuTensorMapEncodeTiled, EncodeTiled);
  HEDDLE_HOOK(list, cuTensorMapEncodeIm2col, EncodeIm2col);
#if CUDA_VERSION >= 12080
  HEDDLE_HOOK(list, cuTensorMapEncodeIm2colWide, EncodeIm2colWide);
#endif
  HEDDLE_HOOK(list, cuTensorMapReplaceAddress, ReplaceAddress);
}

}  // namespace heddle::record
