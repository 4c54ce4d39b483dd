// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/content_loader.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/replay/fill.h"

namespace heddle::replay {
namespace {

// [begin, end) of everything that a pointer of the program could point to.
std::pair<uint64_t, uint64_t> PointerRange(const Program& program) {
  uint64_t begin = ~uint64_t{0};
  uint64_t end = 0;
  const auto add = [&](uint64_t address, uint64_t size) {
    begin = std::min(begin, address);
    end = std::max(end, address + size);
  };
  for (const Allocation& a : program.allocations) add(a.address, a.size);
  for (const ModuleVariable& v : program.variables) add(v.address, v.size);
  return {begin, end};
}

absl::Status RefuseVariablePointers(const std::vector<MovedVariable>& variables,
                                    const std::vector<uint8_t>& bytes,
                                    uint64_t address) {
  if (variables.empty()) return absl::OkStatus();
  const size_t first = (8 - address % 8) % 8;
  for (size_t at = first; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    for (const MovedVariable& v : variables) {
      if (word < v.recorded || word - v.recorded >= v.size ||
          v.device == v.recorded) {
        continue;
      }
      return absl::FailedPreconditionError(absl::StrCat(
          "device memory at 0x", absl::Hex(address + at),
          " holds a pointer into variable ", v.name,
          " of a module, which the loader has put elsewhere this time: this "
          "step cannot be replayed"));
    }
  }
  return absl::OkStatus();
}

// SeededFill::Write on all processors: weights are gigabytes.
void WriteInParallel(const SeededFill& fill, uint64_t offset,
                     absl::Span<uint8_t> piece) {
  constexpr size_t kPart = size_t{2} << 20;  // a multiple of kAlignment
  const size_t parts = (piece.size() + kPart - 1) / kPart;
  const size_t threads = std::min<size_t>(
      {parts, 8, std::max(1u, std::thread::hardware_concurrency())});
  const auto work = [&](size_t first) {
    for (size_t part = first; part < parts; part += threads) {
      const size_t at = part * kPart;
      fill.Write(offset + at,
                 piece.subspan(at, std::min(kPart, piece.size() - at)));
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& thread : others) thread.join();
}

}  // namespace

absl::StatusOr<LoadedBytes> LoadContent(
    const trace::Reader& reader, const Program& program,
    const std::vector<MovedVariable>& variables, const LoadOptions& options,
    Transfer& transfer, MemoryImage& image) {
  LoadedBytes loaded;
  if (absl::Status s = image.Zero(); !s.ok()) return s;
  const auto [pointer_begin, pointer_end] = PointerRange(program);
  for (const Content& content : program.content) {
    const std::string where =
        absl::StrCat("memory at 0x", absl::Hex(content.address), ", ",
                     content.size, " bytes: ");
    if (content.fill == fb::FillKind::kZero) {
      loaded.zero += content.size;
      continue;
    }
    absl::StatusOr<CUdeviceptr> device =
        image.Translate(content.address, content.size);
    if (!device.ok()) {
      return absl::Status(device.status().code(),
                          absl::StrCat(where, device.status().message()));
    }
    absl::Status status;
    if (content.fill == fb::FillKind::kDescribed) {
      const SeededFill fill(content.likely, content.mean, content.stddev,
                            options.seed ^ (content.address << 1));
      status = transfer.Upload(*device, content.size,
                               [&](uint64_t offset, absl::Span<uint8_t> piece) {
                                 WriteInParallel(fill, offset, piece);
                               });
      loaded.described += content.size;
    } else {
      absl::StatusOr<std::vector<uint8_t>> bytes =
          reader.ReadBlob(content.hash);
      if (!bytes.ok()) {
        return absl::Status(bytes.status().code(),
                            absl::StrCat(where, bytes.status().message()));
      }
      if (bytes->size() != content.size) {
        return absl::DataLossError(
            absl::StrCat(where, "the trace holds ", bytes->size(), " bytes"));
      }
      status = RefuseVariablePointers(variables, *bytes, content.address);
      if (status.ok() && options.perturb) {
        loaded.perturbed += Perturb(absl::MakeSpan(*bytes), content.address,
                                    options.seed, pointer_begin, pointer_end);
      }
      if (status.ok()) status = transfer.Upload(*device, *bytes);
      loaded.exact += content.size;
    }
    if (!status.ok()) return status;
  }
  return loaded;
}

}  // namespace heddle::replay
