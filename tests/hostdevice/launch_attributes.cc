// SPDX-License-Identifier: Apache-2.0
// Launch attributes that a kernel node keeps.

#include "tests/hostdevice/work.h"

namespace heddle::hostdevice {

CUresult SetKernelAttribute(const CUlaunchAttribute& attribute,
                            KernelWork* work) {
  KernelAttributes& kept = work->attributes;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      kept.access_window = attribute.value.accessPolicyWindow;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      kept.cooperative = attribute.value.cooperative;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& dim = attribute.value.clusterDim;
      // All zero means none.
      const bool none = dim.x == 0 && dim.y == 0 && dim.z == 0;
      if (!none && (dim.x == 0 || dim.y == 0 || dim.z == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      kept.cluster[0] = dim.x;
      kept.cluster[1] = dim.y;
      kept.cluster[2] = dim.z;
      return CUDA_SUCCESS;
    }
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      kept.cluster_policy = attribute.value.clusterSchedulingPolicyPreference;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      kept.priority = attribute.value.priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      kept.sync_domain_map = attribute.value.memSyncDomainMap;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      kept.sync_domain = attribute.value.memSyncDomain;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      kept.carveout = attribute.value.sharedMemCarveout;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult GetKernelAttribute(CUlaunchAttributeID id, const KernelWork& work,
                            CUlaunchAttributeValue* value) {
  const KernelAttributes& kept = work.attributes;
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow = kept.access_window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      value->cooperative = kept.cooperative;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      value->clusterDim.x = kept.cluster[0];
      value->clusterDim.y = kept.cluster[1];
      value->clusterDim.z = kept.cluster[2];
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      value->clusterSchedulingPolicyPreference =
          static_cast<CUclusterSchedulingPolicy>(kept.cluster_policy);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = kept.priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap = kept.sync_domain_map;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = kept.sync_domain;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value->sharedMemCarveout = kept.carveout;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace heddle::hostdevice
