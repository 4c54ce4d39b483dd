// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/bound_program.h"

#include <algorithm>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/replay/fill.h"

namespace heddle::replay {
namespace {

constexpr uint64_t kBufferAlign = 256;
constexpr uint8_t kUntouched = 0xa5;

// Bytes from the first to the last that a copy end touches.
uint64_t Span(const CopyWork& copy, const CopyEnd& end) {
  uint64_t span = copy.width;
  if (copy.height > 1) span += (copy.height - 1) * end.pitch;
  if (copy.depth > 1) span += (copy.depth - 1) * end.slice;
  return span;
}

}  // namespace

uint64_t PatchVariablePointers(const std::vector<MovedVariable>& variables,
                               std::vector<uint8_t>& params) {
  uint64_t patched = 0;
  for (size_t at = 0; at + 8 <= params.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, params.data() + at, 8);
    for (const MovedVariable& v : variables) {
      // One past the end is a pointer that programs have, too.
      if (word < v.recorded || word - v.recorded > v.size) continue;
      if (v.device == v.recorded) break;
      word = v.device + (word - v.recorded);
      std::memcpy(params.data() + at, &word, 8);
      ++patched;
      break;
    }
  }
  return patched;
}

absl::StatusOr<std::unique_ptr<BoundProgram>> BoundProgram::Create(
    const device::Driver& driver, const trace::Reader& reader,
    const Program& program, const Modules& modules, MemoryImage& image) {
  auto bound =
      absl::WrapUnique(new BoundProgram(driver, reader, program, modules));
  for (const MovedVariable& variable : modules.variables()) {
    image.AddVariable(variable.recorded, variable.device, variable.size);
  }
  if (absl::Status s = bound->AllocateBuffers(); !s.ok()) return s;
  bound->prefix_ = program.prefix;
  bound->step_ = program.step;
  for (OperationList* list : {&bound->prefix_, &bound->step_}) {
    if (absl::Status s = bound->Bind(image, *list); !s.ok()) return s;
  }
  return bound;
}

BoundProgram::~BoundProgram() {
  if (arena_ != nullptr) driver_.MemFreeHost(arena_);
}

absl::Status BoundProgram::AllocateBuffers() {
  uint64_t total = 0;
  for (const HostBuffer& buffer : program_.host_buffers) {
    total += (buffer.size + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
  }
  if (total == 0) return absl::OkStatus();
  if (absl::Status s = driver_.Check(
          driver_.MemAllocHost(&arena_, total),
          absl::StrCat("cuMemAllocHost(", total, ") for the host side of ",
                       program_.host_buffers.size(), " copies"));
      !s.ok()) {
    return s;
  }
  uint8_t* at = static_cast<uint8_t*>(arena_);
  for (const HostBuffer& buffer : program_.host_buffers) {
    buffers_.push_back(at);
    at += (buffer.size + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
  }
  return absl::OkStatus();
}

absl::Status BoundProgram::BindCopyEnd(const MemoryImage& image,
                                       const CopyWork& copy,
                                       CopyEnd& end) const {
  if (end.host) return absl::OkStatus();
  absl::StatusOr<CUdeviceptr> device =
      image.Translate(end.address, Span(copy, end));
  if (!device.ok()) return device.status();
  end.address = *device;
  return absl::OkStatus();
}

void BoundProgram::BindLaunch(LaunchWork& launch) {
  patched_pointers_ +=
      PatchVariablePointers(modules_.variables(), launch.params);
  const Kernel& kernel = program_.kernels[launch.kernel];
  auto block = std::make_unique<ArgumentBlock>();
  if (!kernel.params.empty()) {
    for (const KernelParam& param : kernel.params) {
      block->params.push_back(launch.params.data() + param.offset);
    }
  } else if (kernel.param_bytes != 0) {
    block->size = kernel.param_bytes;
    block->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    block->extra[1] = launch.params.data();
    block->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    block->extra[3] = &block->size;
    block->extra[4] = CU_LAUNCH_PARAM_END;
  }
  launch.slot = static_cast<uint32_t>(blocks_.size());
  blocks_.push_back(std::move(block));
}

absl::Status BoundProgram::Bind(const MemoryImage& image, OperationList& list) {
  for (Operation& operation : list.operations) {
    absl::Status status;
    if (auto* launch = std::get_if<LaunchWork>(&operation.work)) {
      BindLaunch(*launch);
    } else if (auto* copy = std::get_if<CopyWork>(&operation.work)) {
      status = BindCopyEnd(image, *copy, copy->dst);
      if (status.ok()) status = BindCopyEnd(image, *copy, copy->src);
    } else if (auto* fill = std::get_if<FillWork>(&operation.work)) {
      const uint64_t row = fill->width * fill->element_size;
      absl::StatusOr<CUdeviceptr> device = image.Translate(
          fill->address,
          row + (fill->height > 1 ? (fill->height - 1) * fill->pitch : 0));
      status = device.status();
      if (device.ok()) fill->address = *device;
    }
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat("record ", operation.record, " (", operation.label,
                       "): ", status.message()));
    }
  }
  return absl::OkStatus();
}

BoundProgram::Arguments BoundProgram::arguments(
    const LaunchWork& launch) const {
  ArgumentBlock& block = *blocks_[launch.slot];
  Arguments arguments;
  arguments.function = modules_.function(launch.kernel);
  if (!block.params.empty()) arguments.params = block.params.data();
  if (block.extra[0] != nullptr) arguments.extra = block.extra;
  return arguments;
}

absl::Status BoundProgram::LoadInputs(uint64_t perturb_seed,
                                      uint64_t* changed_bytes) {
  for (size_t i = 0; i < program_.host_buffers.size(); ++i) {
    const HostBuffer& buffer = program_.host_buffers[i];
    if (buffer.output) continue;
    std::vector<uint8_t> bytes;
    if (!buffer.known) {
      bytes.assign(buffer.size, 0);
    } else {
      absl::StatusOr<std::vector<uint8_t>> blob = reader_.ReadBlob(buffer.hash);
      if (!blob.ok()) {
        return absl::Status(
            blob.status().code(),
            absl::StrCat("host bytes of a copy: ", blob.status().message()));
      }
      if (blob->size() != buffer.size) {
        return absl::InvalidArgumentError(
            absl::StrCat("a copy of ", buffer.size, " bytes has ", blob->size(),
                         " bytes of data in the trace"));
      }
      bytes = *std::move(blob);
    }
    if (perturb_seed != 0) {
      // The address only aligns the blocks; buffers are aligned.
      const uint64_t changed =
          Perturb(absl::MakeSpan(bytes), i * kBufferAlign, perturb_seed, 0, 0);
      if (changed_bytes != nullptr) *changed_bytes += changed;
    }
    std::memcpy(buffers_[i], bytes.data(), bytes.size());
  }
  return absl::OkStatus();
}

std::vector<uint8_t> BoundProgram::Outputs() const {
  std::vector<uint8_t> outputs;
  for (size_t i = 0; i < program_.host_buffers.size(); ++i) {
    const HostBuffer& buffer = program_.host_buffers[i];
    if (!buffer.output) continue;
    outputs.insert(outputs.end(), buffers_[i], buffers_[i] + buffer.size);
  }
  return outputs;
}

void BoundProgram::ClearOutputs() {
  for (size_t i = 0; i < program_.host_buffers.size(); ++i) {
    const HostBuffer& buffer = program_.host_buffers[i];
    if (buffer.output) std::memset(buffers_[i], kUntouched, buffer.size);
  }
}

}  // namespace heddle::replay
