// SPDX-License-Identifier: Apache-2.0
#include "tools/names.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace heddle::tools {
namespace {

// Removes the last parenthesis, which of a function is its parameter list.
void DropParameters(std::string* name) {
  size_t end = name->size();
  while (end > 0 && (*name)[end - 1] != ')') --end;
  if (end == 0) return;
  int depth = 0;
  for (size_t i = end; i-- > 0;) {
    if ((*name)[i] == ')') ++depth;
    if ((*name)[i] == '(' && --depth == 0) {
      // "(anonymous namespace)" at the very end is no parameter list.
      if (i > 0 && (*name)[i - 1] != ':') name->erase(i);
      return;
    }
  }
}

template <typename Table>
const fb::Stamp* StampOfTable(const Table& table) {
  if constexpr (requires { table.stamp(); }) {
    return table.stamp();
  } else {
    return nullptr;
  }
}
const fb::Stamp* StampOfTable(const fb::Launch& launch) {
  return launch.head() == nullptr ? nullptr : &launch.head()->stamp();
}

}  // namespace

const fb::Stamp* StampOf(const trace::Record& record) {
  switch (record.type) {
#define HEDDLE_CASE(Table)       \
  case fb::RecordType::k##Table: \
    return StampOfTable(*record.As<fb::Table>());
    HEDDLE_RECORD_TABLES(HEDDLE_CASE)
#undef HEDDLE_CASE
    default:
      return nullptr;
  }
}

std::string Demangle(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
      &std::free);
  // "_Z" marks a mangled function; without it __cxa_demangle reads types, and
  // a kernel that is called "f" would become "float".
  if (status != 0 || text == nullptr || mangled.rfind("_Z", 0) != 0) {
    return mangled;
  }
  std::string name = text.get();
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  DropParameters(&name);
  return name;
}

std::string Hex(uint64_t value) { return absl::StrFormat("0x%x", value); }

std::string Bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB",
                                                        "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrCat(bytes, " B");
  return absl::StrFormat("%.*f %s", value < 10 ? 2 : 1, value, kUnits[unit]);
}

std::string HexBytes(absl::Span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string Text(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

std::string Printable(absl::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&result, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

KernelNames::KernelNames(const trace::Reader& reader, bool mangled)
    : mangled_(mangled) {
  for (const trace::Record& record : reader.records()) {
    if (const auto* kernel = record.As<fb::Kernel>(); kernel != nullptr) {
      kernels_[kernel->id()] = kernel;
    }
  }
}

const fb::Kernel* KernelNames::Find(uint32_t id) const {
  const auto found = kernels_.find(id);
  return found == kernels_.end() ? nullptr : found->second;
}

const std::string& KernelNames::Name(uint32_t id) const {
  std::string& name = names_[id];
  if (name.empty()) {
    const fb::Kernel* kernel = Find(id);
    if (kernel != nullptr) name = Text(kernel->name());
    if (name.empty()) {
      name = absl::StrCat("kernel-", id);
    } else if (!mangled_) {
      name = Demangle(name);
    }
  }
  return name;
}

void Buffers::Follow(const trace::Record& record) {
  if (const auto* alloc = record.As<fb::Alloc>(); alloc != nullptr) {
    Buffer buffer;
    buffer.number = ++count_;
    buffer.address = alloc->address();
    buffer.size = alloc->size();
    buffer.alloc = alloc;
    live_[alloc->address()] = buffer;
  } else if (const auto* free = record.As<fb::Free>(); free != nullptr) {
    last_freed_ = 0;
    const auto found = live_.find(free->address());
    if (found == live_.end()) return;
    last_freed_ = found->second.number;
    live_.erase(found);
  }
}

const Buffers::Buffer* Buffers::Find(uint64_t address) const {
  auto next = live_.upper_bound(address);
  if (next == live_.begin()) return nullptr;
  const Buffer& buffer = std::prev(next)->second;
  return address - buffer.address < buffer.size ? &buffer : nullptr;
}

std::optional<std::string> Buffers::Locate(uint64_t address) const {
  const Buffer* buffer = Find(address);
  if (buffer == nullptr) return std::nullopt;
  std::string text = absl::StrCat("buf", buffer->number);
  if (address != buffer->address) {
    absl::StrAppend(&text, "+", Hex(address - buffer->address));
  }
  return text;
}

std::string GraphNodeTypeName(uint32_t type) {
  // CUgraphNodeType of cuda.h.
  static constexpr std::array<const char*, 14> kNames = {
      "kernel",         "memcpy",       "memset",
      "host",           "graph",        "empty",
      "event-wait",     "event-record", "semaphore-signal",
      "semaphore-wait", "mem-alloc",    "mem-free",
      "batch-mem-op",   "conditional"};
  if (type < kNames.size()) return kNames[type];
  return absl::StrCat("node-type-", type);
}

}  // namespace heddle::tools
