// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_MACHINE_H_
#define HEDDLE_TESTS_SASS_MACHINE_MACHINE_H_

// Runs the machine code of a kernel (sm_80 to sm_90) on the host, and logs
// every access to global memory: an oracle for static analysis of that code,
// which shares nothing with it but the decoder (sass.h, sass_semantics.h).
//
// What it is not: no timing, no caches, no memory model (blocks run one after
// the other, warps of a block in turns, every access is seen at once), no
// tensor cores, no TMA, no textures, no clusters. Approximate functions (MUFU)
// are the host's, so floats agree closely, integers bit by bit. An instruction
// or a modifier that it does not know is an error that names it; it never
// guesses.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/sass_machine/memory.h"
#include "tests/sass_machine/program.h"

namespace heddle::sass_machine {

enum class AccessMode : uint8_t { kRead, kWrite, kAtomic };

struct LoggedAccess {
  uint32_t instruction = 0;  // offset in the kernel's section, bytes
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> thread{};
  uint64_t address = 0;
  uint32_t bytes = 0;
  AccessMode mode = AccessMode::kRead;
};
using AccessLog = std::vector<LoggedAccess>;

struct Launch {
  std::string kernel;  // mangled
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_shared = 0;  // bytes
  // The parameter block, as the driver would lay it out.
  std::vector<uint8_t> params;
};

struct RunOptions {
  // Not 0: blocks run in an order drawn from this seed, else by number.
  uint64_t block_order_seed = 0;
  // Of one warp; more are taken for an endless loop.
  uint64_t max_instructions = 50'000'000;
};

// Runs all blocks to their end. `log` may be null. NotFound: no such kernel.
// InvalidArgument: a launch that the kernel cannot have. Unimplemented: an
// instruction that is not known. OutOfRange: an access outside of memory.
// DeadlineExceeded: an endless loop, or threads that wait for one another.
// Errors of instructions name their offset, block and thread.
absl::Status Run(const Program& program, const Launch& launch, Memory* memory,
                 AccessLog* log, const RunOptions& options = {});

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_MACHINE_H_
