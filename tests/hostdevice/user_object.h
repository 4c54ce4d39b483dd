// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_USER_OBJECT_H_
#define HEDDLE_TESTS_HOSTDEVICE_USER_OBJECT_H_

#include <map>

#include "tests/hostdevice/api.h"

namespace heddle::hostdevice {

// What a CUuserObject points to.
struct UserObject {
  void* data = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};

// What a graph holds goes with it.
void ReleaseUserObjects(const std::map<UserObject*, unsigned>& held);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_USER_OBJECT_H_
