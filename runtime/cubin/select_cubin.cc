// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/select_cubin.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/fatbin.h"
#include "runtime/cubin/image.h"

namespace heddle::cubin {
namespace {

absl::Status OnlyPtx(int major, int minor) {
  return absl::UnimplementedError(absl::StrCat(
      "only PTX fits compute capability ", major, ".", minor,
      ": the driver compiles it itself and shows no machine code"));
}

// Whether the driver prefers `a` to `b`, both of which fit: code for the later
// chip; of the same chip the more specific. Of equals the first is taken.
bool Better(const FatbinEntry& a, const FatbinEntry& b) {
  const auto specificity = [](const FatbinEntry& entry) {
    if (entry.arch_specific) return 2;
    return entry.family_specific ? 1 : 0;
  };
  if (a.arch != b.arch) return a.arch > b.arch;
  return specificity(a) > specificity(b);
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> SelectCubin(
    absl::Span<const uint8_t> image, int major, int minor) {
  absl::StatusOr<ImageView> view = IdentifyImage(image);
  if (!view.ok()) return view.status();
  if (view->kind == ImageKind::kPtx) return OnlyPtx(major, minor);
  if (view->kind == ImageKind::kElf) {
    absl::StatusOr<Cubin> cubin = ParseCubin(view->bytes);
    if (!cubin.ok()) return cubin.status();
    FatbinEntry entry;
    entry.kind = FatbinEntryKind::kElf;
    entry.arch = cubin->arch;
    if (!FatbinEntryFits(entry, major, minor)) {
      return absl::NotFoundError(absl::StrCat(
          "cubin for sm_", cubin->arch, " does not run on compute capability ",
          major, ".", minor));
    }
    return std::vector<uint8_t>(view->bytes.begin(), view->bytes.end());
  }

  absl::StatusOr<std::vector<FatbinEntry>> entries = FatbinEntries(view->bytes);
  if (!entries.ok()) return entries.status();
  const FatbinEntry* best = nullptr;
  bool ptx = false;
  for (const FatbinEntry& entry : *entries) {
    if (!FatbinEntryFits(entry, major, minor)) continue;
    if (entry.kind == FatbinEntryKind::kPtx) {
      ptx = true;
    } else if (entry.kind == FatbinEntryKind::kElf &&
               (best == nullptr || Better(entry, *best))) {
      best = &entry;
    }
  }
  if (best != nullptr) return FatbinEntryContent(*best);
  if (ptx) return OnlyPtx(major, minor);
  return absl::NotFoundError(absl::StrCat(
      "fatbin of ", entries->size(),
      " entries has none for compute capability ", major, ".", minor));
}

}  // namespace heddle::cubin
