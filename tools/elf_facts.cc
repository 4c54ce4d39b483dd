// SPDX-License-Identifier: Apache-2.0
#include "tools/elf_facts.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace heddle::tools {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_NONE;
#endif

// No table of an executable that is to be trusted is larger.
constexpr uint64_t kMaxTable = 256u << 20;

// Random access to a file. Everything read is checked against its size.
class File {
 public:
  explicit File(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    error_ = descriptor_ < 0 ? errno : 0;
    struct stat status {};
    if (descriptor_ >= 0 && fstat(descriptor_, &status) == 0) {
      size_ = static_cast<uint64_t>(status.st_size);
      if (!S_ISREG(status.st_mode)) error_ = EINVAL;
    }
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int error() const { return error_; }

  // Bytes [offset, offset + size), or nothing if the file ends before.
  std::string Bytes(uint64_t offset, uint64_t size) const {
    if (size > kMaxTable || offset > size_ || size > size_ - offset) return "";
    std::string bytes(size, '\0');
    uint64_t done = 0;
    while (done < size) {
      const ssize_t n = pread(descriptor_, bytes.data() + done, size - done,
                              static_cast<off_t>(offset + done));
      if (n <= 0) return "";
      done += static_cast<uint64_t>(n);
    }
    return bytes;
  }

  // `count` entries of a table of T; none if they do not fit.
  template <typename T>
  std::vector<T> Table(uint64_t offset, uint64_t count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> entries;
    if (count == 0 || count > kMaxTable / sizeof(T)) return entries;
    const std::string bytes = Bytes(offset, count * sizeof(T));
    if (bytes.empty()) return entries;
    entries.resize(count);
    std::memcpy(entries.data(), bytes.data(), bytes.size());
    return entries;
  }

 private:
  int descriptor_;
  int error_ = 0;
  uint64_t size_ = 0;
};

std::string StringAt(const std::string& strings, uint64_t offset) {
  if (offset >= strings.size()) return "";
  const size_t end = strings.find('\0', offset);
  return end == std::string::npos ? "" : strings.substr(offset, end - offset);
}

std::vector<std::string> Folders(const std::string& path) {
  return absl::StrSplit(path, ':', absl::SkipEmpty());
}

// The file offset of an address that a PT_LOAD segment maps.
bool OffsetOf(const std::vector<Elf64_Phdr>& segments, uint64_t address,
              uint64_t* offset) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      *offset = segment.p_offset + (address - segment.p_vaddr);
      return true;
    }
  }
  return false;
}

void ReadDynamic(const File& file, const std::vector<Elf64_Phdr>& segments,
                 const Elf64_Phdr& dynamic, ElfFacts* facts) {
  const std::vector<Elf64_Dyn> entries = file.Table<Elf64_Dyn>(
      dynamic.p_offset, dynamic.p_filesz / sizeof(Elf64_Dyn));
  uint64_t address = 0;
  uint64_t size = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
  }
  uint64_t offset = 0;
  if (!OffsetOf(segments, address, &offset)) return;
  const std::string strings = file.Bytes(offset, size);
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    const std::string text = StringAt(strings, entry.d_un.d_val);
    if (entry.d_tag == DT_RPATH) facts->rpath = Folders(text);
    if (entry.d_tag == DT_RUNPATH) facts->runpath = Folders(text);
    if (entry.d_tag == DT_NEEDED) facts->needed.push_back(text);
  }
}

// Which of a few telling functions a symbol table defines.
void ReadSymbols(const File& file, const std::vector<Elf64_Shdr>& sections,
                 const Elf64_Shdr& table, ElfFacts* facts) {
  static constexpr const char* kTelling[] = {"cuInit", "cuLaunchKernel",
                                             "cuGetProcAddress_v2", "dlsym"};
  if (table.sh_link >= sections.size()) return;
  const Elf64_Shdr& strings_section = sections[table.sh_link];
  const std::string strings =
      file.Bytes(strings_section.sh_offset, strings_section.sh_size);
  for (const Elf64_Sym& symbol : file.Table<Elf64_Sym>(
           table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
    const int type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF ||
        ELF64_ST_BIND(symbol.st_info) == STB_LOCAL ||
        (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)) {
      continue;
    }
    const std::string name = StringAt(strings, symbol.st_name);
    for (const char* telling : kTelling) {
      if (name == telling &&
          std::find(facts->defined.begin(), facts->defined.end(), name) ==
              facts->defined.end()) {
        facts->defined.push_back(name);
      }
    }
  }
}

}  // namespace

absl::StatusOr<ElfFacts> ReadElfFacts(const std::string& path) {
  const File file(path);
  if (file.error() != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(file.error())));
  }
  const std::string identity = file.Bytes(0, EI_NIDENT);
  if (identity.empty() || std::memcmp(identity.data(), ELFMAG, SELFMAG) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not an ELF file"));
  }
  ElfFacts facts;
  const std::vector<Elf64_Ehdr> headers = file.Table<Elf64_Ehdr>(0, 1);
  if (identity[EI_CLASS] != ELFCLASS64 || identity[EI_DATA] != ELFDATA2LSB ||
      headers.empty() || headers[0].e_machine != kMachine) {
    return facts;
  }
  const Elf64_Ehdr& header = headers[0];
  facts.is_this_machine = true;
  const std::vector<Elf64_Phdr> segments =
      file.Table<Elf64_Phdr>(header.e_phoff, header.e_phnum);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) facts.has_interpreter = true;
    if (segment.p_type != PT_DYNAMIC) continue;
    facts.has_dynamic_section = true;
    ReadDynamic(file, segments, segment, &facts);
  }
  const std::vector<Elf64_Shdr> sections =
      file.Table<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB) {
      ReadSymbols(file, sections, section, &facts);
    }
  }
  return facts;
}

}  // namespace heddle::tools
