// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/options.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace heddle::record {
namespace {

std::string Get(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status Bad(absl::string_view name, absl::string_view value,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", value, ": expected ", allowed));
}

absl::Status ParseSteps(const std::string& text, RecordOptions* options) {
  if (text.empty() || text == "auto") return absl::OkStatus();
  if (text == "off") {
    options->snapshot_steps = false;
    return absl::OkStatus();
  }
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    uint64_t step;
    if (!absl::SimpleAtoi(part, &step)) {
      return Bad("HEDDLE_STEP", text, "auto, off, or step numbers like 5,9");
    }
    options->steps.push_back(step);
  }
  return absl::OkStatus();
}

const char* Name(MemoryPolicy policy) {
  switch (policy) {
    case MemoryPolicy::kNone:
      return "none";
    case MemoryPolicy::kSmall:
      return "small";
    case MemoryPolicy::kFull:
      return "full";
  }
  return "";
}

const char* Name(ImagePolicy policy) {
  switch (policy) {
    case ImagePolicy::kAll:
      return "all";
    case ImagePolicy::kOwn:
      return "own";
    case ImagePolicy::kNone:
      return "none";
  }
  return "";
}

}  // namespace

bool ParseBytes(absl::string_view text, uint64_t* bytes) {
  uint64_t unit = 1;
  if (!text.empty()) {
    switch (absl::ascii_toupper(text.back())) {
      case 'K':
        unit = uint64_t{1} << 10;
        break;
      case 'M':
        unit = uint64_t{1} << 20;
        break;
      case 'G':
        unit = uint64_t{1} << 30;
        break;
      default:
        break;
    }
    if (unit != 1) text.remove_suffix(1);
  }
  uint64_t number;
  if (!absl::SimpleAtoi(text, &number)) return false;
  if (number > UINT64_MAX / unit) return false;
  *bytes = number * unit;
  return true;
}

int RankFromEnvironment() {
  for (const char* name :
       {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    int rank;
    if (absl::SimpleAtoi(Get(name), &rank) && rank >= 0) return rank;
  }
  return -1;
}

std::string ExpandPath(const std::string& pattern, int rank) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'p':
        absl::StrAppend(&path, getpid());
        break;
      case 'r':
        absl::StrAppend(&path, rank < 0 ? 0 : rank);
        break;
      case 'h': {
        char host[256] = "unknown";
        gethostname(host, sizeof(host) - 1);
        path += host;
        break;
      }
      case '%':
        path += '%';
        break;
      default:  // Not ours: keep both characters.
        path += '%';
        path += pattern[i];
    }
  }
  return path;
}

absl::StatusOr<RecordOptions> OptionsFromEnvironment() {
  RecordOptions options;
  options.rank = RankFromEnvironment();
  options.trace_path = ExpandPath(Get("HEDDLE_TRACE"), options.rank);
  options.keep_existing = Get("HEDDLE_TRACE_KEEP") == "1";

  const std::string memory = Get("HEDDLE_MEMORY");
  if (memory == "none") {
    options.memory = MemoryPolicy::kNone;
  } else if (memory == "full") {
    options.memory = MemoryPolicy::kFull;
  } else if (!memory.empty() && memory != "small") {
    return Bad("HEDDLE_MEMORY", memory, "none, small or full");
  }

  const std::string images = Get("HEDDLE_IMAGES");
  if (images == "none") {
    options.images = ImagePolicy::kNone;
  } else if (images == "own") {
    options.images = ImagePolicy::kOwn;
  } else if (!images.empty() && images != "all") {
    return Bad("HEDDLE_IMAGES", images, "all, own or none");
  }

  if (absl::Status s = ParseSteps(Get("HEDDLE_STEP"), &options); !s.ok()) {
    return s;
  }
  options.range = Get("HEDDLE_RANGE");

  const std::string window = Get("HEDDLE_WINDOW");
  options.window_steps = window == "steps";
  if (!window.empty() && window != "steps" && window != "all") {
    return Bad("HEDDLE_WINDOW", window, "all or steps");
  }
  if (const std::string level = Get("HEDDLE_COMPRESS"); !level.empty()) {
    if (!absl::SimpleAtoi(level, &options.compression_level) ||
        options.compression_level < 0 || options.compression_level > 19) {
      return Bad("HEDDLE_COMPRESS", level, "a zstd level from 0 to 19");
    }
  }
  if (const std::string bytes = Get("HEDDLE_MAX_BYTES"); !bytes.empty()) {
    if (!ParseBytes(bytes, &options.max_bytes)) {
      return Bad("HEDDLE_MAX_BYTES", bytes, "a size like 4G");
    }
  }
  return options;
}

std::string RecordOptions::ToString() const {
  std::string text =
      absl::StrCat("--memory=", Name(memory), " --images=", Name(images));
  absl::StrAppend(&text, " --window=", window_steps ? "steps" : "all");
  if (!snapshot_steps) {
    absl::StrAppend(&text, " --step=off");
  } else if (steps.empty()) {
    absl::StrAppend(&text, " --step=auto");
  } else {
    absl::StrAppend(&text, " --step=", absl::StrJoin(steps, ","));
  }
  if (!range.empty()) absl::StrAppend(&text, " --range=", range);
  return text;
}

}  // namespace heddle::record
