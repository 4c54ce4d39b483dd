// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_NV_INFO_H_
#define HEDDLE_RUNTIME_CUBIN_NV_INFO_H_

// The attribute list of .nv.info and .nv.info.<kernel> sections: what the
// driver needs to know to launch a kernel.
//
// One attribute: u8 format, u8 code, then by format nothing and two unused
// bytes (1), a u8 and an unused byte (2), a u16 (3), or a u16 size and as many
// bytes (4). The names are those that cuobjdump and nvdisasm print.

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "runtime/cubin/byte_reader.h"

namespace heddle::cubin {

enum class NvInfoCode : uint8_t {
  kMaxThreads = 0x05,      // {x, y, z} of __launch_bounds__
  kParamCbank = 0x0a,      // {u32 symbol, u16 offset, u16 size} in bank 0
  kReqNtid = 0x10,         // {x, y, z} of .reqntid
  kFrameSize = 0x11,       // {u32 symbol, u32 bytes}; in .nv.info
  kKparamInfo = 0x17,      // see KparamInfo in elf.cc
  kCbankParamSize = 0x19,  // u16
  kRegCount = 0x2f,        // {u32 symbol, u32 registers}; in .nv.info
  kCtaPerCluster = 0x3d,   // {x, y, z} of __cluster_dims__
  kKparamInfoV2 = 0x45,    // where the parameters take over 4352 bytes
};

struct NvInfoAttribute {
  NvInfoCode code{};
  // Format 4: the payload. Formats 1 to 3: the two bytes behind the code.
  Bytes value;
  // The whole attribute as it stands in the section.
  Bytes encoded;
};

// Calls `visit` for each attribute, in order. InvalidArgument if an attribute
// has an unknown format or runs past the end; those before it were visited.
absl::Status ForEachNvInfo(
    Bytes section, const std::function<void(const NvInfoAttribute&)>& visit);

// Calls `visit` with every code offset (bytes from the start of the kernel's
// section) that `attribute` of a .nv.info.<kernel> section is known to hold.
// Nothing for codes that hold none, or whose layout is not known.
void ForEachCodeOffset(const NvInfoAttribute& attribute,
                       const std::function<void(uint32_t)>& visit);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_NV_INFO_H_
