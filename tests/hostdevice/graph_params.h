// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_GRAPH_PARAMS_H_
#define HEDDLE_TESTS_HOSTDEVICE_GRAPH_PARAMS_H_

// From the driver's parameter structs to Work and back, shared by nodes of
// graphs and of executable graphs. All check what the driver checks; errors
// leave *out alone.

#include "tests/hostdevice/graph.h"

namespace heddle::hostdevice {

CUresult ToKernelWork(const CUDA_KERNEL_NODE_PARAMS_v2& params,
                      Context* context, KernelWork* out);
CUresult ToKernelWork(const CUDA_KERNEL_NODE_PARAMS_v1& params,
                      Context* context, KernelWork* out);
CUresult ToCopyWork(const CUDA_MEMCPY3D& params, CUcontext ctx,
                    Context* context, CopyWork* out);
CUresult ToSetWork(const CUDA_MEMSET_NODE_PARAMS_v1& params, CUcontext ctx,
                   Context* context, SetWork* out);
CUresult ToHostWork(const CUDA_HOST_NODE_PARAMS_v1& params, HostWork* out);
CUresult ToMemOpWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params,
                     Context* context, MemOpWork* out);
CUresult CheckMemOps(unsigned count, const CUstreamBatchMemOpParams* ops);

// The generic struct of cuGraphAddNode.
CUresult ToWork(const CUgraphNodeParams& params, Context* context, Work* out);

// Puts new parameters in place of a node's, keeping its attributes.
// CUDA_ERROR_INVALID_VALUE if the kinds differ.
CUresult Replace(Work work, GraphNode* node);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_GRAPH_PARAMS_H_
