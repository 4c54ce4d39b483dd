// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/inception/device_network.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/common/status_macros.h"

// Returns the error of a cuDNN call; the call's text becomes the message.
#define RETURN_IF_CUDNN_ERROR(call) \
  APPS_RETURN_IF_ERROR(api_.Check((api_.call), "cudnn" #call))

namespace inception {
namespace {

// An algorithm that wants more for one convolution is passed over.
constexpr size_t kWorkspaceLimit = size_t{64} << 20;

constexpr float kOne = 1.0f;
constexpr float kZero = 0.0f;

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceNetwork>> DeviceNetwork::Create(
    const Options& options, const std::vector<Block>& blocks,
    const CudnnApi& api, apps::Gpu* gpu) {
  std::unique_ptr<DeviceNetwork> network(new DeviceNetwork(options, api, gpu));
  APPS_RETURN_IF_ERROR(network->Initialize(blocks));
  return network;
}

absl::Status DeviceNetwork::Initialize(const std::vector<Block>& blocks) {
  APPS_RETURN_IF_ERROR(PrepareShared());
  for (const Block& block : blocks) {
    LayerBlock& layers = layers_.emplace_back();
    for (size_t i = 0; i < block.size(); ++i) {
      APPS_RETURN_IF_ERROR(PrepareLayer(block[i], &layers[i]));
    }
  }
  return PrepareWorkspaces();
}

absl::Status DeviceNetwork::PrepareShared() {
  APPS_RETURN_IF_ERROR(api_.Check(handle_.Make(api_.Create, api_.Destroy),
                                  "cudnnCreate (needs a GPU)"));
  RETURN_IF_CUDNN_ERROR(SetStream(
      handle_.get(), static_cast<cudaStream_t>(gpu_->native_stream())));
  APPS_RETURN_IF_ERROR(api_.Check(relu_.Make(api_.CreateActivationDescriptor,
                                             api_.DestroyActivationDescriptor),
                                  "cudnnCreateActivationDescriptor"));
  RETURN_IF_CUDNN_ERROR(SetActivationDescriptor(
      relu_.get(), CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
  APPS_RETURN_IF_ERROR(api_.Check(pooling_.Make(api_.CreatePoolingDescriptor,
                                                api_.DestroyPoolingDescriptor),
                                  "cudnnCreatePoolingDescriptor"));
  // The deterministic variant of the maximum; window 3, padding 1, stride 1.
  RETURN_IF_CUDNN_ERROR(
      SetPooling2dDescriptor(pooling_.get(), CUDNN_POOLING_MAX_DETERMINISTIC,
                             CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  APPS_RETURN_IF_ERROR(
      MakeTensor(config_.channels, config_.channels, &activation_shape_));
  for (float** buffer :
       {&input_, &activations_[0], &activations_[1], &pooled_}) {
    absl::StatusOr<float*> memory =
        AllocateActivation(config_.channels, "an activation");
    if (!memory.ok()) return memory.status();
    *buffer = *memory;
  }
  return absl::OkStatus();
}

absl::Status DeviceNetwork::MakeTensor(int channels, int stride_channels,
                                       Tensor* tensor) {
  APPS_RETURN_IF_ERROR(api_.Check(
      tensor->Make(api_.CreateTensorDescriptor, api_.DestroyTensorDescriptor),
      "cudnnCreateTensorDescriptor"));
  const int plane = static_cast<int>(config_.plane());
  RETURN_IF_CUDNN_ERROR(SetTensor4dDescriptorEx(
      tensor->get(), CUDNN_DATA_FLOAT, config_.batch, channels, config_.size,
      config_.size, stride_channels * plane, plane, config_.size, 1));
  return absl::OkStatus();
}

absl::StatusOr<float*> DeviceNetwork::AllocateActivation(int channels,
                                                         const char* what) {
  const size_t bytes =
      config_.plane() * config_.batch * channels * sizeof(float);
  absl::StatusOr<void*> memory = gpu_->Allocate(bytes, what);
  if (!memory.ok()) return memory.status();
  return static_cast<float*>(*memory);
}

absl::StatusOr<const float*> DeviceNetwork::Upload(
    const std::vector<float>& values, const char* what) {
  const size_t bytes = values.size() * sizeof(float);
  absl::StatusOr<void*> memory = gpu_->Allocate(bytes, what);
  if (!memory.ok()) return memory.status();
  APPS_RETURN_IF_ERROR(gpu_->CopyToDevice(*memory, values.data(), bytes));
  return static_cast<const float*>(*memory);
}

absl::Status DeviceNetwork::PrepareLayer(const Convolution& convolution,
                                         Layer* layer) {
  layer->out_channels = convolution.out_channels;
  absl::StatusOr<const float*> filter = Upload(convolution.filter, "a filter");
  if (!filter.ok()) return filter.status();
  layer->filter = *filter;
  absl::StatusOr<const float*> bias = Upload(convolution.bias, "a bias");
  if (!bias.ok()) return bias.status();
  layer->bias = *bias;

  APPS_RETURN_IF_ERROR(MakeTensor(convolution.in_channels,
                                  convolution.in_channels, &layer->in_shape));
  APPS_RETURN_IF_ERROR(MakeTensor(convolution.out_channels,
                                  convolution.out_channels, &layer->out_shape));
  APPS_RETURN_IF_ERROR(MakeTensor(convolution.out_channels, config_.channels,
                                  &layer->concat_shape));
  APPS_RETURN_IF_ERROR(
      api_.Check(layer->bias_shape.Make(api_.CreateTensorDescriptor,
                                        api_.DestroyTensorDescriptor),
                 "cudnnCreateTensorDescriptor"));
  RETURN_IF_CUDNN_ERROR(SetTensor4dDescriptorEx(
      layer->bias_shape.get(), CUDNN_DATA_FLOAT, 1, convolution.out_channels, 1,
      1, convolution.out_channels, 1, 1, 1));
  APPS_RETURN_IF_ERROR(
      api_.Check(layer->filter_shape.Make(api_.CreateFilterDescriptor,
                                          api_.DestroyFilterDescriptor),
                 "cudnnCreateFilterDescriptor"));
  RETURN_IF_CUDNN_ERROR(SetFilter4dDescriptor(
      layer->filter_shape.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
      convolution.out_channels, convolution.in_channels, convolution.kernel,
      convolution.kernel));
  APPS_RETURN_IF_ERROR(
      api_.Check(layer->convolution.Make(api_.CreateConvolutionDescriptor,
                                         api_.DestroyConvolutionDescriptor),
                 "cudnnCreateConvolutionDescriptor"));
  RETURN_IF_CUDNN_ERROR(SetConvolution2dDescriptor(
      layer->convolution.get(), convolution.padding(), convolution.padding(), 1,
      1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  RETURN_IF_CUDNN_ERROR(SetConvolutionMathType(
      layer->convolution.get(),
      options_.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH));
  return ChooseAlgorithm(convolution, layer);
}

absl::Status DeviceNetwork::ChooseAlgorithm(const Convolution& convolution,
                                            Layer* layer) {
  std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT>
      candidates = {};
  int count = 0;
  RETURN_IF_CUDNN_ERROR(GetConvolutionForwardAlgorithm_v7(
      handle_.get(), layer->in_shape.get(), layer->filter_shape.get(),
      layer->convolution.get(), layer->out_shape.get(),
      static_cast<int>(candidates.size()), &count, candidates.data()));
  for (int i = 0; i < count; ++i) {
    const cudnnConvolutionFwdAlgoPerf_t& candidate = candidates[i];
    if (candidate.status != CUDNN_STATUS_SUCCESS ||
        candidate.determinism != CUDNN_DETERMINISTIC) {
      continue;
    }
    // The heuristics may have had another math type in mind than the one set,
    // so the algorithm is asked again whether it can do it.
    size_t bytes = 0;
    if (api_.GetConvolutionForwardWorkspaceSize(
            handle_.get(), layer->in_shape.get(), layer->filter_shape.get(),
            layer->convolution.get(), layer->out_shape.get(), candidate.algo,
            &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes > kWorkspaceLimit) {
      continue;
    }
    layer->algorithm = candidate.algo;
    layer->workspace_bytes = bytes;
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "cuDNN has no deterministic algorithm for the convolution ",
      convolution.name, " (", convolution.in_channels, " to ",
      convolution.out_channels, " channels, ", convolution.kernel, "x",
      convolution.kernel, ") within ", kWorkspaceLimit >> 20, " MiB"));
}

absl::Status DeviceNetwork::PrepareWorkspaces() {
  size_t largest = 0;
  for (size_t i = 0; i < kBlockConvolutions; ++i) {
    // Blocks are alike, and one is done before the next can start, so the
    // outputs of a block's convolutions are the next block's as well.
    absl::StatusOr<float*> output = AllocateActivation(
        layers_.front()[i].out_channels, "a convolution's output");
    if (!output.ok()) return output.status();
    outputs_[i] = *output;
    for (const LayerBlock& block : layers_) {
      largest = std::max(largest, block[i].workspace_bytes);
    }
  }
  if (largest == 0) return absl::OkStatus();
  void* shared = nullptr;
  if (options_.workspace == WorkspaceKind::kShared) {
    absl::StatusOr<void*> memory = gpu_->Allocate(largest, "the workspace");
    if (!memory.ok()) return memory.status();
    shared = *memory;
  }
  for (LayerBlock& block : layers_) {
    for (Layer& layer : block) {
      if (layer.workspace_bytes == 0) continue;
      layer.workspace = shared;
      if (shared != nullptr) continue;
      absl::StatusOr<void*> memory =
          gpu_->Allocate(layer.workspace_bytes, "a workspace");
      if (!memory.ok()) return memory.status();
      layer.workspace = *memory;
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceNetwork::Convolve(const Layer& layer, const float* in,
                                     float* out) {
  RETURN_IF_CUDNN_ERROR(ConvolutionForward(
      handle_.get(), &kOne, layer.in_shape.get(), in, layer.filter_shape.get(),
      layer.filter, layer.convolution.get(), layer.algorithm, layer.workspace,
      layer.workspace_bytes, &kZero, layer.out_shape.get(), out));
  RETURN_IF_CUDNN_ERROR(AddTensor(handle_.get(), &kOne, layer.bias_shape.get(),
                                  layer.bias, &kOne, layer.out_shape.get(),
                                  out));
  RETURN_IF_CUDNN_ERROR(ActivationForward(handle_.get(), relu_.get(), &kOne,
                                          layer.out_shape.get(), out, &kZero,
                                          layer.out_shape.get(), out));
  return absl::OkStatus();
}

absl::Status DeviceNetwork::Concatenate(const Layer& layer, const float* part,
                                        int first_channel, float* out) {
  float* to = out + first_channel * config_.plane();
  if (options_.concat == ConcatKind::kKernel) {
    RETURN_IF_CUDNN_ERROR(TransformTensor(handle_.get(), &kOne,
                                          layer.out_shape.get(), part, &kZero,
                                          layer.concat_shape.get(), to));
    return absl::OkStatus();
  }
  const size_t plane_bytes = config_.plane() * sizeof(float);
  const size_t width = layer.out_channels * plane_bytes;
  return gpu_->CopyRows(to, config_.channels * plane_bytes, part, width, width,
                        config_.batch);
}

absl::Status DeviceNetwork::EnqueueBlock(const LayerBlock& block,
                                         const float* in, float* out) {
  const auto convolve = [&](BlockConvolution which, const float* from) {
    return Convolve(block[which], from, outputs_[which]);
  };
  APPS_RETURN_IF_ERROR(convolve(kBranchA, in));
  APPS_RETURN_IF_ERROR(convolve(kBranchBReduce, in));
  APPS_RETURN_IF_ERROR(convolve(kBranchB, outputs_[kBranchBReduce]));
  APPS_RETURN_IF_ERROR(convolve(kBranchCReduce, in));
  APPS_RETURN_IF_ERROR(convolve(kBranchC, outputs_[kBranchCReduce]));
  RETURN_IF_CUDNN_ERROR(PoolingForward(handle_.get(), pooling_.get(), &kOne,
                                       activation_shape_.get(), in, &kZero,
                                       activation_shape_.get(), pooled_));
  APPS_RETURN_IF_ERROR(convolve(kBranchD, pooled_));
  int channel = 0;
  for (const BlockConvolution end : kBranchEnds) {
    APPS_RETURN_IF_ERROR(Concatenate(block[end], outputs_[end], channel, out));
    channel += block[end].out_channels;
  }
  return absl::OkStatus();
}

absl::Status DeviceNetwork::Enqueue() {
  const float* in = input_;
  for (size_t i = 0; i < layers_.size(); ++i) {
    float* const out = activations_[i % 2];
    APPS_RETURN_IF_ERROR(EnqueueBlock(layers_[i], in, out));
    in = out;
  }
  return absl::OkStatus();
}

absl::Status DeviceNetwork::WriteInput(const std::vector<float>& images) {
  if (images.size() != config_.elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", images.size(), " values; it needs ",
                     config_.elements()));
  }
  return gpu_->CopyToDevice(input_, images.data(),
                            images.size() * sizeof(float));
}

absl::StatusOr<std::vector<float>> DeviceNetwork::ReadOutput() {
  std::vector<float> output(config_.elements());
  APPS_RETURN_IF_ERROR(gpu_->CopyToHost(output.data(),
                                        activations_[(layers_.size() - 1) % 2],
                                        output.size() * sizeof(float)));
  return output;
}

}  // namespace inception
