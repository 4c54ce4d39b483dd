// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_INCEPTION_CUDNN_API_H_
#define HEDDLE_BENCHMARKS_APPS_INCEPTION_CUDNN_API_H_

// The cuDNN functions that the program calls, as a table that is filled from
// libcudnn at run time, so that the program can say what is missing.

#include <cudnn.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inception {

// X(member): the function is cudnn##member.
#define INCEPTION_CUDNN_CALLS(X)        \
  X(Create)                             \
  X(Destroy)                            \
  X(SetStream)                          \
  X(GetErrorString)                     \
  X(GetVersion)                         \
  X(CreateTensorDescriptor)             \
  X(DestroyTensorDescriptor)            \
  X(SetTensor4dDescriptorEx)            \
  X(CreateFilterDescriptor)             \
  X(DestroyFilterDescriptor)            \
  X(SetFilter4dDescriptor)              \
  X(CreateConvolutionDescriptor)        \
  X(DestroyConvolutionDescriptor)       \
  X(SetConvolution2dDescriptor)         \
  X(SetConvolutionMathType)             \
  X(CreateActivationDescriptor)         \
  X(DestroyActivationDescriptor)        \
  X(SetActivationDescriptor)            \
  X(CreatePoolingDescriptor)            \
  X(DestroyPoolingDescriptor)           \
  X(SetPooling2dDescriptor)             \
  X(GetConvolutionForwardAlgorithm_v7)  \
  X(GetConvolutionForwardWorkspaceSize) \
  X(ConvolutionForward)                 \
  X(AddTensor)                          \
  X(ActivationForward)                  \
  X(PoolingForward)                     \
  X(TransformTensor)

struct CudnnApi {
#define INCEPTION_CUDNN_MEMBER(member) \
  decltype(&::cudnn##member) member = nullptr;
  INCEPTION_CUDNN_CALLS(INCEPTION_CUDNN_MEMBER)
#undef INCEPTION_CUDNN_MEMBER

  // Unavailable if the library of the headers' major version, or one of its
  // functions, is missing.
  static absl::StatusOr<CudnnApi> Load();

  // OK, or an error that names `call`, the status and cuDNN's text for it.
  absl::Status Check(cudnnStatus_t status, absl::string_view call) const;
};

// A descriptor that is destroyed with its owner: a pointer whose deleter is
// cuDNN's destroy function.
template <typename Descriptor>
class Owned {
 public:
  using Create = cudnnStatus_t (*)(Descriptor*);
  using Destroy = cudnnStatus_t (*)(Descriptor);

  Owned() = default;
  Owned(Owned&& other) noexcept
      : value_(std::exchange(other.value_, nullptr)),
        destroy_(other.destroy_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(value_, other.value_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value_ != nullptr) destroy_(value_);
  }

  // Call once.
  cudnnStatus_t Make(Create create, Destroy destroy) {
    destroy_ = destroy;
    return create(&value_);
  }
  Descriptor get() const { return value_; }

 private:
  Descriptor value_ = nullptr;
  Destroy destroy_ = nullptr;
};

}  // namespace inception

#endif  // HEDDLE_BENCHMARKS_APPS_INCEPTION_CUDNN_API_H_
