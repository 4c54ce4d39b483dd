// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/work.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/hostdevice/device.h"
#include "tests/hostdevice/memory_pool.h"
#include "tests/hostdevice/module.h"
#include "tests/hostdevice/stream.h"

namespace heddle::hostdevice {
namespace {

constexpr uint64_t kCopyNs = 1000;
constexpr uint64_t kCopyBytesPerNs = 100;
constexpr uint64_t kHostFunctionNs = 1000;

CUresult MakeKernelOp(const KernelWork& work, std::shared_ptr<Op>* out) {
  HeddleHostKernelFn body = FindBody(work.function);
  if (body == nullptr) return CUDA_ERROR_NOT_FOUND;
  auto op = std::make_shared<Op>();
  op->grid = std::make_unique<Grid>();
  Grid& grid = *op->grid;
  grid.function = body;
  grid.prologue = work.function->prologue;
  std::copy_n(work.grid, 3, grid.grid);
  std::copy_n(work.block, 3, grid.block);
  grid.shared_bytes = work.shared_bytes;
  grid.cost =
      CostOfBlock(work.function->kernel,
                  uint64_t{work.block[0]} * work.block[1] * work.block[2],
                  work.shared_bytes);
  grid.cooperative = work.attributes.cooperative != 0;
  grid.params = work.params;
  for (const cubin::KernelParam& param : work.function->kernel.params) {
    grid.param_pointers.push_back(grid.params.data() + param.offset);
  }
  op->activity.kind = HEDDLE_HOST_DEVICE_KERNEL;
  op->activity.name = work.function->name;
  std::copy_n(work.grid, 3, op->activity.grid);
  std::copy_n(work.block, 3, op->activity.block);
  *out = std::move(op);
  return CUDA_SUCCESS;
}

std::shared_ptr<Op> MakeSimpleOp(uint32_t kind, const char* name,
                                 uint64_t cost_ns,
                                 std::function<void()> action) {
  auto op = std::make_shared<Op>();
  op->activity.kind = kind;
  op->activity.name = name;
  op->cost_ns = cost_ns;
  op->action = std::move(action);
  return op;
}

uint64_t LoadValue(CUdeviceptr address, bool wide) {
  // The program's threads may write the value meanwhile.
  if (wide) {
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(address),
                           __ATOMIC_ACQUIRE);
  }
  return __atomic_load_n(reinterpret_cast<const uint32_t*>(address),
                         __ATOMIC_ACQUIRE);
}

bool WaitIsOver(const CUstreamBatchMemOpParams& params) {
  const bool wide = params.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  const uint64_t value = LoadValue(params.waitValue.address, wide);
  const uint64_t wanted =
      wide ? params.waitValue.value64 : params.waitValue.value;
  const uint64_t mask = wide ? UINT64_MAX : UINT32_MAX;
  switch (params.waitValue.flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      // Cyclic: the sign of the difference.
      return wide ? static_cast<int64_t>(value - wanted) >= 0
                  : static_cast<int32_t>(value - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return value == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (value & wanted) != 0;
    default:  // CU_STREAM_WAIT_VALUE_NOR
      return (~(value | wanted) & mask) != 0;
  }
}

std::shared_ptr<Op> MakeMemOp(const MemOpWork& work) {
  auto op = std::make_shared<Op>();
  op->activity.name = "memory operations";
  // They happen in order: the waits first, as far as one operation can tell.
  const auto ops =
      std::make_shared<std::vector<CUstreamBatchMemOpParams>>(work.ops);
  const auto is_wait = [](const CUstreamBatchMemOpParams& params) {
    return params.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
           params.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  };
  if (std::any_of(ops->begin(), ops->end(), is_wait)) {
    op->ready_when = [ops, is_wait] {
      return std::all_of(ops->begin(), ops->end(), [&](const auto& params) {
        return !is_wait(params) || WaitIsOver(params);
      });
    };
  }
  op->action = [ops] {
    for (const CUstreamBatchMemOpParams& params : *ops) {
      if (params.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
        __atomic_store_n(reinterpret_cast<uint32_t*>(params.writeValue.address),
                         params.writeValue.value, __ATOMIC_RELEASE);
      } else if (params.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) {
        __atomic_store_n(reinterpret_cast<uint64_t*>(params.writeValue.address),
                         params.writeValue.value64, __ATOMIC_RELEASE);
      }
    }
  };
  return op;
}

std::shared_ptr<Op> MakeHostOp(const HostWork& work) {
  std::function<void()> action;
  if (work.callback != nullptr) {
    action = [work] {
      work.callback(work.callback_stream, CUDA_SUCCESS, work.host.userData);
    };
  } else {
    action = [work] { work.host.fn(work.host.userData); };
  }
  auto op = MakeSimpleOp(HEDDLE_HOST_DEVICE_HOST_FUNCTION, "host function",
                         kHostFunctionNs, std::move(action));
  op->host_function = true;
  return op;
}

}  // namespace

void KernelWork::BindViews() {
  param_pointers.clear();
  if (!via_extra && function != nullptr) {
    for (const cubin::KernelParam& param : function->kernel.params) {
      param_pointers.push_back(params.data() + param.offset);
    }
  }
  extra_size = params.size();
  extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
  extra[1] = params.data();
  extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
  extra[3] = &extra_size;
  extra[4] = CU_LAUNCH_PARAM_END;
}

CUresult ReadParams(void** kernel_params, void** extra, KernelWork* work) {
  const cubin::Kernel& kernel = work->function->kernel;
  work->params.assign(kernel.param_size, 0);
  work->via_extra = false;
  if (extra != nullptr && *extra != CU_LAUNCH_PARAM_END) {
    if (kernel_params != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const void* buffer = nullptr;
    size_t size = 0;
    bool has_size = false;
    for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
      if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = at[1];
      } else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE) {
        // A pointer to the size, not the size.
        if (at[1] == nullptr) return CUDA_ERROR_INVALID_VALUE;
        size = *static_cast<const size_t*>(at[1]);
        has_size = true;
      } else {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    if (buffer == nullptr || !has_size || size < kernel.param_size) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::memcpy(work->params.data(), buffer, kernel.param_size);
    work->via_extra = true;
    return CUDA_SUCCESS;
  }
  if (kernel.params.empty()) return CUDA_SUCCESS;
  if (kernel_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    if (kernel_params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(work->params.data() + kernel.params[i].offset, kernel_params[i],
                kernel.params[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult CheckKernel(const KernelWork& work) {
  const Function& function = *work.function;
  uint64_t threads = 1;
  uint64_t blocks = 1;
  for (int i = 0; i < 3; ++i) {
    if (work.grid[i] == 0 || work.block[i] == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    threads *= work.block[i];
    blocks *= work.grid[i];
  }
  const uint32_t max_threads =
      function.kernel.max_threads != 0 ? function.kernel.max_threads : 1024;
  if (work.block[0] > 1024 || work.block[1] > 1024 || work.block[2] > 64 ||
      threads > max_threads || work.grid[0] > 2147483647u ||
      work.grid[1] > 65535 || work.grid[2] > 65535) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (blocks > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (work.shared_bytes > static_cast<uint32_t>(function.max_dynamic_shared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t cluster_blocks = 1;
  for (int i = 0; i < 3; ++i) {
    const uint32_t size = work.attributes.cluster[0] != 0
                              ? work.attributes.cluster[i]
                              : function.kernel.cluster[i];
    if (size == 0) continue;
    cluster_blocks *= size;
    if (work.grid[i] % size != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  if (cluster_blocks > (function.nonportable_cluster != 0 ? 16u : 8u)) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  const Scheduler& scheduler = Device::Get().scheduler();
  const uint64_t resident = scheduler.ResidentBlocks(
      CostOfBlock(function.kernel, threads, work.shared_bytes));
  if (resident == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (work.attributes.cooperative != 0 &&
      blocks > static_cast<uint64_t>(scheduler.multiprocessors()) * resident) {
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

CUresult MakeOp(const Work& work, std::shared_ptr<Op>* out) {
  if (const auto* kernel = std::get_if<KernelWork>(&work)) {
    return MakeKernelOp(*kernel, out);
  }
  if (const auto* copy = std::get_if<CopyWork>(&work)) {
    const uint64_t bytes = copy->Bytes();
    *out = MakeSimpleOp(HEDDLE_HOST_DEVICE_MEMCPY, "memcpy",
                        kCopyNs + bytes / kCopyBytesPerNs,
                        [copy = *copy] { RunCopy(copy); });
    (*out)->activity.bytes = bytes;
  } else if (const auto* set = std::get_if<SetWork>(&work)) {
    const uint64_t bytes =
        uint64_t{set->set.width} * set->set.height * set->set.elementSize;
    *out = MakeSimpleOp(HEDDLE_HOST_DEVICE_MEMSET, "memset",
                        kCopyNs + bytes / kCopyBytesPerNs,
                        [set = *set] { RunSet(set); });
    (*out)->activity.bytes = bytes;
  } else if (const auto* host = std::get_if<HostWork>(&work)) {
    *out = MakeHostOp(*host);
  } else if (const auto* mem_op = std::get_if<MemOpWork>(&work)) {
    *out = MakeMemOp(*mem_op);
  } else if (const auto* alloc = std::get_if<AllocWork>(&work)) {
    *out = MakeSimpleOp(0, "allocation", 0, [alloc = *alloc] {
      Device::Get().memory().Fill(alloc.alloc.dptr, alloc.alloc.bytesize);
    });
  } else if (const auto* free = std::get_if<FreeWork>(&work)) {
    *out = MakeSimpleOp(0, "free", 0,
                        [address = free->address] { FreeNow(address, 0); });
  } else {
    *out = MakeSimpleOp(0, "empty", 0, nullptr);
  }
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
