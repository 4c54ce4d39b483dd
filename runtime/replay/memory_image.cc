// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/memory_image.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

// The driver gives exactly the address that is asked for only if the request
// begins at a multiple of this and is no smaller (measured: H200, driver 580;
// every other request is moved). So whole units are reserved, and what the
// program had is mapped inside them.
constexpr uint64_t kReservationUnit = 32u << 20;

// Physical memory comes in pieces of at most this size, so that a fragmented
// device can still serve a large image.
constexpr uint64_t kPieceBytes = uint64_t{1} << 30;
constexpr uint64_t kAddressBits = 57;

std::string Hex(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

std::string MiB(uint64_t bytes) {
  return absl::StrCat((bytes + (1 << 20) - 1) >> 20, " MiB");
}

}  // namespace

absl::StatusOr<std::vector<Extent>> PageRuns(
    const std::vector<Allocation>& allocations, uint64_t page) {
  if (page == 0) return absl::InvalidArgumentError("a page of 0 bytes");
  ExtentSet pages;
  std::vector<Extent> extents;
  for (const Allocation& a : allocations) {
    if (a.address >> kAddressBits != 0 || a.size >> kAddressBits != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("an allocation of ", a.size, " bytes at ",
                       Hex(a.address), ": the trace is damaged"));
    }
    extents.push_back({a.address, a.size});
  }
  return ExtentSet(std::move(extents)).Rounded(page).extents();
}

absl::StatusOr<std::unique_ptr<MemoryImage>> MemoryImage::Create(
    const device::Driver& driver, CUdevice device, const Program& program) {
  auto image = absl::WrapUnique(new MemoryImage(driver, program));
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  size_t granularity = 0;
  if (absl::Status s = driver.Check(
          driver.MemGetAllocationGranularity(&granularity, &properties,
                                             CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          "cuMemGetAllocationGranularity");
      !s.ok()) {
    return s;
  }
  if (absl::Status s = image->Reserve(granularity); !s.ok()) return s;
  if (absl::Status s = image->Map(device, granularity); !s.ok()) return s;
  return image;
}

absl::Status MemoryImage::Reserve(uint64_t granularity) {
  absl::StatusOr<std::vector<Extent>> runs = PageRuns(
      program_.allocations, std::max(granularity, kReservationUnit));
  if (!runs.ok()) return runs.status();
  for (const Extent& run : *runs) {
    CUdeviceptr got = 0;
    const CUresult result =
        driver_.MemAddressReserve(&got, run.size, 0, run.address, 0);
    if (result == CUDA_SUCCESS && got == run.address) {
      reserved_.push_back(run);
      continue;
    }
    std::string why;
    if (result == CUDA_SUCCESS) {
      driver_.MemAddressFree(got, run.size);
      why = absl::StrCat("the driver offers ", Hex(got), " instead");
    } else {
      why = absl::StrCat("cuMemAddressReserve: ", driver_.ErrorName(result));
    }
    return absl::AbortedError(absl::StrCat(
        "cannot have the recorded device address ", Hex(run.address), " (",
        MiB(run.size), "): ", why,
        ". It is taken in this process; run again (address layout is random)"
        " or under `setarch -R`"));
  }
  return absl::OkStatus();
}

absl::Status MemoryImage::Map(CUdevice device, uint64_t granularity) {
  absl::StatusOr<std::vector<Extent>> runs =
      PageRuns(program_.allocations, granularity);
  if (!runs.ok()) return runs.status();
  uint64_t total = 0;
  for (const Extent& run : *runs) total += run.size;
  size_t free_bytes = 0;
  size_t device_bytes = 0;
  if (absl::Status s = driver_.Check(
          driver_.MemGetInfo(&free_bytes, &device_bytes), "cuMemGetInfo");
      !s.ok()) {
    return s;
  }
  if (total > free_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the step's memory is ", MiB(total), ", the device has ",
                     MiB(free_bytes),
                     " free: close other programs on it, or use a larger "
                     "one"));
  }
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  const uint64_t piece = kPieceBytes / granularity * granularity;
  for (const Extent& run : *runs) {
    for (uint64_t at = 0; at < run.size;) {
      const uint64_t size =
          std::min(piece == 0 ? run.size : piece, run.size - at);
      if (absl::Status s = MapPiece(properties, run.address + at, size);
          !s.ok()) {
        return s;
      }
      at += size;
    }
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (absl::Status s = driver_.Check(
            driver_.MemSetAccess(run.address, run.size, &access, 1),
            absl::StrCat("cuMemSetAccess(", Hex(run.address), ", ",
                         MiB(run.size), ")"));
        !s.ok()) {
      return s;
    }
    segments_.push_back({run.address, run.address, run.size, false});
  }
  return absl::OkStatus();
}

absl::Status MemoryImage::MapPiece(const CUmemAllocationProp& properties,
                                   CUdeviceptr address, uint64_t size) {
  CUmemGenericAllocationHandle handle = 0;
  if (absl::Status s =
          driver_.Check(driver_.MemCreate(&handle, size, &properties, 0),
                        absl::StrCat("cuMemCreate(", MiB(size), ")"));
      !s.ok()) {
    return s;
  }
  const absl::Status mapped = driver_.Check(
      driver_.MemMap(address, size, 0, handle, 0),
      absl::StrCat("cuMemMap(", Hex(address), ", ", MiB(size), ")"));
  driver_.MemRelease(handle);  // the mapping keeps the memory
  if (mapped.ok()) mappings_.push_back({address, size});
  return mapped;
}

MemoryImage::~MemoryImage() {
  for (const Extent& m : mappings_) driver_.MemUnmap(m.address, m.size);
  for (const Extent& r : reserved_) driver_.MemAddressFree(r.address, r.size);
}

void MemoryImage::AddVariable(uint64_t recorded, CUdeviceptr device,
                              uint64_t size) {
  // A recorded address may be reused by a later allocation or another module;
  // then the memory that is already there wins.
  for (const Segment& segment : segments_) {
    if (recorded < segment.recorded + segment.size &&
        segment.recorded < recorded + size) {
      return;
    }
  }
  const Segment added{recorded, device, size, true};
  segments_.insert(std::upper_bound(segments_.begin(), segments_.end(), added,
                                    [](const Segment& a, const Segment& b) {
                                      return a.recorded < b.recorded;
                                    }),
                   added);
}

ExtentSet MemoryImage::extents() const {
  std::vector<Extent> all;
  for (const Segment& s : segments_) all.push_back({s.recorded, s.size});
  return ExtentSet(std::move(all));
}

uint64_t MemoryImage::bytes() const {
  uint64_t total = 0;
  for (const Segment& segment : segments_) total += segment.size;
  return total;
}

absl::StatusOr<CUdeviceptr> MemoryImage::Translate(uint64_t address,
                                                   uint64_t size) const {
  auto it = std::upper_bound(
      segments_.begin(), segments_.end(), address,
      [](uint64_t a, const Segment& s) { return a < s.recorded; });
  if (it != segments_.begin()) {
    --it;
    const uint64_t offset = address - it->recorded;
    if (offset < it->size && size <= it->size - offset) {
      return it->device + offset;
    }
  }
  return absl::OutOfRangeError(
      absl::StrCat(size, " bytes at ", Hex(address),
                   " lie outside the memory that the trace knows of"));
}

std::string MemoryImage::Describe(uint64_t address) const {
  for (const ModuleVariable& v : program_.variables) {
    if (address >= v.address && address - v.address < v.size) {
      return absl::StrCat("variable ", v.name, " + ", address - v.address);
    }
  }
  const Allocation* holder = nullptr;  // the smallest
  for (const Allocation& a : program_.allocations) {
    if (address >= a.address && address - a.address < a.size &&
        (holder == nullptr || a.size < holder->size)) {
      holder = &a;
    }
  }
  if (holder == nullptr) {
    return absl::StrCat(Hex(address), " (outside any recorded allocation)");
  }
  return absl::StrCat(Hex(holder->address), " + ", address - holder->address,
                      " (of ", holder->size, " bytes)");
}

absl::Status MemoryImage::ForEachPiece(
    const ExtentSet& extents,
    const std::function<absl::Status(uint64_t, CUdeviceptr, uint64_t)>& visit)
    const {
  size_t i = 0;
  for (const Extent& extent : extents.extents()) {
    while (i < segments_.size() &&
           segments_[i].recorded + segments_[i].size <= extent.address) {
      ++i;
    }
    for (size_t j = i;
         j < segments_.size() && segments_[j].recorded < extent.end(); ++j) {
      const Segment& segment = segments_[j];
      const uint64_t begin = std::max(segment.recorded, extent.address);
      const uint64_t end =
          std::min(segment.recorded + segment.size, extent.end());
      if (absl::Status s = visit(
              begin, segment.device + (begin - segment.recorded), end - begin);
          !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MemoryImage::Zero() {
  for (const Segment& segment : segments_) {
    if (absl::Status s =
            driver_.Check(driver_.MemsetD8(segment.device, 0, segment.size),
                          absl::StrCat("cuMemsetD8(", Hex(segment.device), ", ",
                                       MiB(segment.size), ")"));
        !s.ok()) {
      return s;
    }
  }
  return driver_.Check(driver_.CtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace heddle::replay
