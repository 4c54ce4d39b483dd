// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cubin/patch_checker.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::cubin {
namespace {

using Span = absl::Span<const uint8_t>;

template <typename T>
T Get(Span bytes, uint64_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset) {
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  }
  return value;
}

struct Elf {
  explicit Elf(Span image) : bytes(image), header(Get<Elf64_Ehdr>(image, 0)) {
    for (int i = 0; i < header.e_shnum; ++i) {
      sections.push_back(
          Get<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    for (int i = 0; i < header.e_phnum; ++i) {
      segments.push_back(
          Get<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr)));
    }
    for (size_t i = 0; i < sections.size(); ++i) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      symbol_section = i;
      const Span data = Data(i);
      for (uint64_t at = 0; at < data.size(); at += sizeof(Elf64_Sym)) {
        symbols.push_back(Get<Elf64_Sym>(data, at));
      }
      break;
    }
  }

  // Bytes in the file; empty for those without.
  Span Data(size_t index) const {
    const Elf64_Shdr& section = sections[index];
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) return {};
    if (section.sh_offset > bytes.size()) return {};
    return bytes.subspan(section.sh_offset, section.sh_size);
  }
  std::string String(size_t table, uint64_t offset) const {
    const Span data = Data(table);
    std::string text;
    while (offset < data.size() && data[offset] != 0) text += data[offset++];
    return text;
  }
  std::string Name(size_t index) const {
    return String(header.e_shstrndx, sections[index].sh_name);
  }
  uint64_t FileSize(size_t index) const { return Data(index).size(); }

  Span bytes;
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Sym> symbols;
  size_t symbol_section = 0;
};

// One attribute of .nv.info: {format, code, payload}.
struct Attribute {
  uint8_t format;
  uint8_t code;
  std::vector<uint8_t> payload;
  friend bool operator==(const Attribute&, const Attribute&) = default;
  uint32_t Word(size_t index) const {
    return Get<uint32_t>(payload, index * sizeof(uint32_t));
  }
};

std::vector<Attribute> Attributes(Span data) {
  std::vector<Attribute> attributes;
  for (uint64_t at = 0; at + 4 <= data.size();) {
    Attribute attribute{data[at], data[at + 1], {}};
    uint64_t size = data[at] == 4 ? Get<uint16_t>(data, at + 2) : 0;
    // One that runs past the end equals no other.
    if (size > data.size() - at - 4) attribute.code = attribute.format = 0xff;
    if (attribute.format == 4) {
      const Span payload = data.subspan(at + 4, size);
      attribute.payload.assign(payload.begin(), payload.end());
    } else {
      attribute.payload = {data[at + 2], data[at + 3]};
    }
    attributes.push_back(std::move(attribute));
    at += 4 + size;
  }
  return attributes;
}

struct Code {
  uint64_t low;
  uint64_t high;
  uint32_t opcode() const { return low & 0xfff; }
};

Code At(Span text, uint64_t offset) {
  return Code{Get<uint64_t>(text, offset), Get<uint64_t>(text, offset + 8)};
}

// Where an unconditional BRA at `offset` leads.
std::optional<uint64_t> BranchTarget(Code code, uint64_t offset) {
  if ((code.low & 0x3ff00ffff) != 0x7947) return std::nullopt;
  // Second predicate "always", no barrier set or waited for, 5 cycles of stall:
  // nvcc's own branches are so.
  if ((code.high & ~uint64_t{0x3ffff}) != 0x000fea0003800000) {
    return std::nullopt;
  }
  unsigned __int128 word = code.high;
  word = word << 64 | code.low;
  const auto upper = static_cast<uint64_t>(word >> 34) & 0xffffffffffff;
  auto displacement =
      static_cast<int64_t>(upper << 8 | ((code.low >> 16) & 0xff));
  displacement = displacement << 8 >> 8;  // 56 bits, signed
  return offset + 16 + static_cast<uint64_t>(displacement * 4);
}

class Checker {
 public:
  Checker(Span original, const PatchedImage& patched,
          const PatchOptions& options)
      : a_(original), b_(patched.image), patched_(patched), options_(options) {}

  std::vector<std::string> Run() {
    CheckHeaders();
    if (!errors_.empty()) return errors_;
    CheckLayout();
    CheckSegments();
    FindKernels();
    CheckSymbols();
    for (const auto& [name, text] : texts_) CheckKernel(name, text);
    CheckUntouched();
    return errors_;
  }

 private:
  template <typename... Parts>
  bool Require(bool holds, const Parts&... parts) {
    if (!holds && errors_.size() < 20)
      errors_.push_back(absl::StrCat(parts...));
    return holds;
  }

  void CheckHeaders() {
    Elf64_Ehdr moved = b_.header;
    moved.e_shoff = a_.header.e_shoff;
    moved.e_phoff = a_.header.e_phoff;
    Require(std::memcmp(&moved, &a_.header, sizeof(moved)) == 0,
            "the file header has changed");
    for (size_t i = 0; i < a_.sections.size() && errors_.empty(); ++i) {
      Elf64_Shdr section = b_.sections[i];
      section.sh_offset = a_.sections[i].sh_offset;
      section.sh_size = a_.sections[i].sh_size;
      Require(std::memcmp(&section, &a_.sections[i], sizeof(section)) == 0,
              "header of section ", i, " has changed");
    }
  }

  void CheckLayout() {
    std::vector<std::tuple<uint64_t, uint64_t, std::string>> parts;
    parts.emplace_back(0, sizeof(Elf64_Ehdr), "header");
    parts.emplace_back(b_.header.e_shoff,
                       b_.sections.size() * sizeof(Elf64_Shdr), "sections");
    if (!b_.segments.empty()) {
      parts.emplace_back(b_.header.e_phoff,
                         b_.segments.size() * sizeof(Elf64_Phdr), "segments");
    }
    for (size_t i = 0; i < b_.sections.size(); ++i) {
      const Elf64_Shdr& section = b_.sections[i];
      const uint64_t alignment = std::max<uint64_t>(1, section.sh_addralign);
      if (b_.FileSize(i) == 0) {
        Require(section.sh_size == a_.sections[i].sh_size, "size of ",
                b_.Name(i));
        Require(section.sh_type == SHT_NULL || Behind(a_, i) == Behind(b_, i),
                b_.Name(i), " is not where it was");
        continue;
      }
      if (a_.sections[i].sh_offset % alignment == 0) {
        Require(section.sh_offset % alignment == 0, "alignment of ",
                b_.Name(i));
      }
      if (SharesItsBytes(i)) continue;
      parts.emplace_back(section.sh_offset, section.sh_size, b_.Name(i));
    }
    std::sort(parts.begin(), parts.end());
    uint64_t end = 0;
    for (const auto& [offset, size, name] : parts) {
      Require(offset >= end, name, " overlaps what is before it");
      Require(offset <= b_.bytes.size() && size <= b_.bytes.size() - offset,
              name, " lies outside the file");
      end = offset + size;
    }
  }

  // The nearest section that begins at or behind section `index`, and how far.
  // Where there is none, nothing but the tables is behind.
  static std::pair<size_t, uint64_t> Behind(const Elf& elf, size_t index) {
    std::pair<size_t, uint64_t> nearest(SIZE_MAX, UINT64_MAX);
    for (size_t i = 0; i < elf.sections.size(); ++i) {
      const uint64_t distance =
          elf.sections[i].sh_offset - elf.sections[index].sh_offset;
      if (elf.FileSize(i) != 0 && distance < nearest.second &&
          elf.sections[i].sh_offset >= elf.sections[index].sh_offset) {
        nearest = {i, distance};
      }
    }
    // Alignment may have moved it away.
    if (nearest.first != SIZE_MAX &&
        nearest.second < elf.sections[nearest.first].sh_addralign) {
      nearest.second = 0;
    }
    return nearest;
  }

  // Whether an earlier section of the original has just the same bytes: then
  // they must be the same in the patched one too.
  bool SharesItsBytes(size_t section) {
    const Elf64_Shdr& shared = a_.sections[section];
    for (size_t i = 0; i < section; ++i) {
      if (a_.FileSize(i) == 0 || a_.sections[i].sh_offset != shared.sh_offset ||
          a_.sections[i].sh_size != shared.sh_size) {
        continue;
      }
      Require(b_.sections[i].sh_offset == b_.sections[section].sh_offset &&
                  b_.sections[i].sh_size == b_.sections[section].sh_size,
              a_.Name(section), " no longer shares its bytes");
      return true;
    }
    return false;
  }

  // Where a segment begins and ends relative to the parts it covers: their
  // indices, and the distance to the first's start and the last's end.
  static auto Covered(const Elf& elf, const Elf64_Phdr& segment) {
    std::set<int64_t> covered;
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    const auto add = [&](int64_t index, uint64_t offset, uint64_t size) {
      if (size == 0 || offset < segment.p_offset ||
          offset + size > segment.p_offset + segment.p_filesz) {
        return;
      }
      covered.insert(index);
      first = std::min(first, offset);
      last = std::max(last, offset + size);
    };
    add(-1, elf.header.e_phoff, elf.segments.size() * sizeof(Elf64_Phdr));
    for (size_t i = 0; i < elf.sections.size(); ++i) {
      add(i, elf.sections[i].sh_offset, elf.FileSize(i));
    }
    return std::make_tuple(covered, first - segment.p_offset,
                           segment.p_offset + segment.p_filesz - last,
                           segment.p_memsz - segment.p_filesz);
  }

  void CheckSegments() {
    for (size_t i = 0; i < a_.segments.size(); ++i) {
      const Elf64_Phdr& before = a_.segments[i];
      const Elf64_Phdr& after = b_.segments[i];
      Require(before.p_type == after.p_type &&
                  before.p_flags == after.p_flags &&
                  before.p_vaddr == after.p_vaddr &&
                  before.p_paddr == after.p_paddr &&
                  before.p_align == after.p_align,
              "segment ", i, " has changed");
      Require(after.p_offset <= b_.bytes.size() &&
                  after.p_filesz <= b_.bytes.size() - after.p_offset,
              "segment ", i, " lies outside the file");
      if (before.p_filesz != 0) {
        Require(Covered(a_, before) == Covered(b_, after), "segment ", i,
                " does not cover what it covered");
        continue;
      }
      Require(after.p_filesz == 0 && after.p_memsz == before.p_memsz,
              "segment ", i, " has changed its size");
      for (size_t s = 0; s < a_.sections.size(); ++s) {
        if (a_.sections[s].sh_type != SHT_NOBITS ||
            a_.sections[s].sh_offset != before.p_offset) {
          continue;
        }
        Require(b_.sections[s].sh_offset == after.p_offset, "segment ", i,
                " is not where ", a_.Name(s), " is");
      }
    }
  }

  void FindKernels() {
    std::map<std::string, size_t> by_name;
    const size_t strings = a_.sections[a_.symbol_section].sh_link;
    for (const Elf64_Sym& symbol : a_.symbols) {
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
          (symbol.st_other & 0x10) != 0 && symbol.st_shndx != SHN_UNDEF) {
        by_name[a_.String(strings, symbol.st_name)] = symbol.st_shndx;
      }
    }
    Require(by_name.size() == patched_.kernels.size(),
            "kernels: ", by_name.size(), " in the file, ",
            patched_.kernels.size(), " reported");
    for (const KernelPatch& kernel : patched_.kernels) {
      Require(kernel.patched == kernel.reason.empty(), kernel.name,
              " is patched for a reason not to be");
      const auto it = by_name.find(kernel.name);
      if (!Require(it != by_name.end(), "no kernel ", kernel.name)) continue;
      if (!kernel.patched) continue;
      reports_[kernel.name] = &kernel;
      texts_[kernel.name] = it->second;
    }
    for (size_t i = 0; i < a_.sections.size(); ++i) {
      const std::string name = a_.Name(i);
      if (name.rfind(".nv.info.", 0) == 0) infos_[a_.sections[i].sh_info] = i;
      if (name.rfind(".nv.constant0.", 0) == 0) {
        constants_[a_.sections[i].sh_info] = i;
      }
    }
  }

  void CheckSymbols() {
    if (!Require(a_.symbols.size() == b_.symbols.size(), "symbols")) return;
    for (size_t i = 0; i < a_.symbols.size(); ++i) {
      Elf64_Sym before = a_.symbols[i];
      const Elf64_Sym after = b_.symbols[i];
      const size_t section = before.st_shndx;
      if (section < a_.sections.size() && section != SHN_UNDEF) {
        const uint64_t old_size = a_.sections[section].sh_size;
        const uint64_t new_size = b_.sections[section].sh_size;
        // A symbol that reached to the end of what has grown still does.
        if (old_size != new_size && before.st_size != 0 &&
            a_.Name(section).rfind(".text.", 0) == 0 &&
            before.st_value + before.st_size == old_size) {
          before.st_size = new_size - before.st_value;
        }
        if (ELF64_ST_TYPE(after.st_info) == STT_FUNC) {
          Require(after.st_value + after.st_size <= new_size, "symbol ", i,
                  " reaches beyond its section");
        }
      }
      Require(std::memcmp(&before, &after, sizeof(before)) == 0, "symbol ", i,
              " has changed");
    }
    changed_.insert(a_.symbol_section);
  }

  void CheckKernel(const std::string& name, size_t text) {
    if (options_.prologue != Prologue::kNone) {
      CheckCode(name, a_.Data(text), b_.Data(text));
      changed_.insert(text);
    }
    if (options_.hidden_parameter_bytes == 0) return;
    if (!Require(infos_.count(text) != 0 && constants_.count(text) != 0, name,
                 ": no attributes")) {
      return;
    }
    CheckParameter(name, text);
    changed_.insert(infos_[text]);
    changed_.insert(constants_[text]);
  }

  void CheckCode(const std::string& name, Span before, Span after) {
    const std::optional<uint64_t> stub = BranchTarget(At(after, 0), 0);
    if (!Require(stub.has_value(), name, ": no branch at its start")) return;
    uint64_t code_end = before.size();
    while (code_end > 0 && At(before, code_end - 16).opcode() == 0x918) {
      code_end -= 16;
    }
    Require(*stub == code_end, name, ": the stub is not behind its code");
    Require(after.size() >= before.size() && after.size() % 16 == 0, name,
            ": section size");
    Require(
        before.subspan(16, code_end - 16) == after.subspan(16, code_end - 16),
        name, ": code outside the stub has changed");
    uint64_t at = *stub;
    std::vector<uint64_t> expected;
    if (options_.prologue == Prologue::kTriggerWait)
      expected = {0x782d, 0x782e};
    if (options_.prologue == Prologue::kWaitTrigger)
      expected = {0x782e, 0x782d};
    if (options_.prologue == Prologue::kWait) expected = {0x782e};
    for (const uint64_t low : expected) {
      Code code = At(after, at);
      Require(code.low == low, name, ": not the prologue asked for");
      // Some cycles of stall (bits 105 to 108), yield or not, and no barrier
      // set or waited for.
      Require(((code.high >> 41) & 0xf) != 0, name, ": no stall");
      code.high &= ~(uint64_t{0x1f} << 41);
      Require(code.high == 0x000fc00000000000, name,
              ": odd scheduling in the prologue");
      at += 16;
    }
    Code displaced = At(before, 0);
    displaced.high &= 0xc3ffffffffffffff;
    Require(At(after, at).low == displaced.low &&
                At(after, at).high == displaced.high,
            name, ": displaced instruction");
    at += 16;
    Require(BranchTarget(At(after, at), at) == uint64_t{16}, name,
            ": the stub does not lead back");
    at += 16;
    Require(at + 32 <= after.size(), name, ": no padding left");
    for (; at < after.size(); at += 16) {
      Require(At(after, at).opcode() == 0x918, name, ": padding is code");
    }
    // What the detour relies on: nothing leads into the padding.
    for (uint64_t from = 16; from < code_end; from += 16) {
      Code code = At(before, from);
      if (code.opcode() != 0x947 && code.opcode() != 0x944) continue;
      code.low = (code.low & ~uint64_t{0x3ff00ffff}) | 0x7947;
      code.high = (code.high & 0x3ffff) | 0x000fea0003800000;
      const std::optional<uint64_t> target = BranchTarget(code, from);
      Require(target.has_value() && *target < code_end, name,
              ": a branch into the padding");
    }
  }

  void CheckParameter(const std::string& name, size_t text) {
    const KernelPatch& report = *reports_[name];
    const std::vector<Attribute> before = Attributes(a_.Data(infos_[text]));
    std::vector<Attribute> after = Attributes(b_.Data(infos_[text]));
    uint32_t count = 0;
    uint32_t base = 0;
    uint32_t old_size = 0;
    for (const Attribute& attribute : before) {
      if (attribute.code == 0x17 || attribute.code == 0x45) ++count;
      if (attribute.code != 0x0a) continue;
      base = attribute.Word(1) & 0xffff;
      old_size = attribute.Word(1) >> 16;
    }
    const uint32_t offset = (old_size + 7) / 8 * 8;
    const uint32_t end = offset + options_.hidden_parameter_bytes;
    Require(report.hidden_ordinal == count, name, ": hidden ordinal");
    Require(report.hidden_offset == offset, name, ": hidden offset");

    // Take back what is intended; the rest must be as before.
    int added = 0;
    int cbanks = 0;
    for (auto it = after.begin(); it != after.end();) {
      Attribute& attribute = *it;
      const bool second = attribute.code == 0x45;
      const std::map<uint8_t, size_t> sizes = {
          {0x17, 12}, {0x45, 12}, {0x0a, 8}, {0x19, 2}};
      if (const auto size = sizes.find(attribute.code);
          size != sizes.end() && attribute.payload.size() != size->second) {
        Require(false, name, ": size of an attribute");
        return;
      }
      if (attribute.code == 0x17 || second) {
        Require(!second || end > 4352 || HasCode(before, 0x45), name,
                ": second form of parameters without need");
        Require(second || end <= 4352, name, ": too large for the first form");
        if (attribute.Word(1) >> 16 == offset &&
            (attribute.Word(1) & 0xffff) == count) {
          const uint32_t size =
              second ? attribute.Word(2) : attribute.Word(2) >> 18;
          Require(size == options_.hidden_parameter_bytes, name,
                  ": hidden parameter's size");
          Require(second || (attribute.Word(2) & 0x3ffff) == 0x1f000, name,
                  ": hidden parameter's bank");
          Require(attribute.Word(0) == 0 && attribute.format == 4, name,
                  ": hidden parameter's index");
          it = after.erase(it);
          ++added;
          continue;
        }
        // A parameter that has been brought into the second form.
        if (second && !HasCode(before, 0x45)) {
          const uint32_t kind = attribute.Word(2) >> 24;
          const uint32_t size = attribute.Word(2) & 0xffffff;
          Require(kind < 16 && size < 1 << 14, name, ": parameter's size");
          const uint32_t word = size << 18 | 0x1f000 | kind << 8;
          std::memcpy(attribute.payload.data() + 8, &word, sizeof(word));
          attribute.code = 0x17;
        }
      } else if (attribute.code == 0x0a) {
        ++cbanks;
        Require(attribute.format == 4, name, ": parameter bank's format");
        base = attribute.Word(1) & 0xffff;
        Require(attribute.Word(1) >> 16 == end, name, ": parameter bank size");
        const uint32_t symbol = attribute.Word(0);
        Require(symbol < b_.symbols.size() &&
                    b_.symbols[symbol].st_shndx == constants_[text],
                name, ": parameter bank's symbol");
        const uint32_t word = base | old_size << 16;
        std::memcpy(attribute.payload.data() + 4, &word, sizeof(word));
      } else if (attribute.code == 0x19) {
        Require(Get<uint16_t>(attribute.payload, 0) == end, name,
                ": parameter size");
        Require(attribute.format == 3, name, ": parameter size's format");
        const auto size = static_cast<uint16_t>(old_size);
        std::memcpy(attribute.payload.data(), &size, sizeof(size));
      }
      if (count == 0 && (attribute.code == 0x0a || attribute.code == 0x19)) {
        it = after.erase(it);
      } else {
        ++it;
      }
    }
    Require(added == 1 && cbanks == 1, name, ": hidden parameter's attributes");
    Require(before == after, name, ": other attributes have changed");

    const Span old_bank = a_.Data(constants_[text]);
    const Span new_bank = b_.Data(constants_[text]);
    Require(new_bank.size() ==
                std::max<uint64_t>(old_bank.size(), uint64_t{base} + end),
            name, ": size of the constant bank");
    Require(new_bank.subspan(0, old_bank.size()) == old_bank, name,
            ": constant bank has changed");
    for (size_t i = old_bank.size(); i < new_bank.size(); ++i) {
      Require(new_bank[i] == 0, name, ": constant bank is not zero");
    }
  }

  static bool HasCode(const std::vector<Attribute>& attributes, uint8_t code) {
    return std::any_of(
        attributes.begin(), attributes.end(),
        [&](const Attribute& attribute) { return attribute.code == code; });
  }

  void CheckUntouched() {
    for (size_t i = 0; i < a_.sections.size(); ++i) {
      if (changed_.count(i) != 0) continue;
      Require(a_.Data(i) == b_.Data(i), a_.Name(i), " has changed");
    }
  }

  const Elf a_;
  const Elf b_;
  const PatchedImage& patched_;
  const PatchOptions options_;
  std::map<std::string, const KernelPatch*> reports_;
  std::map<std::string, size_t> texts_;  // kernel → section
  std::map<size_t, size_t> infos_;       // text section → section
  std::map<size_t, size_t> constants_;   // the same
  std::set<size_t> changed_;             // sections that were compared apart
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> CheckPatch(absl::Span<const uint8_t> original,
                                    const PatchedImage& patched,
                                    const PatchOptions& options) {
  return Checker(original, patched, options).Run();
}

}  // namespace heddle::cubin
