// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/analysis_book.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::access {
namespace {

AccessSet Anything(std::string why) {
  AccessSet set;
  set.unknown_reads = why;
  set.unknown_writes = std::move(why);
  return set;
}

}  // namespace

AnalysisBook::Image& AnalysisBook::Open(const ImageSource& source) {
  std::unique_ptr<Image>& image = images_[source.key];
  if (image == nullptr) {
    image = std::make_unique<Image>();
    image->known = std::make_unique<FootprintCache>(folder_, source.key);
  }
  return *image;
}

const CodeImage* AnalysisBook::CodeOf(const ImageSource& source,
                                      Image* image) {
  if (image->code != nullptr || !image->why.empty()) return image->code.get();
  const auto read = [&]() -> absl::Status {
    absl::StatusOr<std::vector<uint8_t>> cubin = source.read();
    if (!cubin.ok()) return cubin.status();
    absl::StatusOr<std::unique_ptr<CodeImage>> code =
        CodeImage::Create(*std::move(cubin));
    if (!code.ok()) return code.status();
    image->code = *std::move(code);
    return absl::OkStatus();
  };
  if (const absl::Status status = read(); !status.ok()) {
    image->why = absl::StrCat("its code could not be read: ", status.message());
    notes_.push_back(absl::StrCat(
        "the code of ", source.origin.empty() ? "an image" : source.origin,
        " (", source.key, ") could not be read: ", status.message()));
  }
  return image->code.get();
}

AccessSet AnalysisBook::AccessOf(const ImageSource& source,
                                 const KernelLaunch& launch,
                                 const MemoryView& memory) {
  if (launch.cooperative) {
    return Anything(
        "it is a cooperative launch, whose barrier is in memory of "
        "the driver");
  }
  LaunchValues values;
  values.grid = launch.grid;
  values.block = launch.block;
  values.params = launch.params;
  bool too_many = false;
  values.pointers = FindPointers(values.params, memory, &too_many);
  if (too_many) return Anything("it has too many pointers to follow");
  Image& image = Open(source);
  // Without the code: what it says of the kernel is the same every time.
  const std::string key = ShapeKey(launch.kernel, values);
  const KernelFootprint* footprint = image.known->Find(key);
  if (footprint != nullptr) {
    ++reused_;
    return AccessOfLaunch(*footprint, values, memory);
  }
  const CodeImage* code = CodeOf(source, &image);
  if (code == nullptr) return Anything(image.why);
  const CodeImage::Kernel* kernel = code->Find(launch.kernel);
  if (kernel == nullptr) return Anything("its image has no kernel of its name");
  values.param_base = kernel->param_base;
  footprint = &image.known->Add(key, AnalyzeKernel(kernel->code, values));
  return AccessOfLaunch(*footprint, values, memory);
}

void AnalysisBook::Save() {
  for (auto& [key, image] : images_) {
    if (image->known != nullptr) image->known->Save();
  }
}

}  // namespace heddle::access
