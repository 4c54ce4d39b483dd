// SPDX-License-Identifier: Apache-2.0
// What the program changes in its executable, done to the rewritten forms too.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/live/live_graph.h"
#include "runtime/record/log.h"

namespace heddle::live {

void LiveGraph::DropPlanned(absl::string_view why) {
  known_ = nullptr;  // trials to come must not build such forms either
  const bool was_settled = settled() != nullptr;
  bool dropped = false;
  Variant* next = nullptr;
  for (auto& variant : variants_) {
    if (variant->retired) continue;
    if (variant->rests_on_effects()) {
      variant->retired = true;
      dropped = true;
    } else if (next == nullptr) {
      next = variant.get();
    }
  }
  if (!dropped) return;
  record::Log(
      record::LogLevel::kInfo,
      absl::StrCat(
          "graph ", report_.graph, ": ", why, ", which level 2 rests on: ",
          next == nullptr ? "the program's own graph" : next->form.Name(),
          " from here on"));
  if (next == nullptr) {
    KeepOriginal(why);
    return;
  }
  if (was_settled) {
    use_.store(next->exec, std::memory_order_release);
    return;
  }
  // Nothing has been launched but by trials, which are over.
  std::erase_if(variants_, [this](auto& variant) {
    if (!variant->retired) return false;
    Drop(variant.get());
    return true;
  });
}

void LiveGraph::MemoryGoes(const access::Extent& block) {
  const auto touches = [&block](const access::Extent& extent) {
    return extent.address < block.end() && block.address < extent.end();
  };
  for (const auto& variant : variants_) {
    if (variant->retired || !variant->rests_on_effects()) continue;
    if (std::any_of(variant->rests_on.begin(), variant->rests_on.end(),
                    touches)) {
      DropPlanned("the program gave up memory that the graph uses");
      return;
    }
  }
}

void LiveGraph::UpdatedFrom(CUgraph copy) {
  // Nodes are named after the graph of the instantiation for ever; the new
  // graph gives values alone.
  struct Owned {
    const device::Driver& driver;
    CUgraph graph;
    ~Owned() { driver.GraphDestroy(graph); }
  } owned{driver_, copy};
  if (settled() == exec_) return;
  if (!built_) {
    KeepOriginal("updated as a whole before it was launched");
    return;
  }
  if (flat_) {
    KeepOriginal("updated as a whole, and it has child graphs");
    return;
  }
  // To find out again what every node touches would take longer than most
  // updates gain.
  DropPlanned("the program updated the graph as a whole");
  if (settled() == exec_) return;
  for (auto& variant : variants_) {
    if (variant->retired) continue;
    absl::StatusOr<std::unique_ptr<Variant>> next =
        BuildVariant(copy, variant->form, /*instantiate=*/false);
    CUgraphExecUpdateResultInfo info{};
    absl::Status status = next.status();
    if (status.ok() &&
        ((*next)->rewritten.prologue != variant->rewritten.prologue ||
         (*next)->rewritten.edges != variant->rewritten.edges)) {
      status =
          absl::FailedPreconditionError("it is to be rewritten another way");
    }
    // Launch order rests on a proof about all blocks together. Later changes of
    // single nodes are compared with what it counted.
    if (status.ok() && variant->rewritten.summary.launch_order > 0 &&
        (*next)->needs != variant->needs) {
      status = absl::FailedPreconditionError(
          "its launches occupy other resources than were proved to fit");
    }
    if (status.ok()) {
      status = driver_.Check(
          driver_.GraphExecUpdate(variant->exec, (*next)->graph, &info),
          "cuGraphExecUpdate(rewritten)");
    }
    if (next.ok()) Drop(next->get());
    if (!status.ok()) {
      KeepOriginal(absl::StrCat("an update could not be mirrored: ",
                                std::string(status.message())));
      return;
    }
  }
  if (settled() != nullptr) return;
  // Trials compare against the program's own executable, which has the new
  // values; what they may write is read from the new graph.
  absl::StatusOr<rewrite::GraphModel> model =
      rewrite::ReadGraph(driver_, copy, tools_.code);
  if (!model.ok()) {
    KeepOriginal(std::string(model.status().message()));
    return;
  }
  model_ = std::make_unique<rewrite::GraphModel>(*std::move(model));
}

void LiveGraph::Mirror(
    CUgraphNode node, const char* call,
    const std::function<CUresult(CUgraphNode)>& on_copy,
    const std::function<CUresult(Variant&, CUgraphNode)>& on_variant) {
  if (settled() == exec_) return;
  DropPlanned(absl::StrCat("the program changed a node by ", call));
  if (settled() == exec_) return;
  if (flat_) {
    KeepOriginal(
        absl::StrCat("changed by ", call, ", and it has child graphs"));
    return;
  }
  CUgraphNode copied = nullptr;
  CUresult result = driver_.GraphNodeFindInClone(&copied, node, copy_);
  if (result == CUDA_SUCCESS) result = on_copy(copied);
  for (auto& variant : variants_) {
    if (variant->retired) continue;
    CUgraphNode in_variant = nullptr;
    if (result == CUDA_SUCCESS) {
      result =
          driver_.GraphNodeFindInClone(&in_variant, copied, variant->graph);
    }
    if (result == CUDA_SUCCESS) result = on_variant(*variant, in_variant);
  }
  if (result != CUDA_SUCCESS) {
    KeepOriginal(absl::StrCat(call, " could not be mirrored (",
                              driver_.ErrorName(result), ")"));
  }
}

bool LiveGraph::SameResources(const Variant& variant, CUgraphNode node,
                              const CUDA_KERNEL_NODE_PARAMS& params) {
  CUDA_KERNEL_NODE_PARAMS before{};
  if (driver_.GraphKernelNodeGetParams(node, &before) != CUDA_SUCCESS) {
    return false;
  }
  const auto index = variant.index.find(reinterpret_cast<uint64_t>(node));
  absl::StatusOr<CUfunction> function = rewrite::FunctionOf(driver_, params);
  return index != variant.index.end() && function.ok() &&
         *function == variant.functions[index->second] &&
         before.gridDimX == params.gridDimX &&
         before.gridDimY == params.gridDimY &&
         before.gridDimZ == params.gridDimZ &&
         before.blockDimX == params.blockDimX &&
         before.blockDimY == params.blockDimY &&
         before.blockDimZ == params.blockDimZ &&
         before.sharedMemBytes == params.sharedMemBytes;
}

void LiveGraph::KernelChanged(CUgraphNode node,
                              const CUDA_KERNEL_NODE_PARAMS& params) {
  Mirror(
      node, "cuGraphExecKernelNodeSetParams",
      [&](CUgraphNode copied) {
        const CUresult result =
            driver_.GraphKernelNodeSetParams(copied, &params);
        if (result == CUDA_SUCCESS && model_ != nullptr) {
          // Trials to come must see what this launch may write now.
          const auto index =
              model_->index.find(reinterpret_cast<uint64_t>(copied));
          absl::StatusOr<CUfunction> function =
              rewrite::FunctionOf(driver_, params);
          // After an update as a whole the model is that of another graph.
          if (index == model_->index.end() || !function.ok()) {
            return CUDA_ERROR_NOT_FOUND;
          }
          absl::StatusOr<rewrite::OwnedLaunch> launch =
              rewrite::OwnedLaunch::Copy(driver_, *function, params);
          if (!launch.ok()) return CUDA_ERROR_INVALID_VALUE;
          model_->nodes[index->second].launch = *std::move(launch);
        }
        return result;
      },
      [&](Variant& variant, CUgraphNode in_variant) {
        // Launch order rests on a proof about the blocks of each launch.
        if (variant.rewritten.summary.launch_order > 0 &&
            !SameResources(variant, in_variant, params)) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        absl::StatusOr<CUfunction> function =
            rewrite::FunctionOf(driver_, params);
        if (!function.ok()) return CUDA_ERROR_INVALID_VALUE;
        const auto index =
            variant.index.find(reinterpret_cast<uint64_t>(in_variant));
        if (index == variant.index.end()) return CUDA_ERROR_NOT_FOUND;
        const cubin::Prologue prologue =
            variant.rewritten.prologue[index->second];
        CUfunction twin = *function;
        if (prologue != cubin::Prologue::kNone) {
          absl::StatusOr<rewrite::KernelSource> source =
              tools_.code->Find(*function);
          if (!source.ok()) return CUDA_ERROR_NOT_FOUND;
          absl::StatusOr<CUfunction> patched =
              tools_.modules->Get(*source, prologue, *function);
          if (!patched.ok()) return CUDA_ERROR_NOT_FOUND;
          twin = *patched;
        }
        CUDA_KERNEL_NODE_PARAMS changed = params;
        changed.func = twin;
        changed.kern = nullptr;
        return driver_.GraphExecKernelNodeSetParams(variant.exec, in_variant,
                                                    &changed);
      });
}

// Trials to come must keep what the node writes now.
void LiveGraph::SetPointers(CUgraphNode copied,
                            std::vector<uint64_t> pointers) {
  if (model_ == nullptr) return;
  const auto index = model_->index.find(reinterpret_cast<uint64_t>(copied));
  if (index != model_->index.end()) {
    model_->nodes[index->second].pointers = std::move(pointers);
  }
}

void LiveGraph::MemcpyChanged(CUgraphNode node, const CUDA_MEMCPY3D& params,
                              CUcontext context) {
  Mirror(
      node, "cuGraphExecMemcpyNodeSetParams",
      [&](CUgraphNode copied) {
        SetPointers(copied, {params.srcDevice, params.dstDevice,
                             reinterpret_cast<uint64_t>(params.srcHost),
                             reinterpret_cast<uint64_t>(params.dstHost)});
        return driver_.GraphMemcpyNodeSetParams(copied, &params);
      },
      [&](Variant& variant, CUgraphNode in_variant) {
        return driver_.GraphExecMemcpyNodeSetParams(variant.exec, in_variant,
                                                    &params, context);
      });
}

void LiveGraph::MemsetChanged(CUgraphNode node,
                              const CUDA_MEMSET_NODE_PARAMS& params,
                              CUcontext context) {
  Mirror(
      node, "cuGraphExecMemsetNodeSetParams",
      [&](CUgraphNode copied) {
        SetPointers(copied, {params.dst});
        return driver_.GraphMemsetNodeSetParams(copied, &params);
      },
      [&](Variant& variant, CUgraphNode in_variant) {
        return driver_.GraphExecMemsetNodeSetParams(variant.exec, in_variant,
                                                    &params, context);
      });
}

void LiveGraph::EnabledChanged(CUgraphNode node, unsigned int enabled) {
  // A disabled kernel neither waits nor triggers, which the proof counts on.
  (void)node;
  if (settled() == exec_) return;
  KeepOriginal(absl::StrCat("a node was ", enabled != 0 ? "en" : "dis",
                            "abled by cuGraphNodeSetEnabled"));
}

}  // namespace heddle::live
