// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_PROGRAM_H_
#define HEDDLE_TESTS_SASS_MACHINE_PROGRAM_H_

// A cubin made ready for the machine: decoded code, constant banks, variables.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/sass.h"
#include "runtime/cubin/sass_semantics.h"
#include "tests/sass_machine/memory.h"

namespace heddle::sass_machine {

class Warp;
struct Code;
// Executes one instruction for the lanes in `lanes`.
using Handler = absl::Status (Warp::*)(const Code& code, uint32_t lanes);

struct Code {
  uint64_t low = 0;
  uint64_t high = 0;
  cubin::SassInstruction decoded;
  cubin::SassOperation operation;
  Handler handler = nullptr;  // null: not known

  bool Bit(int bit) const { return Bits(bit, 1) != 0; }
  uint64_t Bits(int bit, int size) const;
};

struct KernelCode {
  cubin::Kernel kernel;
  std::vector<Code> code;  // of the kernel's section, by offset / 16
  uint32_t entry = 0;      // offset of the first instruction, bytes
  // Constant banks from the image; bank 0 is made for each launch.
  std::map<int, std::vector<uint8_t>> banks;
};

struct Program {
  uint32_t arch = 0;
  std::map<std::string, KernelCode> kernels;  // by mangled name
  std::map<std::string, uint64_t> variables;  // addresses, by mangled name

  const KernelCode* Find(const std::string& name) const;
};

// Reads `image` (which may go away) and places its variables in `memory` from
// `variables_at` on. InvalidArgument: no cubin, or one that needs relocations
// which are not known here.
absl::StatusOr<Program> LoadProgram(const std::vector<uint8_t>& image,
                                    uint64_t variables_at, Memory* memory);

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_PROGRAM_H_
