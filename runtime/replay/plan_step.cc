// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/plan_step.h"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/patch.h"
#include "runtime/cubin/select_cubin.h"

namespace heddle::replay {
namespace {

// What one image says about its kernels. Those that use variables of their
// image are no exception: a replay loads such an image in a patched form.
struct ImageFacts {
  std::string reason;  // why none of them can be patched; empty if some may
  struct KernelFacts {
    uint32_t registers = 0;
    uint32_t shared_bytes = 0;  // static
    uint32_t cluster_blocks = 1;
    std::string reason;  // why it cannot be patched; empty if it can
  };
  absl::flat_hash_map<std::string, KernelFacts> kernels;
};

uint32_t BlocksOf(const std::array<uint32_t, 3>& cluster) {
  return std::max(cluster[0], 1u) * std::max(cluster[1], 1u) *
         std::max(cluster[2], 1u);
}

ImageFacts ReadImage(const trace::Reader& reader, const ImageModule& module,
                     int major, int minor) {
  ImageFacts facts;
  const auto fail = [&](const absl::Status& status) {
    facts.reason = absl::StrCat(status.message());
    return facts;
  };
  if (!reader.HasBlob(module.hash)) {
    facts.reason = "its image is not in the trace";
    return facts;
  }
  const auto image = reader.ReadBlob(module.hash);
  if (!image.ok()) return fail(image.status());
  const auto cubin = cubin::SelectCubin(*image, major, minor);
  if (!cubin.ok()) return fail(cubin.status());
  const auto parsed = cubin::ParseCubin(*cubin);
  if (!parsed.ok()) return fail(parsed.status());
  for (const cubin::Kernel& kernel : parsed->kernels) {
    ImageFacts::KernelFacts& known = facts.kernels[kernel.name];
    known.registers = kernel.registers;
    known.shared_bytes = kernel.static_shared_bytes;
    known.cluster_blocks = BlocksOf(kernel.cluster);
  }
  const auto patched = cubin::PatchCubin(*cubin, {});
  if (!patched.ok()) return fail(patched.status());
  for (const cubin::KernelPatch& patch : patched->kernels) {
    facts.kernels[patch.name].reason = patch.reason;
  }
  return facts;
}

plan::BlockNeeds NeedsOf(const LaunchWork& launch,
                         const ImageFacts::KernelFacts* known) {
  plan::BlockNeeds needs;
  needs.blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  needs.threads = launch.block[0] * launch.block[1] * launch.block[2];
  needs.shared_bytes = launch.shared_bytes;
  needs.cooperative = launch.cooperative;
  if (known != nullptr) {
    needs.registers = known->registers;
    needs.shared_bytes += known->shared_bytes;
    needs.cluster_blocks = known->cluster_blocks;
  }
  for (const LaunchAttribute& attribute : launch.attributes) {
    CUlaunchAttributeValue value = {};
    std::memcpy(&value, attribute.value.data(),
                std::min(sizeof(value), attribute.value.size()));
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
        value.clusterDim.x != 0) {
      needs.cluster_blocks = BlocksOf(
          {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z});
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      needs.cooperative |= value.cooperative != 0;
    }
  }
  return needs;
}

plan::DeviceLimits LimitsOf(const fb::Device& device) {
  plan::DeviceLimits limits;
  if (device.multiprocessors() > 0) {
    limits.multiprocessors = static_cast<uint32_t>(device.multiprocessors());
  }
  if (device.attributes() == nullptr) return limits;
  const std::map<uint64_t, uint32_t*> known = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
       &limits.threads_per_sm},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
       &limits.registers_per_sm},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &limits.shared_per_sm},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
       &limits.blocks_per_sm},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
       &limits.reserved_shared_per_block},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &limits.warp_threads}};
  for (const auto* attribute : *device.attributes()) {
    const auto found = known.find(attribute->key());
    if (found == known.end() || attribute->value() == 0) continue;
    *found->second = static_cast<uint32_t>(attribute->value());
  }
  return limits;
}

// The record of the device that the step ran on; nullptr if there is none.
const fb::Device* DeviceOf(const trace::Reader& reader,
                           const Program& program) {
  for (const trace::Record& record : reader.records()) {
    const auto* device = record.As<fb::Device>();
    if (device != nullptr && device->name() != nullptr &&
        device->name()->str() == program.device_name) {
      return device;
    }
  }
  return nullptr;
}

plan::OperationIdentity IdentityOf(const Program& program,
                                   const Operation& operation) {
  plan::OperationIdentity identity;
  identity.name = operation.label;
  if (const LaunchWork* launch = operation.launch()) {
    const Kernel& kernel = program.kernels[launch->kernel];
    identity.kind = plan::OperationKind::kKernel;
    identity.name = kernel.name;
    identity.image = program.modules[kernel.module].hash;
    std::copy_n(launch->grid, 3, identity.grid.begin());
    std::copy_n(launch->block, 3, identity.block.begin());
    identity.shared_bytes = launch->shared_bytes;
    identity.param_bytes = static_cast<uint32_t>(launch->params.size());
  } else if (operation.copy() != nullptr) {
    identity.kind = plan::OperationKind::kCopy;
  } else if (operation.fill() != nullptr) {
    identity.kind = plan::OperationKind::kFill;
  }
  return identity;
}

}  // namespace

std::vector<plan::OperationIdentity> IdentitiesOf(const Program& program) {
  std::vector<plan::OperationIdentity> identities;
  for (const Operation& operation : program.step.operations) {
    identities.push_back(IdentityOf(program, operation));
  }
  return identities;
}

plan::PlanBinding BindingOf(const trace::Reader& reader, const Program& program,
                            const StepBounds& bounds) {
  plan::PlanBinding binding;
  binding.trace = reader.header().uuid;
  binding.first_record = bounds.first_record;
  binding.end_record = bounds.end_record;
  binding.device_name = program.device_name;
  binding.compute_major = program.compute_major;
  binding.compute_minor = program.compute_minor;
  if (const fb::Device* device = DeviceOf(reader, program)) {
    binding.multiprocessors =
        static_cast<uint32_t>(std::max(device->multiprocessors(), 0));
  }
  for (const trace::Record& record : reader.records()) {
    const auto* process = record.As<fb::Process>();
    if (process == nullptr) continue;
    binding.driver_version = process->driver_version();
    break;
  }
  return binding;
}

std::vector<plan::Edge> EdgesOf(const OperationList& list) {
  std::vector<plan::Edge> edges;
  for (uint32_t i = 0; i < list.operations.size(); ++i) {
    for (const Dependency& d : list.operations[i].dependencies) {
      edges.push_back({d.from, i, d.type, d.port, 0});
    }
  }
  return edges;
}

std::vector<plan::Effects> EffectsOf(
    const std::vector<access::AccessSet>& accesses) {
  std::vector<plan::Effects> effects;
  effects.reserve(accesses.size());
  for (const access::AccessSet& set : accesses) {
    effects.push_back(plan::EffectsOf(set));
  }
  return effects;
}

PlanStep DescribeStep(const trace::Reader& reader, const Program& program,
                      const StepBounds& bounds) {
  PlanStep step;
  step.binding = BindingOf(reader, program, bounds);
  step.operations = IdentitiesOf(program);
  if (const fb::Device* device = DeviceOf(reader, program)) {
    step.limits = LimitsOf(*device);
  }
  std::map<uint32_t, ImageFacts> images;  // by module
  std::map<std::string, uint32_t> reasons;
  for (const Operation& operation : program.step.operations) {
    step.input.names.push_back(operation.label);
    plan::Node& node = step.input.graph.nodes.emplace_back();
    const LaunchWork* launch = operation.launch();
    if (launch == nullptr) continue;
    const Kernel& kernel = program.kernels[launch->kernel];
    auto image = images.find(kernel.module);
    if (image == images.end()) {
      image =
          images
              .emplace(kernel.module,
                       ReadImage(reader, program.modules[kernel.module],
                                 program.compute_major, program.compute_minor))
              .first;
    }
    const auto known = image->second.kernels.find(kernel.name);
    const bool found = known != image->second.kernels.end();
    node.kernel = true;
    node.needs = NeedsOf(*launch, found ? &known->second : nullptr);
    std::string reason = image->second.reason;
    if (reason.empty() && !found) reason = "its image has no such kernel";
    if (reason.empty()) reason = known->second.reason;
    if (node.needs.cooperative) reason = "a cooperative launch";
    node.patchable = reason.empty();
    if (!reason.empty()) ++reasons[reason];
  }
  for (const auto& [reason, count] : reasons) {
    step.notes.push_back(absl::StrCat(
        count, count == 1 ? " launch" : " launches", " unpatched: ", reason));
  }
  step.input.graph.edges = EdgesOf(program.step);
  return step;
}

}  // namespace heddle::replay
