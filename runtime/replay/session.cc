// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/session.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/replay/launcher.h"
#include "runtime/replay/order_executor.h"
#include "runtime/replay/planned_executor.h"

namespace heddle::replay {
namespace {

absl::Status CheckDevice(const device::Driver& driver, CUdevice device,
                         const Program& program) {
  if (program.compute_major == 0) return absl::OkStatus();
  int major = 0;
  int minor = 0;
  CUresult result = driver.DeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result == CUDA_SUCCESS) {
    result = driver.DeviceGetAttribute(
        &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  }
  if (absl::Status s = driver.Check(result, "cuDeviceGetAttribute"); !s.ok()) {
    return s;
  }
  // Code of a major version runs on its later minor ones.
  if (major == program.compute_major && minor >= program.compute_minor) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "recorded on ", program.device_name, " (sm_", program.compute_major,
      program.compute_minor, "), this device is sm_", major, minor,
      ": its kernels cannot run here; choose another --device"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const device::Driver& driver, const device::ScopedContext& context,
    const trace::Reader& reader, const Program& program, Progress progress,
    const ModuleOptions& module_options) {
  auto session = absl::WrapUnique(
      new Session(driver, context, reader, program, std::move(progress)));
  if (absl::Status s = CheckDevice(driver, context.device(), program);
      !s.ok()) {
    return s;
  }
  // Memory first: everything else allocates, too, and might take an address.
  absl::StatusOr<std::unique_ptr<MemoryImage>> image =
      MemoryImage::Create(driver, context.device(), program);
  if (!image.ok()) return image.status();
  session->image_ = *std::move(image);
  session->Report(absl::StrCat("memory: ", program.allocations.size(),
                               " allocations, ", session->image_->bytes() >> 20,
                               " MiB mapped"));
  absl::StatusOr<std::unique_ptr<Transfer>> transfer = Transfer::Create(driver);
  if (!transfer.ok()) return transfer.status();
  session->transfer_ = *std::move(transfer);
  absl::StatusOr<std::unique_ptr<Modules>> modules =
      Modules::Load(driver, context.device(), reader, program, module_options);
  if (!modules.ok()) return modules.status();
  session->modules_ = *std::move(modules);
  session->patched_ =
      std::make_unique<rewrite::PatchedModules>(driver, /*cache=*/nullptr);
  session->Report(absl::StrCat("code: ", program.kernels.size(), " kernels of ",
                               program.modules.size(), " images"));
  absl::StatusOr<std::unique_ptr<BoundProgram>> bound = BoundProgram::Create(
      driver, reader, program, *session->modules_, *session->image_);
  if (!bound.ok()) return bound.status();
  session->bound_ = *std::move(bound);
  if (session->bound_->patched_pointers() != 0) {
    session->Report(absl::StrCat(
        session->bound_->patched_pointers(),
        " parameters pointed into module variables, which the loader has put "
        "elsewhere: changed"));
  }
  std::vector<Extent> variables;
  for (const MemoryImage::Segment& segment : session->image_->segments()) {
    if (segment.variable) variables.push_back({segment.recorded, segment.size});
  }
  absl::StatusOr<std::unique_ptr<Checkpoint>> loaded =
      session->NewCheckpoint(ExtentSet(std::move(variables)));
  if (!loaded.ok()) return loaded.status();
  session->loaded_variables_ = *std::move(loaded);
  if (absl::Status s = session->loaded_variables_->Save(); !s.ok()) return s;
  if (absl::Status s = driver.Check(
          driver.StreamCreate(&session->stream_, CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
      !s.ok()) {
    return s;
  }
  return session;
}

Session::~Session() {
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
  if (patched_ != nullptr) patched_->UnloadAll();
}

absl::StatusOr<Session::Input> Session::LoadInput(uint64_t number) {
  Input input;
  LoadOptions options;
  options.seed = number;
  options.perturb = number > 1;
  absl::StatusOr<LoadedBytes> loaded = LoadContent(
      reader_, program_, modules_->variables(), options, *transfer_, *image_);
  if (!loaded.ok()) return loaded.status();
  input.loaded = *loaded;
  if (absl::Status s =
          bound_->LoadInputs(number > 1 ? number : 0, &input.loaded.perturbed);
      !s.ok()) {
    return s;
  }
  const OperationList& prefix = bound_->prefix();
  if (!prefix.operations.empty()) {
    Report(absl::StrCat("running ", prefix.operations.size(),
                        " operations that come before the step"));
    if (absl::Status s = RunInOrder(driver_, *bound_, prefix, 0,
                                    prefix.operations.size(), stream_);
        !s.ok()) {
      return s;
    }
  }
  if (start_ == nullptr) {
    absl::StatusOr<std::unique_ptr<Checkpoint>> start =
        NewCheckpoint(image_->extents());
    if (!start.ok()) return start.status();
    start_ = *std::move(start);
  } else {
    absl::StatusOr<ExtentSet> changed = start_->Changed();
    if (!changed.ok()) return changed.status();
    input.changed = changed->bytes();
  }
  if (absl::Status s = start_->Save(); !s.ok()) return s;
  return input;
}

absl::Status Session::Reset() {
  bound_->ClearOutputs();
  return start_->Restore();
}

absl::Status Session::ResetWritten() {
  bound_->ClearOutputs();
  return start_->RestoreOnly(written_);
}

absl::StatusOr<ExtentSet> Session::ChangedSinceStart() const {
  return start_->Changed();
}

absl::StatusOr<std::unique_ptr<Executor>> Session::NewSerial() const {
  return CreateSerialExecutor(driver_, *bound_);
}

absl::StatusOr<std::unique_ptr<Executor>> Session::NewGraph(
    const GraphOptions& options) const {
  return CreateGraphExecutor(driver_, context_.context(), *bound_, options);
}

absl::StatusOr<RewrittenExecutor> Session::NewRewritten(
    plan::Style style, const GraphOptions& options) const {
  if (modules_->code() == nullptr) {
    return absl::FailedPreconditionError(
        "the session was not set up for rewriting");
  }
  return CreateRewrittenExecutor(driver_, context_, *bound_, *modules_->code(),
                                 *patched_, style, options);
}

absl::StatusOr<RewrittenExecutor> Session::NewPlanned(
    const plan::Plan& plan, const std::vector<plan::Effects>& effects) const {
  if (modules_->code() == nullptr) {
    return absl::FailedPreconditionError(
        "the session was not set up for rewriting");
  }
  return CreatePlannedExecutor(driver_, context_, *bound_, *modules_->code(),
                               *patched_, plan, effects);
}

absl::StatusOr<std::unique_ptr<Executor>> Session::NewOrders(
    const plan::Plan& plan, uint64_t seed) const {
  return CreateOrderExecutor(driver_, *bound_, plan.Overlap().edges, seed);
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Session::NewCheckpoint(
    const ExtentSet& extents) const {
  return Checkpoint::Create(driver_, *image_, *transfer_, extents);
}

absl::Status Session::RunBetween(size_t operation, CUevent begin, CUevent end) {
  CUresult result = driver_.EventRecord(begin, stream_);
  if (absl::Status s = driver_.Check(result, "cuEventRecord"); !s.ok()) {
    return s;
  }
  if (absl::Status s = Submit(driver_, *bound_,
                              bound_->step().operations[operation], stream_,
                              /*early=*/false);
      !s.ok()) {
    return s;
  }
  result = driver_.EventRecord(end, stream_);
  if (result == CUDA_SUCCESS) result = driver_.EventSynchronize(begin);
  if (result == CUDA_SUCCESS) result = driver_.EventSynchronize(end);
  return driver_.Check(result, "cuEventSynchronize");
}

absl::Status Session::RunOperations(size_t first, size_t end) {
  return RunInOrder(driver_, *bound_, bound_->step(), first, end, stream_);
}

}  // namespace heddle::replay
