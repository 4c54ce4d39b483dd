// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_ELF_H_
#define HEDDLE_RUNTIME_CUBIN_ELF_H_

// What a cubin (the ELF file of one chip's machine code) offers: its kernels
// with their parameter layouts, and its variables.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace heddle::cubin {

struct KernelParam {
  // In the parameter block, bytes. Parameters are aligned in the constant bank:
  // the first one of a kernel may have an offset above 0.
  uint32_t offset = 0;
  uint32_t size = 0;  // bytes
  friend bool operator==(const KernelParam&, const KernelParam&) = default;
};

struct Kernel {
  std::string name;                 // mangled
  std::vector<KernelParam> params;  // by ordinal
  // The parameter block in constant bank 0.
  uint32_t param_base = 0;
  uint32_t param_size = 0;
  uint32_t registers = 0;            // per thread
  uint32_t static_shared_bytes = 0;  // without what the system reserves
  uint32_t local_bytes = 0;          // stack frame per thread
  // __launch_bounds__ or .reqntid; 0 where the program states none.
  uint32_t max_threads = 0;
  // __cluster_dims__; zeros where the program states none.
  std::array<uint32_t, 3> cluster{};
  uint32_t text_section = 0;  // section index
  uint64_t text_offset = 0;   // of its first instruction in there, bytes
};

enum class VariableSpace : uint8_t {
  kGlobal,    // __device__, also __managed__
  kConstant,  // __constant__
};

struct Variable {
  std::string name;  // mangled
  VariableSpace space = VariableSpace::kGlobal;
  uint64_t size = 0;  // bytes
  // The address of another symbol is stored somewhere in it by the loader, so
  // `initial` alone is not its starting content.
  bool relocated = false;
  // Starting content, `size` bytes inside the image; empty means zeros.
  absl::Span<const uint8_t> initial;
};

struct Cubin {
  int abi = 0;                      // 7 or 8
  uint32_t arch = 0;                // compute capability x 10
  std::vector<Kernel> kernels;      // by position in the symbol table
  std::vector<Variable> variables;  // the same

  const Kernel* FindKernel(absl::string_view name) const;
  const Variable* FindVariable(absl::string_view name) const;
  // Whether there may be variables that kernels or the program change: a second
  // copy of this image would have a state of its own. Conservative: constant
  // tables count.
  bool HasMutableState() const;
};

// Reads `image`, which must outlive the result. InvalidArgument if it is no
// cubin or damaged; Unimplemented if its ABI is none of those known.
absl::StatusOr<Cubin> ParseCubin(absl::Span<const uint8_t> image);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_ELF_H_
