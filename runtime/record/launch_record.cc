// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/launch_record.h"

#include <algorithm>
#include <cstring>

namespace heddle::record {
namespace {

fb::LaunchHead MakeHead(const fb::Stamp& stamp, const LaunchCall& call,
                        uint32_t kernel) {
  return fb::LaunchHead(
      stamp, Recorder::StreamId(call.stream, call.per_thread), kernel,
      fb::Dim3(call.grid[0], call.grid[1], call.grid[2]),
      fb::Dim3(call.block[0], call.block[1], call.block[2]), call.shared_bytes);
}

std::vector<fb::LaunchAttribute> CopyAttributes(const LaunchCall& call) {
  std::vector<fb::LaunchAttribute> attributes;
  for (uint32_t i = 0; i < call.attribute_count; ++i) {
    uint8_t value[64] = {};
    static_assert(sizeof(call.attributes[i].value) <= sizeof(value));
    std::memcpy(value, &call.attributes[i].value,
                sizeof(call.attributes[i].value));
    attributes.emplace_back(static_cast<uint32_t>(call.attributes[i].id), 0,
                            flatbuffers::make_span(value));
  }
  return attributes;
}

void RecordSlow(Recorder& recorder, const LaunchCall& call,
                const KernelInfo* info, bool capturing, CUresult result) {
  std::unique_ptr<fb::LaunchT> launch = MakeLaunch(recorder, call);
  launch->capturing = capturing;
  launch->status = static_cast<int>(result);
  if (info == nullptr) launch->params.clear();
  recorder.writer().AppendObject(*launch);
}

// Writes the finished payload of a plain launch to `record`.
void FillRecord(Recorder& recorder, const LaunchCall& call,
                const KernelInfo& info, const fb::LaunchHead& head,
                uint8_t* record) {
  std::memcpy(record, info.launch_template.data(), info.launch_template.size());
  std::memcpy(record + info.head_offset, &head, sizeof(head));
  uint8_t* block = record + info.params_offset;
  CopyParams(info, call.params, call.extra, block);
  if (recorder.memory().collects_pointers()) {
    recorder.memory().CollectPointers(
        absl::MakeConstSpan(block, info.param_bytes));
  }
}

}  // namespace

bool CopyParams(const KernelInfo& info, void** params, void** extra,
                uint8_t* block) {
  if (info.param_bytes == 0) return true;
  if (params != nullptr) {
    for (size_t i = 0; i < info.params.size(); ++i) {
      const fb::ParamInfo& param = info.params[i];
      // Most parameters are pointers and 32-bit numbers: constant sizes let the
      // compiler copy them with one move.
      if (param.size() == 8) {
        std::memcpy(block + param.offset(), params[i], 8);
      } else if (param.size() == 4) {
        std::memcpy(block + param.offset(), params[i], 4);
      } else {
        std::memcpy(block + param.offset(), params[i], param.size());
      }
    }
    return true;
  }
  if (extra == nullptr) return false;
  const void* buffer = nullptr;
  size_t size = 0;
  for (void** entry = extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
    if (entry[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = entry[1];
    } else if (entry[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const size_t*>(entry[1]);
    }
  }
  if (buffer == nullptr) return false;
  std::memcpy(block, buffer, std::min<size_t>(size, info.param_bytes));
  return true;
}

std::unique_ptr<fb::LaunchT> MakeLaunch(Recorder& recorder,
                                        const LaunchCall& call) {
  auto launch = std::make_unique<fb::LaunchT>();
  const KernelInfo* info = recorder.kernels().Find(recorder, call.function);
  launch->head = std::make_unique<fb::LaunchHead>(
      MakeHead(recorder.Stamp(), call, info == nullptr ? 0 : info->id));
  launch->cooperative = call.cooperative;
  launch->attributes = CopyAttributes(call);
  if (info != nullptr) {
    launch->params.resize(info->param_bytes);
    if (!CopyParams(*info, call.params, call.extra, launch->params.data())) {
      launch->params.clear();
    }
  }
  return launch;
}

void RecordLaunch(Recorder& recorder, const LaunchCall& call, CUresult result) {
  if (result == CUDA_SUCCESS && recorder.steps().active()) {
    recorder.steps().OnLaunch(reinterpret_cast<uint64_t>(call.function));
  }
  const bool collect = recorder.memory().collects_pointers();
  if (!recorder.writes_work() && !collect) return;
  if (recorder.writes_work()) recorder.writer().PrepareAppend();
  const bool capturing = recorder.IsCapturing(call.stream, call.per_thread);
  if (result != CUDA_SUCCESS) {
    // Asking the driver about a kernel that may not be loaded could load it.
    if (recorder.writes_work()) {
      fb::LaunchT launch;
      launch.head = std::make_unique<fb::LaunchHead>(
          MakeHead(recorder.Stamp(), call,
                   recorder.kernels().KnownId(
                       reinterpret_cast<uint64_t>(call.function))));
      launch.capturing = capturing;
      launch.status = static_cast<int>(result);
      recorder.writer().AppendObject(launch);
    }
    return;
  }
  const KernelInfo* info = recorder.kernels().Find(recorder, call.function);
  if (info == nullptr) return;
  if (!recorder.writes_work()) {
    if (collect) {
      thread_local std::vector<uint8_t> block;
      block.assign(info->param_bytes, 0);
      if (CopyParams(*info, call.params, call.extra, block.data())) {
        recorder.memory().CollectPointers(block);
      }
    }
    return;
  }
  const bool plain = !capturing && call.attribute_count == 0 &&
                     !call.cooperative &&
                     (call.params != nullptr || info->param_bytes == 0);
  if (!plain) {
    RecordSlow(recorder, call, info, capturing, result);
    return;
  }
  // Read the clock before reserving: between Reserve and Commit nothing waits.
  const fb::LaunchHead head = MakeHead(recorder.Stamp(), call, info->id);
  const size_t size = info->launch_template.size();
  // Nearly all: put together where it is in the cache, and written in one go.
  alignas(64) uint8_t local[1024];
  if (size <= sizeof(local)) {
    FillRecord(recorder, call, *info, head, local);
    recorder.writer().Append(fb::RecordType::kLaunch,
                             absl::MakeConstSpan(local, size));
    return;
  }
  uint8_t* record = recorder.writer().Reserve(static_cast<uint32_t>(size));
  if (record == nullptr) return;
  FillRecord(recorder, call, *info, head, record);
  recorder.writer().Commit(record, fb::RecordType::kLaunch,
                           static_cast<uint32_t>(size));
}

}  // namespace heddle::record
