// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/launcher.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

absl::Status SubmitLaunch(const device::Driver& driver,
                          const BoundProgram& program, const LaunchWork& launch,
                          CUstream stream, bool early) {
  const BoundProgram::Arguments arguments = program.arguments(launch);
  std::vector<CUlaunchAttribute> attributes = KeptAttributes(launch);
  if (early) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    attributes.push_back(attribute);
  }
  if (attributes.empty()) {
    return driver.Check(
        driver.LaunchKernel(arguments.function, launch.grid[0], launch.grid[1],
                            launch.grid[2], launch.block[0], launch.block[1],
                            launch.block[2], launch.shared_bytes, stream,
                            arguments.params, arguments.extra),
        "cuLaunchKernel");
  }
  if (driver.LaunchKernelEx == nullptr) {
    return absl::UnimplementedError(
        "the launch has attributes and this driver has no cuLaunchKernelEx");
  }
  CUlaunchConfig config = {};
  config.gridDimX = launch.grid[0];
  config.gridDimY = launch.grid[1];
  config.gridDimZ = launch.grid[2];
  config.blockDimX = launch.block[0];
  config.blockDimY = launch.block[1];
  config.blockDimZ = launch.block[2];
  config.sharedMemBytes = launch.shared_bytes;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  return driver.Check(driver.LaunchKernelEx(&config, arguments.function,
                                            arguments.params, arguments.extra),
                      "cuLaunchKernelEx");
}

absl::Status SubmitCopy(const device::Driver& driver,
                        const BoundProgram& program, const CopyWork& copy,
                        CUstream stream) {
  if (copy.height != 1 || copy.depth != 1) {
    const CUDA_MEMCPY3D params = ToMemcpy3D(program, copy);
    return driver.Check(driver.Memcpy3DAsync(&params, stream),
                        "cuMemcpy3DAsync");
  }
  if (copy.src.host) {
    return driver.Check(
        driver.MemcpyHtoDAsync(copy.dst.address,
                               program.host_buffer(copy.src.buffer), copy.width,
                               stream),
        "cuMemcpyHtoDAsync");
  }
  if (copy.dst.host) {
    return driver.Check(
        driver.MemcpyDtoHAsync(program.host_buffer(copy.dst.buffer),
                               copy.src.address, copy.width, stream),
        "cuMemcpyDtoHAsync");
  }
  return driver.Check(driver.MemcpyDtoDAsync(copy.dst.address, copy.src.address,
                                             copy.width, stream),
                      "cuMemcpyDtoDAsync");
}

absl::Status SubmitFill(const device::Driver& driver, const FillWork& fill,
                        CUstream stream) {
  const auto value8 = static_cast<unsigned char>(fill.value);
  const auto value16 = static_cast<unsigned short>(fill.value);
  CUresult result;
  if (fill.height == 1) {
    result =
        fill.element_size == 1
            ? driver.MemsetD8Async(fill.address, value8, fill.width, stream)
        : fill.element_size == 2
            ? driver.MemsetD16Async(fill.address, value16, fill.width, stream)
            : driver.MemsetD32Async(fill.address, fill.value, fill.width,
                                    stream);
    return driver.Check(result, "cuMemsetD*Async");
  }
  result = fill.element_size == 1
               ? driver.MemsetD2D8Async(fill.address, fill.pitch, value8,
                                        fill.width, fill.height, stream)
           : fill.element_size == 2
               ? driver.MemsetD2D16Async(fill.address, fill.pitch, value16,
                                         fill.width, fill.height, stream)
               : driver.MemsetD2D32Async(fill.address, fill.pitch, fill.value,
                                         fill.width, fill.height, stream);
  return driver.Check(result, "cuMemsetD2D*Async");
}

bool AllZero(const std::vector<uint8_t>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](uint8_t byte) { return byte == 0; });
}

}  // namespace

std::vector<CUlaunchAttribute> KeptAttributes(const LaunchWork& launch) {
  std::vector<CUlaunchAttribute> kept;
  for (const LaunchAttribute& recorded : launch.attributes) {
    switch (recorded.id) {
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case 11:  // CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION (12.8)
      case 14:  // CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        break;
      default:
        continue;
    }
    if (AllZero(recorded.value)) continue;
    CUlaunchAttribute attribute = {};
    attribute.id = static_cast<CUlaunchAttributeID>(recorded.id);
    std::memcpy(&attribute.value, recorded.value.data(),
                std::min(sizeof(attribute.value), recorded.value.size()));
    kept.push_back(attribute);
  }
  if (launch.cooperative) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    kept.push_back(attribute);
  }
  return kept;
}

CUDA_MEMCPY3D ToMemcpy3D(const BoundProgram& program, const CopyWork& copy) {
  CUDA_MEMCPY3D params = {};
  params.WidthInBytes = copy.width;
  params.Height = copy.height;
  params.Depth = copy.depth;
  params.srcPitch = copy.height > 1 ? copy.src.pitch : copy.width;
  params.srcHeight =
      copy.depth > 1 ? copy.src.slice / copy.src.pitch : copy.height;
  params.dstPitch = copy.height > 1 ? copy.dst.pitch : copy.width;
  params.dstHeight =
      copy.depth > 1 ? copy.dst.slice / copy.dst.pitch : copy.height;
  if (copy.depth > 1) {  // the pitch counts even for slices of one row
    params.srcPitch = copy.src.pitch;
    params.dstPitch = copy.dst.pitch;
  }
  if (copy.src.host) {
    params.srcMemoryType = CU_MEMORYTYPE_HOST;
    params.srcHost = program.host_buffer(copy.src.buffer);
  } else {
    params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    params.srcDevice = copy.src.address;
  }
  if (copy.dst.host) {
    params.dstMemoryType = CU_MEMORYTYPE_HOST;
    params.dstHost = program.host_buffer(copy.dst.buffer);
  } else {
    params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    params.dstDevice = copy.dst.address;
  }
  return params;
}

absl::Status Submit(const device::Driver& driver, const BoundProgram& program,
                    const Operation& operation, CUstream stream, bool early) {
  absl::Status status;
  if (const LaunchWork* launch = operation.launch()) {
    status = SubmitLaunch(driver, program, *launch, stream, early);
  } else if (const CopyWork* copy = operation.copy()) {
    status = SubmitCopy(driver, program, *copy, stream);
  } else if (const FillWork* fill = operation.fill()) {
    status = SubmitFill(driver, *fill, stream);
  }
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("record ", operation.record, " (",
                                   operation.label, "): ", status.message()));
}

}  // namespace heddle::replay
