// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/replay/executor.h"
#include "runtime/replay/launcher.h"

namespace heddle::replay {
namespace {

class SerialExecutor : public Executor {
 public:
  SerialExecutor(const device::Driver& driver, const BoundProgram& program)
      : driver_(driver), program_(program) {}
  ~SerialExecutor() override {
    for (CUstream stream : streams_) {
      driver_.StreamSynchronize(stream);
      driver_.StreamDestroy(stream);
    }
    for (CUevent event : events_) driver_.EventDestroy(event);
  }

  absl::Status Init();
  const char* name() const override { return "serial"; }
  CUstream stream() const override { return streams_[0]; }
  absl::Status Run() override;

 private:
  struct Action {
    std::vector<CUevent> waits;  // before the operation, in its lane
    CUevent done = nullptr;      // recorded after it, if another lane waits
    bool early = false;
  };

  absl::StatusOr<CUevent> NewEvent();
  absl::Status Record(CUevent event, CUstream stream) {
    return driver_.Check(driver_.EventRecord(event, stream), "cuEventRecord");
  }
  absl::Status Wait(CUevent event, CUstream stream) {
    return driver_.Check(driver_.StreamWaitEvent(stream, event, 0),
                         "cuStreamWaitEvent");
  }

  const device::Driver& driver_;
  const BoundProgram& program_;
  std::vector<CUstream> streams_;  // by lane
  std::vector<CUevent> events_;
  std::vector<Action> actions_;  // by operation
  CUevent begin_ = nullptr;
  std::vector<CUevent> ends_;  // of lanes 1..
};

absl::StatusOr<CUevent> SerialExecutor::NewEvent() {
  CUevent event = nullptr;
  if (absl::Status s =
          driver_.Check(driver_.EventCreate(&event, CU_EVENT_DISABLE_TIMING),
                        "cuEventCreate");
      !s.ok()) {
    return s;
  }
  events_.push_back(event);
  return event;
}

absl::Status SerialExecutor::Init() {
  const OperationList& step = program_.step();
  const size_t lanes = std::max<size_t>(1, step.lanes.size());
  for (size_t i = 0; i < lanes; ++i) {
    const int priority = i < step.lanes.size() ? step.lanes[i].priority : 0;
    CUstream stream = nullptr;
    // Non-blocking: the legacy stream's order is among the dependencies.
    if (absl::Status s =
            driver_.Check(driver_.StreamCreateWithPriority(
                              &stream, CU_STREAM_NON_BLOCKING, priority),
                          "cuStreamCreateWithPriority");
        !s.ok()) {
      return s;
    }
    streams_.push_back(stream);
  }
  const std::vector<Operation>& operations = step.operations;
  actions_.resize(operations.size());
  std::vector<int64_t> last(lanes, -1);  // operation in the lane
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    for (const Dependency& d : operation.dependencies) {
      if (operations[d.from].lane == operation.lane) continue;
      Action& from = actions_[d.from];
      if (from.done == nullptr) {
        absl::StatusOr<CUevent> event = NewEvent();
        if (!event.ok()) return event.status();
        from.done = *event;
      }
      actions_[i].waits.push_back(from.done);
    }
    // An early start is allowed over the kernel right before alone.
    actions_[i].early = operation.dependencies.size() == 1 &&
                        operation.dependencies[0].type ==
                            CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
                        operation.dependencies[0].from == last[operation.lane];
    last[operation.lane] = static_cast<int64_t>(i);
  }
  if (lanes > 1) {
    absl::StatusOr<CUevent> begin = NewEvent();
    if (!begin.ok()) return begin.status();
    begin_ = *begin;
    for (size_t i = 1; i < lanes; ++i) {
      absl::StatusOr<CUevent> end = NewEvent();
      if (!end.ok()) return end.status();
      ends_.push_back(*end);
    }
  }
  return absl::OkStatus();
}

absl::Status SerialExecutor::Run() {
  if (begin_ != nullptr) {
    if (absl::Status s = Record(begin_, streams_[0]); !s.ok()) return s;
    for (size_t i = 1; i < streams_.size(); ++i) {
      if (absl::Status s = Wait(begin_, streams_[i]); !s.ok()) return s;
    }
  }
  const std::vector<Operation>& operations = program_.step().operations;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    const CUstream stream = streams_[operation.lane];
    for (CUevent event : actions_[i].waits) {
      if (absl::Status s = Wait(event, stream); !s.ok()) return s;
    }
    if (absl::Status s =
            Submit(driver_, program_, operation, stream, actions_[i].early);
        !s.ok()) {
      return s;
    }
    if (actions_[i].done != nullptr) {
      if (absl::Status s = Record(actions_[i].done, stream); !s.ok()) return s;
    }
  }
  for (size_t i = 1; i < streams_.size(); ++i) {
    if (absl::Status s = Record(ends_[i - 1], streams_[i]); !s.ok()) return s;
    if (absl::Status s = Wait(ends_[i - 1], streams_[0]); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> CreateSerialExecutor(
    const device::Driver& driver, const BoundProgram& program) {
  auto executor = std::make_unique<SerialExecutor>(driver, program);
  if (absl::Status s = executor->Init(); !s.ok()) return s;
  return executor;
}

absl::Status RunInOrder(const device::Driver& driver,
                        const BoundProgram& program, const OperationList& list,
                        size_t first, size_t end, CUstream stream) {
  for (size_t i = first; i < end; ++i) {
    if (absl::Status s =
            Submit(driver, program, list.operations[i], stream, false);
        !s.ok()) {
      return s;
    }
  }
  const absl::Status done =
      driver.Check(driver.StreamSynchronize(stream), "cuStreamSynchronize");
  if (done.ok() || end - first != 1) return done;
  return absl::Status(done.code(), absl::StrCat(list.operations[first].label,
                                                ": ", done.message()));
}

absl::Status RunAndWait(const device::Driver& driver, Executor& executor) {
  if (absl::Status s = executor.Run(); !s.ok()) return s;
  return driver.Check(
      driver.StreamSynchronize(executor.stream()),
      absl::StrCat("cuStreamSynchronize after the ", executor.name(), " run"));
}

}  // namespace heddle::replay
