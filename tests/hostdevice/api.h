// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_API_H_
#define HEDDLE_TESTS_HOSTDEVICE_API_H_

// How this library writes the functions that it exports.
//
// cuda.h renames most functions to their newest version by macros. The
// definitions here are of exact ELF symbols, old versions included, which
// cuda.h offers to the driver's own sources under this macro.
#define __CUDA_API_VERSION_INTERNAL  // NOLINT(bugprone-reserved-identifier)
#include <cuda.h>

#define HD_EXPORT extern "C" __attribute__((visibility("default")))

// An exported function that takes no stream.
#define HD_API(name, params) HD_EXPORT CUresult CUDAAPI name params

// An exported function with a stream parameter called hStream, and its
// per-thread default stream variant. Only the meaning of a null stream differs:
// both lead to one body, written after the macro, that never sees null.
#define HD_STREAM_API_AS(suffix, name, params, args)        \
  static CUresult name##_body params;                       \
  HD_EXPORT CUresult CUDAAPI name params {                  \
    if (hStream == nullptr) hStream = CU_STREAM_LEGACY;     \
    return name##_body args;                                \
  }                                                         \
  HD_EXPORT CUresult CUDAAPI name##suffix params {          \
    if (hStream == nullptr) hStream = CU_STREAM_PER_THREAD; \
    return name##_body args;                                \
  }                                                         \
  static CUresult name##_body params
#define HD_STREAM_API(name, params, args) \
  HD_STREAM_API_AS(_ptsz, name, params, args)

// The same for functions that work on the default stream without naming it. The
// body gets it as hStream, which `args` does not list.
#define HD_DEFAULT_STREAM_API(name, params, body_params, args) \
  static CUresult name##_body body_params;                     \
  HD_EXPORT CUresult CUDAAPI name params {                     \
    CUstream hStream = CU_STREAM_LEGACY;                       \
    return name##_body args;                                   \
  }                                                            \
  HD_EXPORT CUresult CUDAAPI name##_ptds params {              \
    CUstream hStream = CU_STREAM_PER_THREAD;                   \
    return name##_body args;                                   \
  }                                                            \
  static CUresult name##_body body_params

// Returns from the enclosing function unless `expression` is CUDA_SUCCESS.
#define HD_TRY(expression)                                   \
  do {                                                       \
    const CUresult hd_try_result = (expression);             \
    if (hd_try_result != CUDA_SUCCESS) return hd_try_result; \
  } while (false)

// Takes the device lock for the rest of the enclosing function and returns its
// error if the call cannot be served (see ApiCall in device.h).
#define HD_ENTER(needs)                                      \
  ApiCall call(ApiCall::Needs::needs);                       \
  do {                                                       \
    if (call.result() != CUDA_SUCCESS) return call.result(); \
  } while (false)

#endif  // HEDDLE_TESTS_HOSTDEVICE_API_H_
