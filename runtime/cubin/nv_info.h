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
  kKparamInfoV2 = 0x45,    // parameters that V1's size field cannot hold
};

struct NvInfoAttribute {
  NvInfoCode code{};
  // Format 4: the payload. Formats 1 to 3: the two bytes behind the code.
  Bytes value;
};

// Calls `visit` for each attribute, in order. InvalidArgument if an attribute
// has an unknown format or runs past the end; those before it were visited.
absl::Status ForEachNvInfo(
    Bytes section, const std::function<void(const NvInfoAttribute&)>& visit);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_NV_INFO_H_
