// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/golden/synthetic_trace.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "heddle/trace.h"
#include "runtime/trace/writer.h"

namespace heddle::tools {
namespace {

constexpr uint64_t kWeights = 0x7f0000000000;
constexpr uint64_t kActivations = 0x7f0001000000;
constexpr uint64_t kCache = 0x7f0002000000;
constexpr uint64_t kScratch = 0x7f0003000000;
constexpr uint64_t kPinned = 0x7e0000000000;
constexpr uint64_t kStream1 = 0x5500;
constexpr uint64_t kStream2 = 0x5600;
constexpr uint64_t kEvent1 = 0x6100;
constexpr uint64_t kEvent2 = 0x6200;
constexpr uint64_t kExec = 0x6700;
constexpr uint32_t kCudaKernelNode = 0;
constexpr uint32_t kCudaMemsetNode = 2;

enum KernelId : uint32_t {
  kEmbed = 1,
  kGemv = 2,
  kAttention = 3,
  kTmaGemm = 4,
  kHead = 5,
  kUnused = 6,
};

std::vector<uint8_t> Noise(size_t size, uint32_t seed) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = seed;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

template <typename... T>
std::vector<uint8_t> BytesOf(T... values) {
  std::vector<uint8_t> bytes((sizeof(T) + ... + 0));
  size_t at = 0;
  const auto store = [&](const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    at += sizeof(value);
  };
  (store(values), ...);
  return bytes;
}

class Synthesizer {
 public:
  Synthesizer(trace::Writer* writer, const SyntheticOptions& options)
      : writer_(*writer), options_(options) {}

  void Run() {
    Environment();
    Code();
    Memory();
    Streams();
    Graph();
    Prefill();
    for (uint32_t i = 0; i < options_.steps; ++i) DecodeStep(i);
    fb::UnsupportedT unsupported;
    unsupported.stamp = Now();
    unsupported.api = "cuIpcOpenMemHandle";
    unsupported.detail = "memory of another process";
    writer_.AppendObject(unsupported);
    fb::NoteT note;
    note.stamp = Now();
    note.severity = 1;
    note.text = "a note of the recorder";
    writer_.AppendObject(note);
  }

 private:
  uint64_t At(uint64_t address) const {
    return address + options_.address_base;
  }
  fb::Stamp Time() {
    time_ns_ += 1500;
    return fb::Stamp(time_ns_, thread_, 1);
  }
  std::unique_ptr<fb::Stamp> Now() {
    return std::make_unique<fb::Stamp>(Time());
  }
  static std::unique_ptr<fb::Hash128> Own(const trace::Hash128& hash) {
    return std::make_unique<fb::Hash128>(hash.lo, hash.hi);
  }

  void Environment() {
    fb::ProcessT process;
    process.pid = 4242;
    process.parent_pid = 4000;
    process.start_unix_ns = 1'750'000'000'000'000'000;
    process.command = {"python", "serve.py", "--batch", "1"};
    process.executable = "/usr/bin/python3.11";
    process.directory = "/home/user";
    process.host = "node7";
    process.driver_version = 13000;
    process.heddle_version = "0.1.0";
    process.options = "--memory=small --images=all";
    writer_.AppendObject(process);
    fb::DeviceT device;
    device.name = "Imaginary GPU";
    device.uuid = std::vector<uint8_t>(16, 0xab);
    device.total_memory = uint64_t{80} << 30;
    device.compute_major = 9;
    device.multiprocessors = 132;
    device.attributes = {fb::KeyValueU64(16, 0, 132)};
    writer_.AppendObject(device);
    fb::ContextT context;
    context.id = 1;
    context.handle = 0x1000;
    context.primary = true;
    writer_.AppendObject(context);
  }

  void Image(uint32_t id, bool stored, const std::string& origin) {
    const std::vector<uint8_t> bytes = Noise(3000, id);
    fb::ImageT image;
    image.id = id;
    image.kind = fb::ImageKind::kCubin;
    image.hash =
        Own(stored ? writer_.AppendBlob(bytes) : trace::HashBytes(bytes));
    image.size = bytes.size();
    image.stored = stored;
    image.origin = origin;
    writer_.AppendObject(image);
    fb::ModuleT module;
    module.stamp = Now();
    module.id = id;
    module.handle = 0x2000 + id;
    module.image = id;
    module.api = "cuModuleLoadData";
    writer_.AppendObject(module);
  }

  void Kernel(uint32_t id, const std::string& name, uint32_t module,
              std::vector<fb::ParamInfo> params) {
    fb::KernelT kernel;
    kernel.id = id;
    kernel.name = name;
    kernel.module_id = module;
    if (!params.empty()) {
      kernel.param_bytes = params.back().offset() + params.back().size();
    }
    kernel.params = std::move(params);
    kernel.handle = 0x3000 + id;
    kernel.attributes = {fb::KeyValueU64(4, 0, 32)};
    writer_.AppendObject(kernel);
  }

  void Code() {
    Image(1, true, "");
    Image(2, false, "/opt/lib/libgemm.so");
    Image(3, true, "");  // of the kernel that is never launched
    using P = fb::ParamInfo;
    Kernel(kEmbed, "_Z5embedPKfPfi", 1, {P(0, 8), P(8, 8), P(16, 4)});
    Kernel(kGemv, "_ZN2nn4gemvILi128EEEvPKfS2_Pfif", 1,
           {P(0, 8), P(8, 8), P(16, 8), P(24, 4), P(28, 4)});
    Kernel(kAttention, "_Z9attention4Args", 1, {P(0, 32)});
    Kernel(kTmaGemm, "tma_gemm", 2, {P(0, 128), P(128, 8)});
    Kernel(kHead, "_Z4headPKfPi", 1, {P(0, 8), P(8, 8)});
    Kernel(kUnused, "_Z6unusedv", 3, {});
    fb::KernelAttributeT attribute;
    attribute.stamp = Now();
    attribute.kernel = kTmaGemm;
    attribute.attribute = 8;
    attribute.value = 98304;
    attribute.api = "cuFuncSetAttribute";
    writer_.AppendObject(attribute);
    fb::GlobalT global;
    global.stamp = Now();
    global.module_id = 1;
    global.name = "lookup";
    global.address = At(0x7f00a0000000);
    global.size = 256;
    writer_.AppendObject(global);
  }

  void Alloc(uint64_t address, uint64_t size, fb::MemoryKind kind,
             const std::string& api, uint64_t stream = 0) {
    fb::AllocT alloc;
    alloc.stamp = Now();
    alloc.address = At(address);
    alloc.size = size;
    alloc.kind = kind;
    alloc.api = api;
    alloc.stream = stream;
    writer_.AppendObject(alloc);
  }

  void Memory() {
    Alloc(kWeights, 4 << 20, fb::MemoryKind::kDevice, "cuMemAlloc_v2");
    Alloc(kScratch, 1 << 20, fb::MemoryKind::kDevice, "cuMemAlloc_v2");
    fb::FreeT free;
    free.stamp = Now();
    free.address = At(kScratch);
    free.size = 1 << 20;
    free.api = "cuMemFree_v2";
    writer_.AppendObject(free);
    Alloc(kActivations, 64 << 10, fb::MemoryKind::kDevice, "cuMemAlloc_v2");
    Alloc(kCache, 256 << 10, fb::MemoryKind::kAsync, "cuMemAllocAsync",
          kStream1);
    Alloc(kPinned, 4096, fb::MemoryKind::kHost, "cuMemAllocHost_v2");
    fb::MemcpyT copy;
    copy.stamp = Now();
    copy.dst = At(kWeights);
    copy.src = 0x55550000;
    copy.width = 8192;
    copy.kind = fb::MemcpyKind::kHtoD;
    copy.data = Own(writer_.AppendBlob(Noise(8192, 77)));
    copy.api = "cuMemcpyHtoD_v2";
    writer_.AppendObject(copy);
    fb::TensorMapT map;
    map.stamp = Now();
    map.bytes = Noise(128, 5);
    map.data_type = 7;
    map.rank = 2;
    map.address = At(kWeights);
    map.dims = {128, 64};
    map.strides = {512};
    map.box = {32, 32};
    map.element_strides = {1, 1};
    writer_.AppendObject(map);
    map.bytes = Noise(128, 6);  // in no parameter
    writer_.AppendObject(map);
  }

  void Streams() {
    for (const uint64_t handle : {kStream1, kStream2}) {
      fb::StreamT stream;
      stream.stamp = Now();
      stream.handle = handle;
      stream.flags = 1;
      writer_.AppendObject(stream);
    }
    for (const uint64_t handle : {kEvent1, kEvent2}) {
      Event(fb::EventOp::kCreate, handle, 0);
    }
  }

  void Event(fb::EventOp op, uint64_t handle, uint64_t stream) {
    fb::EventT event;
    event.stamp = Now();
    event.op = op;
    event.handle = handle;
    event.stream = stream;
    writer_.AppendObject(event);
  }

  std::unique_ptr<fb::LaunchT> MakeLaunch(uint32_t kernel, uint32_t grid,
                                          uint64_t stream,
                                          std::vector<uint8_t> params) {
    auto launch = std::make_unique<fb::LaunchT>();
    launch->head = std::make_unique<fb::LaunchHead>(
        Time(), stream, kernel, fb::Dim3(grid, 1, 1), fb::Dim3(128, 1, 1),
        kernel == kTmaGemm ? 65536 : 0);
    launch->params = std::move(params);
    return launch;
  }
  void Launch(uint32_t kernel, uint32_t grid, uint64_t stream,
              std::vector<uint8_t> params, bool capturing = false) {
    auto launch = MakeLaunch(kernel, grid, stream, std::move(params));
    launch->capturing = capturing;
    writer_.AppendObject(*launch);
  }

  void Graph() {
    const auto params =
        BytesOf(At(kActivations), At(kActivations + 0x400), int32_t{0}, 0);
    Launch(kEmbed, 1, kStream1, params, /*capturing=*/true);
    fb::GraphT graph;
    graph.stamp = Now();
    graph.id = 1;
    graph.handle = 0x6600;
    for (int i = 0; i < 3; ++i) {
      auto node = std::make_unique<fb::GraphNodeT>();
      if (i == 1) {
        node->type = kCudaMemsetNode;
        node->memset = std::make_unique<fb::MemsetT>();
        node->memset->dst = At(kActivations);
        node->memset->element_size = 4;
        node->memset->width = 256;
      } else {
        node->type = kCudaKernelNode;
        node->launch = MakeLaunch(kEmbed, 1, 0, params);
      }
      graph.nodes.push_back(std::move(node));
    }
    graph.edges = {fb::GraphEdge(0, 1, 0, 0, 0, 0),
                   fb::GraphEdge(1, 2, 0, 0, 0, 0),
                   fb::GraphEdge(0, 2, 1, 0, 1, 0)};
    writer_.AppendObject(graph);
    fb::GraphExecT exec;
    exec.stamp = Now();
    exec.op = fb::GraphExecOp::kInstantiate;
    exec.handle = kExec;
    exec.graph = 1;
    exec.api = "cuGraphInstantiateWithFlags";
    writer_.AppendObject(exec);
    fb::GraphLaunchT launch;
    launch.stamp = Now();
    launch.exec = kExec;
    launch.graph = 1;
    launch.stream = kStream1;
    writer_.AppendObject(launch);
  }

  void Range(fb::RangeOp op, const std::string& name) {
    fb::RangeT range;
    range.stamp = Now();
    range.op = op;
    range.name = name;
    writer_.AppendObject(range);
  }

  void Prefill() {
    Range(fb::RangeOp::kPush, "prefill");
    for (uint32_t i = 0; i < 4; ++i) {
      Launch(kGemv, 512 + i, kStream1, GemvParams(i));
    }
    Range(fb::RangeOp::kPop, "");
  }

  std::vector<uint8_t> GemvParams(uint32_t layer) const {
    return BytesOf(At(kWeights + 0x1000 * layer), At(kActivations),
                   At(kActivations + 0x800), options_.layer_constant, 0.5F);
  }

  void DecodeStep(uint32_t index) {
    time_ns_ += 200'000;
    if (index == 2) {
      Mark(fb::StepOp::kBegin);
      Snapshot(1, fb::SnapshotWhen::kStepBegin);
    }
    Copy(fb::MemcpyKind::kHtoD, kActivations, kPinned, true);
    Launch(kEmbed, 4, kStream1,
           BytesOf(At(kWeights), At(kActivations),
                   static_cast<int32_t>(128 + index), 0));
    for (uint32_t layer = 0; layer < 3; ++layer) {
      Launch(kGemv, 64, kStream1, GemvParams(layer));
      Event(fb::EventOp::kRecord, kEvent1, kStream1);
      Event(fb::EventOp::kWait, kEvent1, kStream2);
      Launch(kAttention, 8, kStream2,
             BytesOf(At(kCache + 0x100 * index), At(kActivations + 0x800),
                     static_cast<int32_t>(128 + index), int32_t{64},
                     uint64_t{0x3ff0000000000000}));
      Event(fb::EventOp::kRecord, kEvent2, kStream2);
      Event(fb::EventOp::kWait, kEvent2, kStream1);
      std::vector<uint8_t> params = Noise(128, 5);
      const auto pointer = BytesOf(At(kActivations + 0x1000));
      params.insert(params.end(), pointer.begin(), pointer.end());
      Launch(kTmaGemm, 132, kStream1, std::move(params));
    }
    if (index == options_.extra_launch_in_step) {
      Launch(kEmbed, 9, kStream1,
             BytesOf(At(kWeights), At(kActivations), int32_t{0}, 0));
    }
    Launch(kHead, 1, kStream1,
           BytesOf(At(kActivations + 0x1000), At(kActivations + 0x2000)));
    Copy(fb::MemcpyKind::kDtoH, kPinned, kActivations + 0x2000, true);
    if (index == 2) Mark(fb::StepOp::kEnd);
    fb::SyncT sync;
    sync.stamp = Now();
    sync.op = fb::SyncOp::kStream;
    sync.handle = kStream1;
    writer_.AppendObject(sync);
    if (index == 2) Snapshot(2, fb::SnapshotWhen::kStepEnd);
  }

  void Copy(fb::MemcpyKind kind, uint64_t dst, uint64_t src, bool async) {
    fb::MemcpyT copy;
    copy.stamp = Now();
    copy.stream = kStream1;
    copy.dst = At(dst);
    copy.src = At(src);
    copy.width = 4;
    copy.kind = kind;
    copy.async = async;
    if (kind == fb::MemcpyKind::kHtoD) {
      copy.data = Own(writer_.AppendBlob(BytesOf(int32_t{99})));
    }
    copy.api = "cuMemcpyAsync";
    writer_.AppendObject(copy);
  }

  void Mark(fb::StepOp op) {
    fb::StepT step;
    step.stamp = Now();
    step.op = op;
    step.index = 2;
    step.source = "segment";
    writer_.AppendObject(step);
  }

  void Snapshot(uint32_t id, fb::SnapshotWhen when) {
    fb::SnapshotT snapshot;
    snapshot.stamp = Now();
    snapshot.id = id;
    snapshot.when = when;
    snapshot.step = 2;
    snapshot.policy = "small";
    snapshot.ranges = 3;
    writer_.AppendObject(snapshot);
    for (uint32_t i = 0; i < 3; ++i) {
      fb::MemoryRangeT range;
      range.snapshot = id;
      if (i == 0) {
        const std::vector<uint8_t> bytes = Noise(4096, 100 + id);
        range.address = At(kActivations);
        range.size = bytes.size();
        range.fill = fb::FillKind::kExact;
        range.hash = Own(writer_.AppendBlob(bytes));
      } else if (i == 1) {
        range.address = At(kCache);
        range.size = 256 << 10;
        range.fill = fb::FillKind::kZero;
      } else {
        range.address = At(kWeights);
        range.size = 4 << 20;
        range.fill = fb::FillKind::kDescribed;
        range.hash = Own(trace::HashBytes(Noise(16, 3)));
        range.likely = fb::ScalarType::kBF16;
        range.stddev = 0.02;
      }
      writer_.AppendObject(range);
    }
  }

  trace::Writer& writer_;
  const SyntheticOptions& options_;
  uint64_t time_ns_ = 0;
  uint32_t thread_ = 0;
};

}  // namespace

absl::Status WriteSyntheticTrace(const std::string& path,
                                 const SyntheticOptions& options) {
  trace::WriterOptions writer_options;
  writer_options.chunk_bytes = 256 << 10;
  trace::Header header;
  for (uint8_t i = 0; i < header.uuid.size(); ++i) header.uuid[i] = i;
  header.pid = 4242;
  header.start_unix_ns = 1'750'000'000'000'000'000;
  writer_options.source = header;
  auto writer = trace::Writer::Create(path, writer_options);
  if (!writer.ok()) return writer.status();
  Synthesizer(writer->get(), options).Run();
  if (!(*writer)->ok()) return (*writer)->error();
  if (!options.close) {
    // The file as a killed program leaves it.
    (*writer)->Abandon();
    return absl::OkStatus();
  }
  return (*writer)->Close();
}

}  // namespace heddle::tools
