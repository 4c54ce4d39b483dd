// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_SESSION_H_
#define HEDDLE_RUNTIME_REPLAY_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/device/driver.h"
#include "runtime/plan/plan.h"
#include "runtime/replay/bound_program.h"
#include "runtime/replay/checkpoint.h"
#include "runtime/replay/content_loader.h"
#include "runtime/replay/executor.h"
#include "runtime/replay/memory_image.h"
#include "runtime/replay/modules.h"
#include "runtime/replay/program.h"
#include "runtime/replay/rewritten_executor.h"
#include "runtime/replay/transfer.h"
#include "runtime/rewrite/patched_modules.h"

namespace heddle::replay {

// One line about long work; never called in a measurement.
using Progress = std::function<void(const std::string&)>;

// A step of a trace, set up on a device.
//
//   auto session = Session::Create(driver, context, reader, program, progress);
//   (*session)->LoadInput(1);             // memory is as before the step
//   auto serial = (*session)->NewSerial();
//   RunAndWait(driver, **serial);         // and now as after it
//   (*session)->Reset();                  // as before it again
//
// Threads: one. Arguments outlive the session.
class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const device::Driver& driver, const device::ScopedContext& context,
      const trace::Reader& reader, const Program& program, Progress progress,
      const ModuleOptions& modules = {});

  // Input 1 is what the trace holds, described memory filled with seeded data.
  // Others have other seeded data, and changed floating-point data where the
  // trace is exact. Runs the prefix and keeps a checkpoint for Reset.
  struct Input {
    LoadedBytes loaded;
    uint64_t changed = 0;  // bytes that differ from the input before this one
  };
  absl::StatusOr<Input> LoadInput(uint64_t number);
  // Puts memory back to the start of the step: all of it, or (after
  // SetWritten) what the step writes.
  absl::Status Reset();
  absl::Status ResetWritten();

  // Bytes that differ from the start of the step, and the set of blocks of
  // kWrittenBlock bytes around them.
  static constexpr uint64_t kWrittenBlock = 64 << 10;
  absl::StatusOr<ExtentSet> ChangedSinceStart() const;
  void SetWritten(ExtentSet written) { written_ = std::move(written); }
  const ExtentSet& written() const { return written_; }

  absl::StatusOr<std::unique_ptr<Executor>> NewSerial() const;
  absl::StatusOr<std::unique_ptr<Executor>> NewGraph(
      const GraphOptions& options = {}) const;
  // The graph in its O1 form. For sessions with ModuleOptions::rewritable.
  // Errors as CreateRewrittenExecutor.
  absl::StatusOr<RewrittenExecutor> NewRewritten(
      plan::Style style, const GraphOptions& options = {}) const;

  // The graph of a plan. `effects` are what the step's
  // operations touch, for the final check. For sessions with
  // ModuleOptions::rewritable. Errors as CreatePlannedExecutor.
  absl::StatusOr<RewrittenExecutor> NewPlanned(
      const plan::Plan& plan, const std::vector<plan::Effects>& effects) const;
  // See CreateOrderExecutor.
  absl::StatusOr<std::unique_ptr<Executor>> NewOrders(const plan::Plan& plan,
                                                      uint64_t seed) const;

  absl::StatusOr<std::unique_ptr<Checkpoint>> NewCheckpoint(
      const ExtentSet& extents) const;

  // Runs operations [first, end) of the step in one stream and waits.
  absl::Status RunOperations(size_t first, size_t end);
  // Runs one operation of the step with an event before and one after it.
  absl::Status RunBetween(size_t operation, CUevent begin, CUevent end);

  const device::Driver& driver() const { return driver_; }
  const Program& program() const { return program_; }
  const trace::Reader& reader() const { return reader_; }
  BoundProgram& bound() { return *bound_; }
  const BoundProgram& bound() const { return *bound_; }
  const Modules& modules() const { return *modules_; }
  const MemoryImage& image() const { return *image_; }
  const Checkpoint& start() const { return *start_; }
  Transfer& transfer() { return *transfer_; }
  void Report(const std::string& line) const {
    if (progress_) progress_(line);
  }

  ~Session();

 private:
  Session(const device::Driver& driver, const device::ScopedContext& context,
          const trace::Reader& reader, const Program& program,
          Progress progress)
      : driver_(driver),
        context_(context),
        reader_(reader),
        program_(program),
        progress_(std::move(progress)) {}

  const device::Driver& driver_;
  const device::ScopedContext& context_;
  const trace::Reader& reader_;
  const Program& program_;
  Progress progress_;
  std::unique_ptr<MemoryImage> image_;
  std::unique_ptr<Transfer> transfer_;
  std::unique_ptr<Modules> modules_;
  std::unique_ptr<rewrite::PatchedModules> patched_;
  std::unique_ptr<BoundProgram> bound_;
  std::unique_ptr<Checkpoint> loaded_variables_;  // as the loader left them
  std::unique_ptr<Checkpoint> start_;
  ExtentSet written_;
  CUstream stream_ = nullptr;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_SESSION_H_
