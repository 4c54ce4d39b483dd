// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/recorder.h"

#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/record/hooks.h"
#include "runtime/record/log.h"

extern char** environ;

namespace heddle::record {
namespace {

constexpr const char* kVersion = HEDDLE_VERSION;

uint64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

struct ThreadState {
  uint32_t index = UINT32_MAX;
  uint32_t context = 0;  // Context.id, 0 = ask the driver
};
thread_local ThreadState t_state;
std::atomic<uint32_t> g_threads{0};

// A trace is passed around: of the environment only what concerns the GPU goes
// into it.
bool KeepVariable(absl::string_view name) {
  for (absl::string_view prefix : {"CUDA_", "HEDDLE_", "NVIDIA_", "PYTORCH_",
                                   "CUBLAS_", "CUDNN_", "TORCH_CUDA", "XLA_"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

std::string ReadLink(const char* path) {
  char target[4096];
  const ssize_t size = readlink(path, target, sizeof(target));
  return size > 0 ? std::string(target, size) : "";
}

}  // namespace

std::atomic<Recorder*> Recorder::current_{nullptr};
std::atomic<Recorder*> Recorder::forked_from_{nullptr};

Recorder::Recorder(const RecordOptions& options,
                   const HeddleInterposer* interposer, device::Driver driver)
    : options_(options),
      interposer_(interposer),
      driver_(std::move(driver)),
      steps_(options) {
  start_ns_ = Now(CLOCK_MONOTONIC);
  writes_work_ = !options.window_steps;
  // While all work is written, its pointers cost next to nothing to collect.
  // Otherwise the step watch says when a snapshot will want them.
  memory_.set_collects_pointers(options.memory == MemoryPolicy::kSmall &&
                                options.snapshot_steps &&
                                !options.window_steps);
}

absl::Status Recorder::Start(const RecordOptions& options,
                             const HeddleInterposer* interposer,
                             device::Driver driver) {
  // Never deleted: hooks of other threads may hold it at any time.
  auto* recorder = new Recorder(options, interposer, std::move(driver));
  if (absl::Status s = recorder->OpenTrace(); !s.ok()) return s;
  recorder->WriteProcess();
  current_.store(recorder, std::memory_order_release);
  return absl::OkStatus();
}

// Several processes may be told the same path (an exec'ed child, ranks of one
// job). The one that writes the file keeps the name; the others put their
// process id into theirs. A trace that nobody writes is from an earlier run and
// is replaced, unless HEDDLE_TRACE_KEEP says otherwise.
absl::Status Recorder::OpenTrace() {
  trace::WriterOptions writer_options;
  writer_options.rank = options_.rank;
  writer_options.compression_level = options_.compression_level;
  writer_options.max_bytes = options_.max_bytes;
  std::string path = options_.trace_path;
  absl::StatusOr<std::unique_ptr<trace::Writer>> writer =
      absl::AlreadyExistsError(path);
  if (!options_.keep_existing || access(path.c_str(), F_OK) != 0) {
    writer = trace::Writer::Create(path, writer_options);
  }
  if (absl::IsAlreadyExists(writer.status())) {
    constexpr absl::string_view kSuffix = ".htrace";
    absl::string_view stem = path;
    if (absl::EndsWith(stem, kSuffix)) stem.remove_suffix(kSuffix.size());
    path = absl::StrCat(stem, ".", getpid(), kSuffix);
    writer = trace::Writer::Create(path, writer_options);
  }
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  Log(LogLevel::kInfo, absl::StrCat("recording to ", path));
  return absl::OkStatus();
}

void Recorder::WriteProcess() {
  fb::ProcessT process;
  process.pid = static_cast<uint32_t>(getpid());
  process.parent_pid = static_cast<uint32_t>(getppid());
  process.start_unix_ns = Now(CLOCK_REALTIME);
  std::ifstream command("/proc/self/cmdline", std::ios::binary);
  const std::string words((std::istreambuf_iterator<char>(command)),
                          std::istreambuf_iterator<char>());
  for (absl::string_view word : absl::StrSplit(words, '\0')) {
    process.command.emplace_back(word);
  }
  if (!process.command.empty()) process.command.pop_back();
  process.executable = ReadLink("/proc/self/exe");
  process.directory = ReadLink("/proc/self/cwd");
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  process.host = host;
  process.rank = options_.rank;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    if (!KeepVariable(pair.first)) continue;
    auto variable = std::make_unique<fb::EnvVarT>();
    variable->name = std::string(pair.first);
    variable->value = std::string(pair.second);
    process.environment.push_back(std::move(variable));
  }
  driver_.DriverGetVersion(&process.driver_version);
  process.heddle_version = kVersion;
  process.options = options_.ToString();
  writer_->AppendObject(process);
}

fb::Stamp Recorder::Stamp() {
  ThreadState& thread = t_state;
  if (thread.index == UINT32_MAX) thread.index = g_threads.fetch_add(1);
  if (thread.context == 0) thread.context = CurrentContextId();
  return fb::Stamp(Now(CLOCK_MONOTONIC) - start_ns_, thread.index,
                   thread.context);
}

void Recorder::ForgetThreadContext() { t_state.context = 0; }

uint32_t Recorder::CurrentContextId() {
  CUcontext context = nullptr;
  if (driver_.CtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) {
    return 0;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = contexts_.find(reinterpret_cast<uint64_t>(context));
  return it != contexts_.end() ? it->second : DefineContext(context);
}

void Recorder::WriteDevice(CUdevice device) {
  fb::DeviceT record;
  record.ordinal = device;
  char name[256] = "";
  driver_.DeviceGetName(name, sizeof(name) - 1, device);
  record.name = name;
  CUuuid uuid{};
  driver_.DeviceGetUuid(&uuid, device);
  const auto* bytes = reinterpret_cast<const uint8_t*>(uuid.bytes);
  record.uuid.assign(bytes, bytes + sizeof(uuid.bytes));
  size_t total = 0;
  driver_.DeviceTotalMem(&total, device);
  record.total_memory = total;
  for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute) {
    int value = 0;
    if (driver_.DeviceGetAttribute(&value,
                                   static_cast<CUdevice_attribute>(attribute),
                                   device) != CUDA_SUCCESS) {
      continue;
    }
    record.attributes.emplace_back(attribute, 0, static_cast<uint64_t>(value));
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
      record.compute_major = value;
    } else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
      record.compute_minor = value;
    } else if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
      record.multiprocessors = value;
    }
  }
  writer_->AppendObject(record);
}

uint32_t Recorder::DefineContext(CUcontext context) {
  CUdevice device = 0;
  if (driver_.CtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  if (devices_.insert(device).second) WriteDevice(device);
  fb::ContextT record;
  record.id = static_cast<uint32_t>(contexts_.size() + 1);
  record.handle = reinterpret_cast<uint64_t>(context);
  record.device = device;
  writer_->AppendObject(record);
  contexts_[record.handle] = record.id;
  return record.id;
}

void Recorder::CaptureEnded() {
  // A capture may be ended that began before recording did.
  int current = captures_.load();
  while (current > 0 &&
         !captures_.compare_exchange_weak(current, current - 1)) {
  }
}

bool Recorder::IsCapturing(CUstream stream, bool per_thread) const {
  if (!any_capture()) return false;
  if (stream == nullptr && per_thread) stream = CU_STREAM_PER_THREAD;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver_.StreamIsCapturing(stream, &status) != CUDA_SUCCESS) return false;
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool Recorder::FindNode(uint64_t exec, uint64_t node, uint32_t* graph,
                        uint32_t* index) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto info = execs_.find(exec);
  if (info == execs_.end()) return false;
  const auto position = info->second.node_index.find(node);
  if (position == info->second.node_index.end()) return false;
  *graph = info->second.graph_id;
  *index = position->second;
  return true;
}

void Recorder::Unsupported(absl::string_view api, absl::string_view detail) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (++unsupported_seen_[std::string(api)] > 1) return;
  }
  unsupported_.fetch_add(1);
  fb::UnsupportedT record;
  record.stamp = StampPtr();
  record.api = std::string(api);
  record.detail = std::string(detail);
  writer_->AppendObject(record);
  Log(LogLevel::kWarn, absl::StrCat(api, ": ", detail));
}

void Recorder::WriteRange(fb::RangeOp op, uint64_t domain, uint64_t id,
                          absl::string_view name) {
  if (!writes_work()) return;
  fb::RangeT record;
  record.stamp = StampPtr();
  record.op = op;
  record.name = std::string(name);
  record.domain = domain;
  record.id = id;
  writer_->AppendObject(record);
}

// A step begins before its range's mark and ends after it, so that both lie
// inside.
void Recorder::RangePush(uint64_t domain, absl::string_view name) {
  if (steps_.active()) steps_.OnRangePush(*this, name);
  WriteRange(fb::RangeOp::kPush, domain, 0, name);
}

void Recorder::RangePop(uint64_t domain) {
  WriteRange(fb::RangeOp::kPop, domain, 0, "");
  if (steps_.active()) steps_.OnRangePop(*this);
}

void Recorder::Note(int severity, std::string text) {
  fb::NoteT record;
  record.stamp = StampPtr();
  record.severity = severity;
  record.text = std::move(text);
  Log(severity > 0 ? LogLevel::kWarn : LogLevel::kInfo, record.text);
  writer_->AppendObject(record);
}

void Recorder::Finish(absl::string_view reason) {
  if (finished_.exchange(true)) return;
  current_.store(nullptr, std::memory_order_release);
  ClearHooks(interposer_);
  if (absl::Status error = writer_->error(); !error.ok()) {
    Log(LogLevel::kError,
        absl::StrCat("recording stopped early: ", error.message(),
                     "; the trace is readable up to there: ", writer_->path()));
  }
  fb::EndT end;
  end.unsupported = unsupported_.load();
  end.reason = std::string(reason);
  writer_->AppendObject(end);
  if (absl::Status s = writer_->Close(); !s.ok()) {
    Log(LogLevel::kError,
        absl::StrCat("closing ", writer_->path(), ": ", s.message()));
  }
}

void Recorder::Fail(absl::string_view what) {
  Log(LogLevel::kError,
      absl::StrCat("internal error, recording is off: ", what));
  try {
    Finish(what);
  } catch (...) {
    // Nothing more can be done for the trace; the program goes on.
  }
}

void Recorder::LeaveToParent() {
  current_.store(nullptr, std::memory_order_release);
  finished_ = true;
  writer_->Abandon();
  t_state = ThreadState();
  forked_from_.store(this, std::memory_order_relaxed);
}

Recorder* Recorder::StartInChild() {
  const Recorder* parent = forked_from_.exchange(nullptr);
  if (parent == nullptr) return current_.load(std::memory_order_acquire);
  try {
    RecordOptions options = parent->options_;
    if (absl::StatusOr<RecordOptions> fresh = OptionsFromEnvironment();
        fresh.ok()) {
      options = *std::move(fresh);  // %p is another now
    }
    if (options.trace_path == parent->options_.trace_path) {
      options.keep_existing = true;
    }
    absl::Status started = Start(options, parent->interposer_, parent->driver_);
    if (started.ok()) return current_.load(std::memory_order_acquire);
    Log(LogLevel::kError,
        absl::StrCat("not recording this child process: ", started.message()));
  } catch (const std::exception& error) {
    Log(LogLevel::kError, error.what());
  }
  ClearHooks(parent->interposer_);
  return nullptr;
}

}  // namespace heddle::record
