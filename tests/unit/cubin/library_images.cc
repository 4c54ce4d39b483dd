// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cubin/library_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/cubin/fatbin.h"

namespace heddle::cubin {

int ForEachLibraryCubin(
    const std::string& path, uint32_t arch,
    const std::function<bool(std::vector<uint8_t>)>& visit) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  struct stat status {};
  fstat(file, &status);
  const auto size = static_cast<size_t>(status.st_size);
  void* map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (map == MAP_FAILED) return -1;
  const absl::Cleanup unmap = [&] { munmap(map, size); };
  const Bytes library(static_cast<const uint8_t*>(map), size);
  absl::StatusOr<ElfView> elf = ElfView::Create(library);
  if (!elf.ok()) return -1;
  const ElfSection* section = elf->Find(".nv_fatbin");
  if (section == nullptr) return -1;

  int count = 0;
  Bytes rest = section->data;
  while (rest.size() >= kFatbinHeaderSize) {
    absl::StatusOr<uint64_t> container = FatbinSize(rest);
    if (!container.ok()) {  // padding between containers
      rest.remove_prefix(8);
      continue;
    }
    absl::StatusOr<std::vector<FatbinEntry>> entries = FatbinEntries(rest);
    if (!entries.ok()) return -1;
    for (const FatbinEntry& entry : *entries) {
      if (entry.kind != FatbinEntryKind::kElf || entry.arch != arch) continue;
      absl::StatusOr<std::vector<uint8_t>> content = FatbinEntryContent(entry);
      if (!content.ok()) return -1;
      ++count;
      if (!visit(*std::move(content))) return count;
    }
    rest.remove_prefix(*container);
  }
  return count;
}

}  // namespace heddle::cubin
