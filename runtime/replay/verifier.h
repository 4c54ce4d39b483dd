// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_VERIFIER_H_
#define HEDDLE_RUNTIME_REPLAY_VERIFIER_H_

// Do a graph, and what it was rewritten into, leave the same bytes as stream
// launches?
//
// For each of two inputs, from the same starting memory: serial, serial again,
// each of the other forms (several times: a missing edge need not show at
// once). All memory that the trace knows of and all bytes copied to the host
// are compared.
//
// Kernels that are not repeatable (float atomics, races of their own) differ
// between two serial runs as well. Where they do, in blocks of 4 KiB, a
// difference of another form proves nothing and is no failure; the kernels are
// searched for and named.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/access/extents.h"
#include "runtime/replay/executor.h"
#include "runtime/replay/session.h"

namespace heddle::replay {

using access::Extent;
using access::ExtentSet;

// Memory and host outputs where two runs differ. Outputs are addressed by
// their offset among all bytes copied to the host.
struct RunDifference {
  ExtentSet memory;
  ExtentSet outputs;

  bool empty() const { return memory.empty() && outputs.empty(); }
  uint64_t bytes() const { return memory.bytes() + outputs.bytes(); }
};

// A place where a comparison failed.
struct Finding {
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::string where;       // "0x7f… + 16 (of 4096 bytes)"
  int64_t operation = -1;  // index in the step of the last writer; -1 unknown
  std::string writer;      // its label
};

// A kernel that does not do the same twice on the same memory.
struct UnrepeatableKernel {
  std::string name;
  uint64_t launches = 0;  // of the step that differed
  uint64_t record = 0;    // of the first of them
  uint64_t bytes = 0;     // that differed, of all of them
};

// From good to bad.
enum class Verdict {
  kIdentical,
  kWithinSerial,  // differs only where serial runs differ among themselves
  kDifferent,
};
const char* VerdictName(Verdict verdict);

// How one way to run the step compares with stream launches.
struct FormVerdict {
  std::string name;  // of the executor
  int runs = 0;
  Verdict verdict = Verdict::kIdentical;
  uint64_t differing_bytes = 0;   // beyond what serial runs explain
  std::vector<Finding> findings;  // kDifferent: the first of them
};

struct InputVerdict {
  uint64_t input = 1;
  uint64_t changed_bytes = 0;  // against the input before
  uint64_t compared_bytes = 0;
  uint64_t written_bytes = 0;  // that the step changed
  uint64_t output_bytes = 0;   // copied to the host
  int serial_runs = 0;
  uint64_t serial_differing_bytes = 0;  // between serial runs
  std::vector<FormVerdict> forms;       // the graph, then options.others
  std::vector<UnrepeatableKernel> unrepeatable;
  // Serial runs differ and no kernel does so by itself: the order between
  // streams leaves something open.
  bool unexplained = false;

  // The worst of all forms.
  Verdict verdict() const;
};

// How memory after a serial run compares with what the program had.
struct OriginalVerdict {
  bool available = false;
  uint64_t compared_bytes = 0;
  uint64_t differing_bytes = 0;
  std::vector<Finding> findings;
};

struct VerifyOptions {
  int runs = 3;  // of each form
  int max_serial_runs = 8;
  int inputs = 2;
  size_t max_findings = 8;
  GraphOptions graph;
  // Forms beside the plain graph, of the same session. Not owned.
  std::vector<Executor*> others;
};

struct VerifyResult {
  std::vector<InputVerdict> inputs;
  OriginalVerdict original;
  bool passed = false;
  std::vector<std::string> notes;
};

// Leaves the session with the first input loaded and its written set known.
absl::StatusOr<VerifyResult> Verify(Session& session,
                                    const VerifyOptions& options);

// The kernels of the step that leave different bytes when they run twice on
// the same memory. `watched` bounds where their results are looked for.
absl::StatusOr<std::vector<UnrepeatableKernel>> FindUnrepeatableKernels(
    Session& session, const ExtentSet& watched);

// The last operation of the step, in serial order, that changes each of
// `places` or the bytes right beside it (a write may leave single bytes as they
// were); -1 where none does.
absl::StatusOr<std::vector<int64_t>> FindLastWriters(
    Session& session, const std::vector<Extent>& places);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_VERIFIER_H_
