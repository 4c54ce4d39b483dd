// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_INCEPTION_DEVICE_NETWORK_H_
#define HEDDLE_BENCHMARKS_APPS_INCEPTION_DEVICE_NETWORK_H_

// The network on the device: cuDNN descriptors, buffers, and the calls of one
// forward pass. A convolution is three calls (convolve, add bias, ReLU in
// place), as in an eager framework. All on one stream.

#include <array>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/inception/cudnn_api.h"
#include "benchmarks/apps/inception/network.h"
#include "benchmarks/apps/inception/options.h"

namespace inception {

class DeviceNetwork {
 public:
  // Uploads the weights and picks cuDNN's algorithms: the first that its
  // heuristics name which is deterministic. `gpu` must outlive the object.
  static absl::StatusOr<std::unique_ptr<DeviceNetwork>> Create(
      const Options& options, const std::vector<Block>& blocks,
      const CudnnApi& api, apps::Gpu* gpu);

  // Issues one forward pass and returns at once.
  absl::Status Enqueue();

  // batch x channels x size x size floats. Both wait for the device.
  absl::Status WriteInput(const std::vector<float>& images);
  absl::StatusOr<std::vector<float>> ReadOutput();

 private:
  using Tensor = Owned<cudnnTensorDescriptor_t>;

  // What a convolution of the chain needs at run time.
  struct Layer {
    Owned<cudnnFilterDescriptor_t> filter_shape;
    Owned<cudnnConvolutionDescriptor_t> convolution;
    Tensor in_shape;
    Tensor out_shape;
    Tensor bias_shape;
    Tensor concat_shape;  // of the output's place in the concatenation
    const float* filter = nullptr;
    const float* bias = nullptr;
    cudnnConvolutionFwdAlgo_t algorithm =
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    void* workspace = nullptr;
    size_t workspace_bytes = 0;
    int out_channels = 0;
  };
  using LayerBlock = std::array<Layer, kBlockConvolutions>;

  DeviceNetwork(const Options& options, const CudnnApi& api, apps::Gpu* gpu)
      : options_(options), config_(options.network), api_(api), gpu_(gpu) {}

  absl::Status Initialize(const std::vector<Block>& blocks);
  absl::Status PrepareShared();
  absl::Status PrepareLayer(const Convolution& convolution, Layer* layer);
  absl::Status ChooseAlgorithm(const Convolution& convolution, Layer* layer);
  absl::Status PrepareWorkspaces();
  absl::Status MakeTensor(int channels, int stride_channels, Tensor* tensor);
  absl::StatusOr<float*> AllocateActivation(int channels, const char* what);
  absl::StatusOr<const float*> Upload(const std::vector<float>& values,
                                      const char* what);

  absl::Status EnqueueBlock(const LayerBlock& block, const float* in,
                            float* out);
  absl::Status Convolve(const Layer& layer, const float* in, float* out);
  absl::Status Concatenate(const Layer& layer, const float* part,
                           int first_channel, float* out);

  const Options options_;
  const NetworkConfig config_;
  const CudnnApi api_;
  apps::Gpu* const gpu_;
  Owned<cudnnHandle_t> handle_;
  Owned<cudnnActivationDescriptor_t> relu_;
  Owned<cudnnPoolingDescriptor_t> pooling_;
  Tensor activation_shape_;  // what flows between blocks
  std::vector<LayerBlock> layers_;

  // Block 0 reads the input, block i > 0 reads activations_[(i - 1) % 2]; block
  // i writes activations_[i % 2].
  float* input_ = nullptr;
  std::array<float*, 2> activations_ = {};
  std::array<float*, kBlockConvolutions> outputs_ = {};  // of each convolution
  float* pooled_ = nullptr;
};

}  // namespace inception

#endif  // HEDDLE_BENCHMARKS_APPS_INCEPTION_DEVICE_NETWORK_H_
