// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_WORK_H_
#define HEDDLE_TESTS_HOSTDEVICE_WORK_H_

// What a stream operation or a graph node does, apart from when: the same
// descriptions serve a direct submission, a captured node and a node that was
// added by hand.

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/scheduler.h"

namespace heddle::hostdevice {

struct Context;
struct Event;
struct Function;
struct Graph;

// Launch attributes that a graph node keeps. Zeros are the defaults.
struct KernelAttributes {
  int cooperative = 0;
  int priority = 0;
  uint32_t cluster[3] = {0, 0, 0};
  int cluster_policy = 0;
  CUaccessPolicyWindow access_window{};
  CUlaunchMemSyncDomain sync_domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
  CUlaunchMemSyncDomainMap sync_domain_map{0, 1};
  uint32_t carveout = static_cast<uint32_t>(-1);
};

struct KernelWork {
  Function* function = nullptr;
  CUkernel kernel = nullptr;  // set instead where the program named a CUkernel
  Context* context = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  // The parameters, each at its offset: a copy that this object owns.
  std::vector<uint8_t> params;
  // The program passed one buffer through `extra`, not kernelParams.
  bool via_extra = false;
  KernelAttributes attributes;

  // What Get*Params return: pointers into this object, rebuilt by BindViews
  // after each copy or change.
  std::vector<void*> param_pointers;
  size_t extra_size = 0;
  void* extra[5] = {};
  void BindViews();
};

// Copies in all their forms come down to this one.
struct CopyWork {
  CUDA_MEMCPY3D copy{};
  Context* context = nullptr;
  // A linear copy keeps its form in the driver's answers (Height = Depth = 1).
  // A source that was copied when the call was made: pageable host memory.
  std::shared_ptr<std::vector<uint8_t>> staging;
  uint64_t Bytes() const {
    return uint64_t{copy.WidthInBytes} * copy.Height * copy.Depth;
  }
};

struct SetWork {
  CUDA_MEMSET_NODE_PARAMS_v1 set{};
  Context* context = nullptr;
};

struct HostWork {
  CUDA_HOST_NODE_PARAMS_v1 host{};
  // cuStreamAddCallback instead of a host function.
  CUstreamCallback callback = nullptr;
  CUstream callback_stream = nullptr;
};

struct EmptyWork {};
struct EventRecordWork {
  Event* event = nullptr;
};
struct EventWaitWork {
  Event* event = nullptr;
};
struct MemOpWork {
  std::vector<CUstreamBatchMemOpParams> ops;
  Context* context = nullptr;
  unsigned flags = 0;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;  // its own copy
};
struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 alloc{};
  // Holds the address for the graph and its copies.
  std::shared_ptr<void> holder;
};
struct FreeWork {
  CUdeviceptr address = 0;
};

using Work = std::variant<KernelWork, CopyWork, SetWork, HostWork, EmptyWork,
                          EventRecordWork, EventWaitWork, MemOpWork, ChildWork,
                          AllocWork, FreeWork>;

// Checks against the device as it is now.
CUresult CheckKernel(const KernelWork& work);
CUresult CheckCopy(const CopyWork& work);
CUresult CheckSet(const SetWork& work);

// Reads `kernelParams` or `extra` of a launch into work->params.
// CUDA_ERROR_INVALID_VALUE if neither fits the function.
CUresult ReadParams(void** kernel_params, void** extra, KernelWork* work);

// Makes *work a node's allocation of alloc.bytesize bytes.
CUresult AllocateForGraph(Context* context, AllocWork* work);

// Applies one launch attribute to what a node keeps; CUDA_ERROR_NOT_SUPPORTED
// for one that is unknown or means nothing on a node.
CUresult SetKernelAttribute(const CUlaunchAttribute& attribute,
                            KernelWork* work);
CUresult GetKernelAttribute(CUlaunchAttributeID id, const KernelWork& work,
                            CUlaunchAttributeValue* value);

// The operation that does `work`, without dependencies. CUDA_ERROR_NOT_FOUND
// (and a line on standard error) for a kernel without a host function. Not for
// ChildWork and events, which graph launches expand.
CUresult MakeOp(const Work& work, std::shared_ptr<Op>* out);

// The bytes that the copy would read now, packed.
std::shared_ptr<std::vector<uint8_t>> StageSource(const CopyWork& work);

// Executes a copy or a fill now.
void RunCopy(const CopyWork& work);
void RunSet(const SetWork& work);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_WORK_H_
