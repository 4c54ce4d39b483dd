// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/kernel_book.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/select_cubin.h"

namespace heddle::replay {
namespace {

template <typename T>
void Append(const T& value, std::string* key) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

access::AccessSet Anything(std::string why) {
  access::AccessSet set;
  set.unknown_reads = why;
  set.unknown_writes = std::move(why);
  return set;
}

}  // namespace

KernelBook::KernelBook(const trace::Reader& reader, const Program& program)
    : reader_(reader),
      program_(program),
      major_(program.compute_major),
      minor_(program.compute_minor) {}

const access::CodeImage::Kernel* KernelBook::Find(const Kernel& kernel,
                                                  std::string* why) {
  const ImageModule& module = program_.modules[kernel.module];
  auto [it, first] = images_.try_emplace(module.hash);
  Image& image = it->second;
  if (first) {
    const auto read = [&]() -> absl::Status {
      absl::StatusOr<std::vector<uint8_t>> bytes =
          reader_.ReadBlob(module.hash);
      if (!bytes.ok()) return bytes.status();
      absl::StatusOr<std::vector<uint8_t>> cubin =
          cubin::SelectCubin(*bytes, major_, minor_);
      if (!cubin.ok()) return cubin.status();
      absl::StatusOr<std::unique_ptr<access::CodeImage>> code =
          access::CodeImage::Create(*std::move(cubin));
      if (!code.ok()) return code.status();
      image.code = *std::move(code);
      return absl::OkStatus();
    };
    if (const absl::Status status = read(); !status.ok()) {
      image.why = std::string(status.message());
      notes_.push_back(absl::StrCat(
          "the code of ", module.origin.empty() ? "an image" : module.origin,
          " (", module.hash.ToHex(), ") could not be read: ", image.why));
    }
  }
  if (image.code == nullptr) {
    *why = absl::StrCat("its code could not be read: ", image.why);
    return nullptr;
  }
  const access::CodeImage::Kernel* found = image.code->Find(kernel.name);
  if (found == nullptr) *why = "its image has no kernel of its name";
  return found;
}

access::AccessSet KernelBook::AccessOf(const LaunchWork& launch,
                                       const access::MemoryView& memory) {
  const Kernel& kernel = program_.kernels[launch.kernel];
  if (launch.cooperative) {
    return Anything(
        "it is a cooperative launch, whose barrier is in memory of "
        "the driver");
  }
  std::string why;
  const access::CodeImage::Kernel* code = Find(kernel, &why);
  if (code == nullptr) return Anything(why);
  access::LaunchValues values;
  std::copy_n(launch.grid, 3, values.grid.begin());
  std::copy_n(launch.block, 3, values.block.begin());
  values.param_base = code->param_base;
  values.params = launch.params;
  bool too_many = false;
  values.pointers = access::FindPointers(values.params, memory, &too_many);
  if (too_many) return Anything("it has too many pointers to follow");

  // Equal keys, equal analysis: pointers count by their place and alignment.
  std::string key = kernel.name;
  const trace::Hash128& hash = program_.modules[kernel.module].hash;
  Append(hash.lo, &key);
  Append(hash.hi, &key);
  Append(values.grid, &key);
  Append(values.block, &key);
  std::vector<uint8_t> shape = launch.params;
  for (const uint32_t at : values.pointers) {
    Append(at, &key);
    std::memset(shape.data() + at + 1, 0, 7);
  }
  key.append(shape.begin(), shape.end());
  auto [it, first] = known_.try_emplace(std::move(key));
  if (first) {
    it->second = std::make_unique<access::KernelFootprint>(
        access::AnalyzeKernel(code->code, values));
  } else {
    ++reused_;
  }
  return access::AccessOfLaunch(*it->second, values, memory);
}

}  // namespace heddle::replay
