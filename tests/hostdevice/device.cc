// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/device.h"

#include <algorithm>
#include <cstdlib>

#include "tests/hostdevice/graph.h"
#include "tests/hostdevice/memory_pool.h"
#include "tests/hostdevice/module.h"
#include "tests/hostdevice/stream.h"
#include "tests/hostdevice/user_object.h"

namespace heddle::hostdevice {
namespace {

uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return otherwise;
  return std::strtoull(text, nullptr, 0);
}

int CountFromEnvironment(const char* name, int otherwise) {
  const uint64_t value =
      NumberFromEnvironment(name, static_cast<uint64_t>(otherwise));
  return static_cast<int>(std::clamp<uint64_t>(value, 1, 1024));
}

thread_local int host_function_depth = 0;

}  // namespace

std::mutex& Device::mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

Device& Device::Get() {
  // Never destroyed: other threads, exit handlers and destructors of the
  // program may still call.
  static Device& device = *new Device;
  return device;
}

Device::Device()
    : scheduler_(NumberFromEnvironment("HEDDLE_HOSTDEVICE_SEED", 1),
                 CountFromEnvironment("HEDDLE_HOSTDEVICE_SMS", 4),
                 CountFromEnvironment("HEDDLE_HOSTDEVICE_BLOCKS_PER_SM", 2)),
      memory_(NumberFromEnvironment("HEDDLE_HOSTDEVICE_SEED", 1)) {}

Context* Device::NewContext(bool primary, unsigned flags) {
  Context* context = contexts.New();
  context->id = NewId();
  context->primary = primary;
  context->flags = flags;
  return context;
}

void Device::DestroyContext(Context* context) {
  // Work that is still queued may use what goes now.
  if (scheduler_.sticky() != CUDA_SUCCESS ||
      scheduler_.WaitAll() != CUDA_SUCCESS) {
    scheduler_.Reset();
  }
  const std::set<Module*> context_modules = context->modules;
  for (Module* module : context_modules) UnloadModule(module);
  for (Event* event : events.All()) {
    if (event->context == context) events.Delete(event);
  }
  const std::set<Stream*> context_streams = context->streams;
  for (Stream* stream : context_streams) streams.Delete(stream);
  memory_.FreeAll(context);
  std::vector<Context*>& stack = ContextStack();
  stack.erase(std::remove(stack.begin(), stack.end(), context), stack.end());
  if (context == primary) {
    primary = nullptr;
    primary_references = 0;
  }
  contexts.Delete(context);
}

std::vector<Context*>& ContextStack() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

ApiCall::ApiCall(Needs needs) : lock_(Device::mutex(), std::defer_lock) {
  if (host_function_depth > 0) {
    result_ = CUDA_ERROR_NOT_PERMITTED;
    return;
  }
  lock_.lock();
  if (needs == Needs::kNothing) return;
  Device& device = Device::Get();
  if (!device.initialized) {
    result_ = CUDA_ERROR_NOT_INITIALIZED;
    return;
  }
  if (!ContextStack().empty()) {
    context_ = device.contexts.Find(ContextStack().back());
  }
  if (needs == Needs::kInit) return;
  if (ContextStack().empty() || ContextStack().back() == nullptr) {
    result_ = CUDA_ERROR_INVALID_CONTEXT;
  } else if (context_ == nullptr) {
    result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else {
    result_ = device.scheduler().sticky();
  }
}

HostFunctionScope::HostFunctionScope() { ++host_function_depth; }
HostFunctionScope::~HostFunctionScope() { --host_function_depth; }

}  // namespace heddle::hostdevice
