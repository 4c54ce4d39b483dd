// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_DEVICE_H_
#define HEDDLE_TESTS_HOSTDEVICE_DEVICE_H_

// The one simulated device of a process, its contexts, and the lock that guards
// all state of this library.

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/memory.h"
#include "tests/hostdevice/scheduler.h"

namespace heddle::hostdevice {

struct Stream;
struct Event;
struct Module;
struct Library;
struct Function;
struct Graph;
struct GraphExec;
struct MemoryPool;
struct UserObject;

// What CUcontext points to.
struct Context {
  uint64_t id = 0;
  bool primary = false;
  unsigned flags = 0;
  // The default streams. They are in streams, too.
  Stream* legacy = nullptr;
  std::set<Stream*> streams;
  std::set<Module*> modules;
};

// Objects of one kind that handles point to: tells a live handle from any other
// pointer, and owns.
template <typename T>
class HandleTable {
 public:
  T* Add(std::unique_ptr<T> object) {
    T* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  T* New() { return Add(std::make_unique<T>()); }
  // The object, or nullptr if the handle is none of ours.
  template <typename Handle>
  T* Find(Handle handle) const {
    T* object = reinterpret_cast<T*>(handle);
    return objects_.count(object) != 0 ? object : nullptr;
  }
  void Delete(T* object) { objects_.erase(object); }
  std::vector<T*> All() const {
    std::vector<T*> all;
    for (const auto& [handle, object] : objects_) all.push_back(handle);
    return all;
  }

 private:
  std::unordered_map<T*, std::unique_ptr<T>> objects_;
};

class Device {
 public:
  // Guards everything below and every object that handles point to. Program
  // code (host functions, callbacks) runs without it.
  static std::mutex& mutex();
  static Device& Get();

  bool initialized = false;
  Scheduler& scheduler() { return scheduler_; }
  Memory& memory() { return memory_; }

  // The primary context, made when first retained.
  Context* primary = nullptr;
  int primary_references = 0;
  unsigned primary_flags = 0;

  HandleTable<Context> contexts;
  HandleTable<Stream> streams;
  HandleTable<Event> events;
  HandleTable<Module> modules;
  HandleTable<Library> libraries;
  HandleTable<Function> functions;
  HandleTable<Graph> graphs;
  HandleTable<GraphExec> graph_execs;
  HandleTable<MemoryPool> pools;
  HandleTable<UserObject> user_objects;

  uint64_t NewId() { return next_id_++; }

  Context* NewContext(bool primary, unsigned flags);
  // Waits for nothing: what is left running is dropped.
  void DestroyContext(Context* context);

 private:
  Device();

  uint64_t next_id_ = 1;
  Scheduler scheduler_;
  Memory memory_;
};

// The contexts of the calling thread, current one last.
std::vector<Context*>& ContextStack();

// Held during every call: takes the lock and checks what nearly every function
// of the driver checks first.
class ApiCall {
 public:
  enum class Needs : uint8_t {
    kNothing,
    kInit,     // else CUDA_ERROR_NOT_INITIALIZED
    kContext,  // a current context and a device without a sticky error
  };
  explicit ApiCall(Needs needs);

  CUresult result() const { return result_; }
  Context* context() const { return context_; }

 private:
  std::unique_lock<std::mutex> lock_;
  CUresult result_ = CUDA_SUCCESS;
  Context* context_ = nullptr;
};

// While one exists, calls of this thread fail with CUDA_ERROR_NOT_PERMITTED: it
// runs a host function, which must not use the driver.
class HostFunctionScope {
 public:
  HostFunctionScope();
  ~HostFunctionScope();
  HostFunctionScope(const HostFunctionScope&) = delete;
  HostFunctionScope& operator=(const HostFunctionScope&) = delete;
};

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_DEVICE_H_
