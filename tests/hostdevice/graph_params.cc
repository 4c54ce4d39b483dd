// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/graph_params.h"

#include <utility>

#include "tests/hostdevice/module.h"

namespace heddle::hostdevice {
namespace {

CUresult FindContext(CUcontext ctx, Context* current, Context** out) {
  *out = ctx == nullptr ? current : Device::Get().contexts.Find(ctx);
  return *out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

CUresult ToKernelWork(const CUDA_KERNEL_NODE_PARAMS_v2& params,
                      Context* context, KernelWork* out) {
  // A kernel is named as `func` or, if that is null, as `kern`.
  const void* handle = params.func != nullptr
                           ? static_cast<const void*>(params.func)
                           : static_cast<const void*>(params.kern);
  Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelWork work;
  work.attributes = out->attributes;
  if (params.func == nullptr) {
    HD_TRY(FindContext(params.ctx, context, &context));
  }
  if (function->library != nullptr) {
    work.kernel = reinterpret_cast<CUkernel>(function);
    function = function->function;
  }
  work.function = function;
  work.context = context;
  work.grid[0] = params.gridDimX;
  work.grid[1] = params.gridDimY;
  work.grid[2] = params.gridDimZ;
  work.block[0] = params.blockDimX;
  work.block[1] = params.blockDimY;
  work.block[2] = params.blockDimZ;
  work.shared_bytes = params.sharedMemBytes;
  HD_TRY(CheckKernel(work));
  HD_TRY(ReadParams(params.kernelParams, params.extra, &work));
  *out = std::move(work);
  out->BindViews();
  return CUDA_SUCCESS;
}

CUresult ToKernelWork(const CUDA_KERNEL_NODE_PARAMS_v1& params,
                      Context* context, KernelWork* out) {
  CUDA_KERNEL_NODE_PARAMS_v2 newer{};
  newer.func = params.func;
  newer.gridDimX = params.gridDimX;
  newer.gridDimY = params.gridDimY;
  newer.gridDimZ = params.gridDimZ;
  newer.blockDimX = params.blockDimX;
  newer.blockDimY = params.blockDimY;
  newer.blockDimZ = params.blockDimZ;
  newer.sharedMemBytes = params.sharedMemBytes;
  newer.kernelParams = params.kernelParams;
  newer.extra = params.extra;
  return ToKernelWork(newer, context, out);
}

CUresult ToCopyWork(const CUDA_MEMCPY3D& params, CUcontext ctx,
                    Context* context, CopyWork* out) {
  CopyWork work;
  HD_TRY(FindContext(ctx, context, &work.context));
  work.copy = params;
  HD_TRY(CheckCopy(work));
  *out = std::move(work);
  return CUDA_SUCCESS;
}

CUresult ToSetWork(const CUDA_MEMSET_NODE_PARAMS_v1& params, CUcontext ctx,
                   Context* context, SetWork* out) {
  SetWork work;
  HD_TRY(FindContext(ctx, context, &work.context));
  work.set = params;
  HD_TRY(CheckSet(work));
  *out = work;
  return CUDA_SUCCESS;
}

CUresult ToHostWork(const CUDA_HOST_NODE_PARAMS_v1& params, HostWork* out) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  out->host = params;
  return CUDA_SUCCESS;
}

CUresult CheckMemOps(unsigned count, const CUstreamBatchMemOpParams* ops) {
  if (count == 0 || count > 256 || ops == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Memory& memory = Device::Get().memory();
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& op = ops[i];
    uint64_t size = 0;
    switch (op.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        size = 4;
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        size = 8;
        break;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER:
        continue;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    // waitValue and writeValue share the place of the address.
    const CUdeviceptr address = op.waitValue.address;
    if (address % size != 0 || !memory.Contains(address, size)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

CUresult ToMemOpWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params,
                     Context* context, MemOpWork* out) {
  MemOpWork work;
  HD_TRY(FindContext(params.ctx, context, &work.context));
  HD_TRY(CheckMemOps(params.count, params.paramArray));
  work.ops.assign(params.paramArray, params.paramArray + params.count);
  work.flags = params.flags;
  *out = std::move(work);
  return CUDA_SUCCESS;
}

CUresult ToWork(const CUgraphNodeParams& params, Context* context, Work* out) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      kernel.func = params.kernel.func;
      kernel.gridDimX = params.kernel.gridDimX;
      kernel.gridDimY = params.kernel.gridDimY;
      kernel.gridDimZ = params.kernel.gridDimZ;
      kernel.blockDimX = params.kernel.blockDimX;
      kernel.blockDimY = params.kernel.blockDimY;
      kernel.blockDimZ = params.kernel.blockDimZ;
      kernel.sharedMemBytes = params.kernel.sharedMemBytes;
      kernel.kernelParams = params.kernel.kernelParams;
      kernel.extra = params.kernel.extra;
      kernel.kern = params.kernel.kern;
      kernel.ctx = params.kernel.ctx;
      KernelWork work;
      HD_TRY(ToKernelWork(kernel, context, &work));
      *out = std::move(work);
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CopyWork work;
      HD_TRY(ToCopyWork(params.memcpy.copyParams, params.memcpy.copyCtx,
                        context, &work));
      *out = std::move(work);
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS_v1 set{};
      set.dst = params.memset.dst;
      set.pitch = params.memset.pitch;
      set.value = params.memset.value;
      set.elementSize = params.memset.elementSize;
      set.width = params.memset.width;
      set.height = params.memset.height;
      SetWork work;
      HD_TRY(ToSetWork(set, params.memset.ctx, context, &work));
      *out = work;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      HostWork work;
      HD_TRY(ToHostWork({params.host.fn, params.host.userData}, &work));
      *out = work;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      const Graph* graph = FindGraph(params.graph.graph);
      if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *out = ChildWork{CloneGraph(*graph)};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *out = EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
      Event* event = Device::Get().events.Find(params.eventWait.event);
      if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *out = EventWaitWork{event};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
      Event* event = Device::Get().events.Find(params.eventRecord.event);
      if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *out = EventRecordWork{event};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      AllocWork work;
      work.alloc.poolProps = params.alloc.poolProps;
      work.alloc.bytesize = params.alloc.bytesize;
      HD_TRY(AllocateForGraph(context, &work));
      *out = std::move(work);
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      *out = FreeWork{params.free.dptr};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 mem_op{};
      mem_op.ctx = params.memOp.ctx;
      mem_op.count = params.memOp.count;
      mem_op.paramArray = params.memOp.paramArray;
      mem_op.flags = params.memOp.flags;
      MemOpWork work;
      HD_TRY(ToMemOpWork(mem_op, context, &work));
      *out = std::move(work);
      return CUDA_SUCCESS;
    }
    default:
      // External semaphores and conditional nodes.
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult Replace(Work work, GraphNode* node) {
  if (work.index() != node->work.index()) return CUDA_ERROR_INVALID_VALUE;
  if (auto* kernel = std::get_if<KernelWork>(&work)) {
    kernel->attributes = std::get<KernelWork>(node->work).attributes;
  }
  node->work = std::move(work);
  if (auto* kernel = std::get_if<KernelWork>(&node->work)) kernel->BindViews();
  if (auto* child = std::get_if<ChildWork>(&node->work)) {
    child->graph->parent = node;
  }
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
