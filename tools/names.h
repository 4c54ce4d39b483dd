// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_NAMES_H_
#define HEDDLE_TOOLS_NAMES_H_

// How things in a trace are called when they are shown.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "heddle/trace.h"

namespace heddle::tools {

// The C++ name behind a mangled one, without the parameter list of a function
// template's instance and without "void " in front; the name itself if it is
// not mangled.
std::string Demangle(const std::string& mangled);

std::string Hex(uint64_t value);                        // 0x1f
std::string Bytes(uint64_t bytes);                      // 1.5 MiB
std::string HexBytes(absl::Span<const uint8_t> bytes);  // 0fa0...
std::string Text(const flatbuffers::String* text);      // "" for none

// The text for a terminal: control characters of the program's strings are
// shown as \n, \x1b and so on.
std::string Printable(absl::string_view text);

// Who did what a record says, and when; nullptr if it does not say.
const fb::Stamp* StampOf(const trace::Record& record);

// The kernels of a trace.
class KernelNames {
 public:
  explicit KernelNames(const trace::Reader& reader, bool mangled = false);

  const fb::Kernel* Find(uint32_t id) const;
  // "kernel-7" for one that the trace does not describe.
  const std::string& Name(uint32_t id) const;

 private:
  bool mangled_;
  absl::flat_hash_map<uint32_t, const fb::Kernel*> kernels_;
  mutable absl::flat_hash_map<uint32_t, std::string> names_;
};

// The allocations that are live at one point of a trace. Feed it every record
// in order. Allocation n of a trace, from 1, is "buf<n>".
class Buffers {
 public:
  struct Buffer {
    uint64_t number = 0;
    uint64_t address = 0;
    uint64_t size = 0;
    const fb::Alloc* alloc = nullptr;
  };

  void Follow(const trace::Record& record);

  // The live buffer that holds the address, or nullptr.
  const Buffer* Find(uint64_t address) const;
  // "buf12+0x400" or "buf12"; nullopt if nothing is live there.
  std::optional<std::string> Locate(uint64_t address) const;
  // Number of the buffer that the last Free that was followed released, 0 if
  // it was none of this trace.
  uint64_t last_freed() const { return last_freed_; }
  uint64_t count() const { return count_; }

 private:
  std::map<uint64_t, Buffer> live_;  // by address
  uint64_t count_ = 0;
  uint64_t last_freed_ = 0;
};

// CUgraphNodeType, e.g. "kernel"; "node-type-99" for one that is not known.
std::string GraphNodeTypeName(uint32_t type);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_NAMES_H_
