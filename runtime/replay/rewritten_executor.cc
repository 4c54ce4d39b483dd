// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/rewritten_executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/replay/graph_executor.h"
#include "runtime/rewrite/graph_model.h"

namespace heddle::replay {

std::string RewrittenName(plan::Style style) {
  return absl::StrCat("O1 ", rewrite::StyleName(style));
}

absl::StatusOr<RewrittenExecutor> CreateRewrittenExecutor(
    const device::Driver& driver, const device::ScopedContext& context,
    const BoundProgram& program, ModuleCode& code,
    rewrite::PatchedModules& patched, plan::Style style,
    const GraphOptions& options) {
  if (!code.supported().ok()) return code.supported();
  auto executor = std::make_unique<GraphExecutor>(
      driver, context.context(), program, RewrittenName(style));
  if (absl::Status s = executor->Build(options); !s.ok()) return s;
  absl::StatusOr<rewrite::GraphModel> model =
      rewrite::ReadGraph(driver, executor->graph(), &code);
  if (!model.ok()) return model.status();
  absl::StatusOr<rewrite::Rewritten> rewritten =
      rewrite::Rewrite(driver, executor->graph(), &*model, style,
                       rewrite::ReadLimits(driver, context.device()), &patched);
  if (!rewritten.ok()) return rewritten.status();
  if (absl::Status s = executor->Instantiate(); !s.ok()) return s;
  return RewrittenExecutor{std::move(executor), std::move(rewritten->summary)};
}

}  // namespace heddle::replay
