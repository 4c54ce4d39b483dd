// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/report/activity.h"

namespace heddle::report {
namespace {

#define HEDDLE_CUPTI_FUNCTIONS(X)                              \
  X(GetVersion, cuptiGetVersion)                               \
  X(GetResultString, cuptiGetResultString)                     \
  X(ActivityEnable, cuptiActivityEnable)                       \
  X(ActivityDisable, cuptiActivityDisable)                     \
  X(ActivityRegisterCallbacks, cuptiActivityRegisterCallbacks) \
  X(ActivityFlushAll, cuptiActivityFlushAll)                   \
  X(ActivityGetNextRecord, cuptiActivityGetNextRecord)         \
  X(ActivityGetNumDroppedRecords, cuptiActivityGetNumDroppedRecords)

struct Cupti {
#define HEDDLE_CUPTI_MEMBER(member, symbol) decltype(&::symbol) member;
  HEDDLE_CUPTI_FUNCTIONS(HEDDLE_CUPTI_MEMBER)
#undef HEDDLE_CUPTI_MEMBER
  uint32_t version;
};

// CUPTI calls back without an argument of ours, so the state is the process's.
// Never destroyed: CUPTI's worker thread may outlive main.
struct State {
  std::mutex mutex;
  Cupti cupti = {};
  bool recording = false;
  std::vector<Activity> activities;
  uint64_t dropped = 0;
};
State& GetState() {
  static State* const state = new State;
  return *state;
}

constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kBufferAlign = 8;

// The records are versioned by growing at their end: these are the oldest that
// have what is read here, so that newer ones are read by their front.
using KernelRecord = CUpti_ActivityKernel9;
using MemcpyRecord = CUpti_ActivityMemcpy5;
using MemsetRecord = CUpti_ActivityMemset4;

const char* MemoryName(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return "Pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return "Pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
      return "Device";
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return "Array";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
      return "Managed";
    default:
      return "Unknown";
  }
}

const char* CopyName(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "PtoP";
    default:
      return "Unknown";
  }
}

template <typename Record>
Activity Common(const Record& record, ActivityKind kind) {
  Activity activity;
  activity.kind = kind;
  activity.start_ns = record.start;
  activity.end_ns = record.end;
  activity.device = record.deviceId;
  activity.context = record.contextId;
  activity.stream = record.streamId;
  activity.correlation = record.correlationId;
  activity.graph = record.graphId;
  activity.graph_node = record.graphNodeId;
  return activity;
}

void Take(const CUpti_Activity& record, std::vector<Activity>& activities) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
      Activity activity = Common(kernel, ActivityKind::kKernel);
      activity.name = kernel.name == nullptr ? "unknown" : kernel.name;
      activity.grid[0] = static_cast<uint32_t>(kernel.gridX);
      activity.grid[1] = static_cast<uint32_t>(kernel.gridY);
      activity.grid[2] = static_cast<uint32_t>(kernel.gridZ);
      activity.block[0] = static_cast<uint32_t>(kernel.blockX);
      activity.block[1] = static_cast<uint32_t>(kernel.blockY);
      activity.block[2] = static_cast<uint32_t>(kernel.blockZ);
      activity.registers = kernel.registersPerThread;
      activity.static_shared = static_cast<uint32_t>(kernel.staticSharedMemory);
      activity.dynamic_shared =
          static_cast<uint32_t>(kernel.dynamicSharedMemory);
      activities.push_back(std::move(activity));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const MemcpyRecord&>(record);
      Activity activity = Common(copy, ActivityKind::kMemcpy);
      activity.name = absl::StrCat("Memcpy ", CopyName(copy.copyKind), " (",
                                   MemoryName(copy.srcKind), " -> ",
                                   MemoryName(copy.dstKind), ")");
      activity.bytes = copy.bytes;
      activities.push_back(std::move(activity));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = reinterpret_cast<const MemsetRecord&>(record);
      Activity activity = Common(fill, ActivityKind::kMemset);
      activity.name = absl::StrCat(
          "Memset (", MemoryName(static_cast<uint8_t>(fill.memoryKind)), ")");
      activity.bytes = fill.bytes;
      activities.push_back(std::move(activity));
      break;
    }
    default:
      break;
  }
}

void CUPTIAPI BufferRequested(uint8_t** buffer, size_t* size,
                              size_t* max_records) {
  *buffer =
      static_cast<uint8_t*>(std::aligned_alloc(kBufferAlign, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void CUPTIAPI BufferCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t,
                              size_t valid_bytes) {
  State& state = GetState();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    CUpti_Activity* record = nullptr;
    while (valid_bytes != 0 && state.recording &&
           state.cupti.ActivityGetNextRecord(buffer, valid_bytes, &record) ==
               CUPTI_SUCCESS) {
      Take(*record, state.activities);
    }
    size_t dropped = 0;
    if (state.cupti.ActivityGetNumDroppedRecords(nullptr, 0, &dropped) ==
        CUPTI_SUCCESS) {
      state.dropped += dropped;
    }
  }
  std::free(buffer);
}

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

absl::Status Check(CUptiResult result, const std::string& call) {
  if (result == CUPTI_SUCCESS) return absl::OkStatus();
  const char* text = nullptr;
  if (GetState().cupti.GetResultString(result, &text) != CUPTI_SUCCESS ||
      text == nullptr) {
    text = "unknown error";
  }
  return absl::InternalError(absl::StrCat(
      call, ": ", text,
      ". Another profiler may have the device (one process, one CUPTI client), "
      "or profiling needs privileges (NVreg_RestrictProfilingToAdminUsers)"));
}

class CuptiSource : public ActivitySource {
 public:
  std::string name() const override {
    return absl::StrCat("CUPTI (API ", GetState().cupti.version, ")");
  }

  absl::Status Start() override {
    State& state = GetState();
    // What lies in the buffers is of before.
    if (absl::Status s = Check(
            state.cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
            "cuptiActivityFlushAll");
        !s.ok()) {
      return s;
    }
    {
      const std::lock_guard<std::mutex> lock(state.mutex);
      state.activities.clear();
      state.dropped = 0;
      state.recording = true;
    }
    if (enabled_) return absl::OkStatus();
    for (const CUpti_ActivityKind kind : kKinds) {
      if (absl::Status s = Check(state.cupti.ActivityEnable(kind),
                                 absl::StrCat("cuptiActivityEnable(",
                                              static_cast<int>(kind), ")"));
          !s.ok()) {
        return s;
      }
    }
    enabled_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Activity>> Stop() override {
    State& state = GetState();
    absl::Status flushed =
        Check(state.cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
              "cuptiActivityFlushAll");
    Disable();
    std::vector<Activity> activities;
    uint64_t dropped = 0;
    {
      const std::lock_guard<std::mutex> lock(state.mutex);
      state.recording = false;
      activities = std::move(state.activities);
      state.activities.clear();
      dropped = state.dropped;
    }
    if (!flushed.ok()) return flushed;
    if (dropped != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("CUPTI dropped ", dropped, " records"));
    }
    NumberActivities(activities);
    return activities;
  }

  ~CuptiSource() override { Disable(); }

 private:
  void Disable() {
    if (!enabled_) return;
    for (const CUpti_ActivityKind kind : kKinds) {
      GetState().cupti.ActivityDisable(kind);
    }
    enabled_ = false;
  }

  bool enabled_ = false;
};

std::vector<std::string> Candidates() {
  std::vector<std::string> paths;
  constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12",
                                    "libcupti.so"};
  const auto folder = [&](const std::string& path) {
    for (const char* name : kNames) paths.push_back(path + "/" + name);
  };
  if (const char* path = std::getenv("HEDDLE_CUPTI")) {
    paths.emplace_back(path);
    folder(path);
    folder(absl::StrCat(path, "/lib"));
  }
  for (const char* name : kNames) paths.emplace_back(name);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* path = std::getenv(variable)) {
      folder(absl::StrCat(path, "/lib64"));
      folder(absl::StrCat(path, "/extras/CUPTI/lib64"));
    }
  }
  folder("/usr/local/cuda/lib64");
  folder("/usr/local/cuda/extras/CUPTI/lib64");
  return paths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ActivitySource>> CreateCuptiSource() {
  void* library = nullptr;
  for (const std::string& path : Candidates()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return absl::UnavailableError(
        "no CUPTI (libcupti.so.13 or .12) found; set HEDDLE_CUPTI to the file "
        "or its folder, e.g. <site-packages>/nvidia/cu13/lib");
  }
  State& state = GetState();
  Cupti cupti = {};
#define HEDDLE_CUPTI_LOAD(member, symbol)                                \
  cupti.member =                                                         \
      reinterpret_cast<decltype(cupti.member)>(dlsym(library, #symbol)); \
  if (cupti.member == nullptr) {                                         \
    return absl::UnavailableError("this CUPTI has no " #symbol);         \
  }
  HEDDLE_CUPTI_FUNCTIONS(HEDDLE_CUPTI_LOAD)
#undef HEDDLE_CUPTI_LOAD
  state.cupti = cupti;
  if (absl::Status s =
          Check(cupti.GetVersion(&state.cupti.version), "cuptiGetVersion");
      !s.ok()) {
    return s;
  }
  // 18 is CUDA 12.0: before it graph nodes and records looked different.
  if (state.cupti.version < 18) {
    return absl::UnavailableError(
        absl::StrCat("CUPTI API ", state.cupti.version,
                     " is too old: heddle reads that of "
                     "CUDA 12.0 and later"));
  }
  if (absl::Status s = Check(
          cupti.ActivityRegisterCallbacks(&BufferRequested, &BufferCompleted),
          "cuptiActivityRegisterCallbacks");
      !s.ok()) {
    return s;
  }
  return std::make_unique<CuptiSource>();
}

}  // namespace heddle::report
