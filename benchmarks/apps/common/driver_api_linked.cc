// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/common/driver_api.h"

namespace apps {

DriverApi DriverApi::Linked() {
  DriverApi api;
#define APPS_DRIVER_BIND(member, function, suffix) api.member = &::function;
  APPS_DRIVER_CALLS(APPS_DRIVER_BIND)
#undef APPS_DRIVER_BIND
  return api;
}

}  // namespace apps
