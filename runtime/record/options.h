// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_OPTIONS_H_
#define HEDDLE_RUNTIME_RECORD_OPTIONS_H_

// What the recorder is asked to do, from HEDDLE_* environment variables
// (`heddle record` sets them from its flags).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace heddle::record {

enum class MemoryPolicy { kNone, kSmall, kFull };
enum class ImagePolicy { kAll, kOwn, kNone };

struct RecordOptions {
  // HEDDLE_TRACE, expanded; empty = do not record.
  std::string trace_path;
  // HEDDLE_TRACE_KEEP=1: never overwrite an existing file; write beside it
  // under a name with the process id. `heddle record` sets it, so that the
  // processes of one command do not overwrite each other's traces.
  bool keep_existing = false;
  // HEDDLE_MEMORY=none|small|full
  MemoryPolicy memory = MemoryPolicy::kSmall;
  // HEDDLE_IMAGES=all|own|none
  ImagePolicy images = ImagePolicy::kAll;
  // HEDDLE_STEP=auto|off|N[,M...]: at which repetition of the program's step
  // (from 0) memory is kept. auto = the third, when it is surely a repetition.
  bool snapshot_steps = true;
  std::vector<uint64_t> steps;  // empty = auto
  // HEDDLE_RANGE: NVTX range that is a step.
  std::string range;
  // HEDDLE_WINDOW=all|steps: whether work (launches, copies) outside the
  // chosen steps is written too. State (modules, allocations, streams, graphs)
  // always is.
  bool window_steps = false;
  // HEDDLE_COMPRESS: zstd level of blobs.
  int compression_level = 1;
  // HEDDLE_MAX_BYTES (suffixes K, M, G): recording stops there. 0 = no limit.
  uint64_t max_bytes = 0;
  // Of a distributed job; -1 = none.
  int rank = -1;

  // As --key=value words, for the trace.
  std::string ToString() const;
};

// InvalidArgument names the variable, its value and what is allowed.
absl::StatusOr<RecordOptions> OptionsFromEnvironment();

// A number of bytes, with K, M or G (1024^n) behind it or not. False if it is
// none, or too large for 64 bits.
bool ParseBytes(absl::string_view text, uint64_t* bytes);

// %p process id, %h host name, %r rank (0 without one), %% a percent sign.
std::string ExpandPath(const std::string& pattern, int rank);

// RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID; -1 if none is set.
int RankFromEnvironment();

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_OPTIONS_H_
