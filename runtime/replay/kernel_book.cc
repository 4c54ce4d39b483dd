// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/kernel_book.h"

#include <cuda.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/select_cubin.h"

namespace heddle::replay {
namespace {

// By the call, or by an attribute of it.
bool IsCooperative(const LaunchWork& launch) {
  if (launch.cooperative) return true;
  return std::any_of(
      launch.attributes.begin(), launch.attributes.end(),
      [](const LaunchAttribute& attribute) {
        return attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
               std::any_of(attribute.value.begin(), attribute.value.end(),
                           [](uint8_t byte) { return byte != 0; });
      });
}

access::AccessSet Anything(std::string why) {
  access::AccessSet set;
  set.unknown_reads = why;
  set.unknown_writes = std::move(why);
  return set;
}

}  // namespace

KernelBook::KernelBook(const trace::Reader& reader, const Program& program,
                       const cubin::CacheFolder* folder)
    : reader_(reader),
      program_(program),
      major_(program.compute_major),
      minor_(program.compute_minor),
      folder_(folder) {}

KernelBook::Image& KernelBook::ImageOf(const Kernel& kernel) {
  const ImageModule& module = program_.modules[kernel.module];
  auto [it, first] = images_.try_emplace(module.hash);
  Image& image = it->second;
  if (!first) return image;
  const auto read = [&]() -> absl::Status {
    absl::StatusOr<std::vector<uint8_t>> bytes = reader_.ReadBlob(module.hash);
    if (!bytes.ok()) return bytes.status();
    absl::StatusOr<std::vector<uint8_t>> cubin =
        cubin::SelectCubin(*bytes, major_, minor_);
    if (!cubin.ok()) return cubin.status();
    image.known = std::make_unique<access::FootprintCache>(
        folder_, trace::HashBytes(*cubin).ToHex());
    absl::StatusOr<std::unique_ptr<access::CodeImage>> code =
        access::CodeImage::Create(*std::move(cubin));
    if (!code.ok()) return code.status();
    image.code = *std::move(code);
    return absl::OkStatus();
  };
  if (const absl::Status status = read(); !status.ok()) {
    image.why = absl::StrCat("its code could not be read: ", status.message());
    notes_.push_back(absl::StrCat(
        "the code of ", module.origin.empty() ? "an image" : module.origin,
        " (", module.hash.ToHex(), ") could not be read: ", status.message()));
  }
  return image;
}

access::AccessSet KernelBook::AccessOf(const LaunchWork& launch,
                                       const access::MemoryView& memory) {
  const Kernel& kernel = program_.kernels[launch.kernel];
  if (IsCooperative(launch)) {
    return Anything(
        "it is a cooperative launch, whose barrier is in memory of "
        "the driver");
  }
  Image& image = ImageOf(kernel);
  if (image.code == nullptr) return Anything(image.why);
  const access::CodeImage::Kernel* code = image.code->Find(kernel.name);
  if (code == nullptr) return Anything("its image has no kernel of its name");
  access::LaunchValues values;
  std::copy_n(launch.grid, 3, values.grid.begin());
  std::copy_n(launch.block, 3, values.block.begin());
  values.param_base = code->param_base;
  values.params = launch.params;
  bool too_many = false;
  values.pointers = access::FindPointers(values.params, memory, &too_many);
  if (too_many) return Anything("it has too many pointers to follow");
  const std::string key = access::ShapeKey(kernel.name, values);
  const access::KernelFootprint* footprint = image.known->Find(key);
  if (footprint == nullptr) {
    footprint =
        &image.known->Add(key, access::AnalyzeKernel(code->code, values));
  } else {
    ++reused_;
  }
  return access::AccessOfLaunch(*footprint, values, memory);
}

}  // namespace heddle::replay
