// SPDX-License-Identifier: Apache-2.0
// User objects: reference counts of the program's own things, held by graphs.

#include "tests/hostdevice/user_object.h"

#include <map>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/graph.h"

namespace heddle::hostdevice {
namespace {

CUresult Drop(UserObject* object, unsigned count) {
  if (count == 0 || count > object->references) return CUDA_ERROR_INVALID_VALUE;
  object->references -= count;
  if (object->references > 0) return CUDA_SUCCESS;
  const CUhostFn destroy = object->destroy;
  void* data = object->data;
  Device::Get().user_objects.Delete(object);
  // The program's code, which must not call the driver.
  HostFunctionScope scope;
  destroy(data);
  return CUDA_SUCCESS;
}

}  // namespace

void ReleaseUserObjects(const std::map<UserObject*, unsigned>& held) {
  for (const auto& [object, count] : held) {
    if (Device::Get().user_objects.Find(object) != nullptr) {
      Drop(object, count);
    }
  }
}

HD_API(cuUserObjectCreate,
       (CUuserObject * object_out, void* ptr, CUhostFn destroy,
        unsigned int initialRefcount, unsigned int flags)) {
  HD_ENTER(kInit);
  if (object_out == nullptr || destroy == nullptr || initialRefcount == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  UserObject* object = Device::Get().user_objects.New();
  object->data = ptr;
  object->destroy = destroy;
  object->references = initialRefcount;
  *object_out = reinterpret_cast<CUuserObject>(object);
  return CUDA_SUCCESS;
}

HD_API(cuUserObjectRetain, (CUuserObject object, unsigned int count)) {
  HD_ENTER(kInit);
  UserObject* found = Device::Get().user_objects.Find(object);
  if (found == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  found->references += count;
  return CUDA_SUCCESS;
}

HD_API(cuUserObjectRelease, (CUuserObject object, unsigned int count)) {
  HD_ENTER(kInit);
  UserObject* found = Device::Get().user_objects.Find(object);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Drop(found, count);
}

HD_API(cuGraphRetainUserObject, (CUgraph graph, CUuserObject object,
                                 unsigned int count, unsigned int flags)) {
  HD_ENTER(kInit);
  Graph* found = FindGraph(graph);
  UserObject* user = Device::Get().user_objects.Find(object);
  if (found == nullptr || user == nullptr || count == 0 ||
      (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) user->references += count;
  found->user_objects[user] += count;
  return CUDA_SUCCESS;
}

HD_API(cuGraphReleaseUserObject,
       (CUgraph graph, CUuserObject object, unsigned int count)) {
  HD_ENTER(kInit);
  Graph* found = FindGraph(graph);
  UserObject* user = Device::Get().user_objects.Find(object);
  if (found == nullptr || user == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto it = found->user_objects.find(user);
  if (it == found->user_objects.end() || count == 0 || count > it->second) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  it->second -= count;
  if (it->second == 0) found->user_objects.erase(it);
  return Drop(user, count);
}

}  // namespace heddle::hostdevice
