// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_KERNEL_ANALYSIS_H_
#define HEDDLE_RUNTIME_ACCESS_KERNEL_ANALYSIS_H_

// Static analysis of a kernel's machine code: where its global memory accesses
// can lead, for launches of one shape.
//
// Abstract interpretation over linear forms (linear.h): the parameters that are
// no pointers have the values of the launch, pointers are unknown, threads and
// blocks are unknown within the launch's sizes. Loops get a count, and what
// they add to registers in every round is linear in it; branches bound what
// they compare. After P. Cousot and N. Halbwachs, Automatic discovery of linear
// restraints among variables of a program, POPL 1978, cut down to one relation
// at a time.
//
// What it relies on: a kernel reaches global memory only through addresses that
// its instructions compute; loads and stores through a pointer that it was
// given stay in that pointer's allocation where the analysis cannot bound them.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/access/access_set.h"
#include "runtime/access/control_flow.h"
#include "runtime/access/interpreter.h"
#include "runtime/access/linear.h"

namespace heddle::access {

// A part of an address: coefficient times something in [lo, hi].
struct AddressTerm {
  SymbolKind kind = SymbolKind::kOther;
  uint8_t axis = 0;  // of kThread, kBlock
  int64_t coefficient = 0;
  int64_t lo = 0;
  int64_t hi = 0;
  friend bool operator==(const AddressTerm&, const AddressTerm&) = default;
};

// Where one instruction accesses memory.
struct Footprint {
  uint32_t offset = 0;  // of the instruction in the kernel, bytes
  std::string name;     // "LDG"
  Mode mode = Mode::kRead;
  uint32_t bytes = 0;    // per thread
  bool generic = false;  // may be shared or local memory as well
  // Index in LaunchValues::pointers of what the address begins with; -1: none,
  // or more than one.
  int pointer = -1;
  // Pointers and other sources that the address was computed from.
  Origins origins = 0;
  // The first byte of an access is between lo and hi (inclusive) bytes from the
  // pointer, or from address 0 without one.
  bool bounded = false;
  int64_t lo = 0;
  int64_t hi = 0;
  // The same as a sum: constant + terms; empty if some term has no bounds.
  int64_t constant = 0;
  std::vector<AddressTerm> terms;
  // A tensor copy: the tensor map is the parameter at this offset of the
  // parameter block; -1 if it is none, -2 if its map is not known.
  int tensor_map = -1;
};

struct KernelFootprint {
  std::vector<Footprint> footprints;
  // Not empty: the kernel may touch anything, and this is why.
  std::string unknown;
  // For whoever wants to know what it costs.
  uint32_t instructions = 0;
  uint32_t sweeps = 0;
};

struct KernelCodeView {
  absl::Span<const uint8_t> text;  // from the kernel's first instruction
  uint32_t arch = 0;               // compute capability x 10
  // Where indirect branches may go; others are unknown.
  std::vector<BranchTargets> branch_targets;
  // Calls (by offset) that end the program: failed assertions.
  std::vector<uint32_t> fatal_calls;
};

// Never fails: what it does not understand is `unknown`.
KernelFootprint AnalyzeKernel(const KernelCodeView& code,
                              const LaunchValues& launch);

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_KERNEL_ANALYSIS_H_
