// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/inception/options.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/common/command_line.h"
#include "benchmarks/apps/common/status_macros.h"

namespace inception {
namespace {

using apps::SetChoice;
using apps::SetCount;
using apps::SetFlag;

std::vector<apps::Option> MakeOptions(Options* o) {
  NetworkConfig* n = &o->network;
  const int max_int = std::numeric_limits<int>::max();
  return {
      {"Network (defaults in brackets)", "--blocks", "N", "blocks in a row [9]",
       SetCount(&n->blocks)},
      {nullptr, "--channels", "N",
       "channels between blocks, a multiple of 32 [512]",
       SetCount(&n->channels)},
      {nullptr, "--size", "N", "height and width of the images [14]",
       SetCount(&n->size)},
      {nullptr, "--batch", "N", "images at once [1]", SetCount(&n->batch)},
      {nullptr, "--seed", "N", "seed of the random weights and images [1]",
       apps::SetSeed(&o->seed)},
      {nullptr, "--images", "N", "batches to run, each with new images [4]",
       SetCount(&o->images)},

      {"How it is issued", "--graph", nullptr,
       "capture the network as a CUDA graph and replay it for every batch",
       SetFlag(&o->graph)},
      {nullptr, "--concat", "KIND",
       "concatenate by kernel (cudnnTransformTensor) or memcpy [kernel]",
       SetChoice<ConcatKind>(&o->concat, {{"kernel", ConcatKind::kKernel},
                                          {"memcpy", ConcatKind::kMemcpy}})},
      {nullptr, "--workspace", "KIND",
       "a workspace of its own for every convolution, or one that is shared, "
       "as a caching allocator would give; a shared one orders the branches "
       "[own]",
       SetChoice<WorkspaceKind>(
           &o->workspace,
           {{"own", WorkspaceKind::kOwn}, {"shared", WorkspaceKind::kShared}})},
      {nullptr, "--tf32", nullptr,
       "let cuDNN round inputs to TF32 for the tensor cores",
       SetFlag(&o->tf32)},
      {nullptr, "--load", "ROUTE",
       "how driver calls are found: dlsym or procaddress (cuGetProcAddress); "
       "inception_cudart leaves that to the runtime [dlsym]",
       SetChoice<apps::LoadRoute>(
           &o->load, {{"dlsym", apps::LoadRoute::kDlsym},
                      {"procaddress", apps::LoadRoute::kProcAddress}})},
      {nullptr, "--device", "N", "CUDA device [0]",
       apps::SetInt(&o->device, 0, max_int)},
      {nullptr, "--steps-range", nullptr,
       "put an NVTX range \"step\" around the launches of every batch",
       SetFlag(&o->steps_range)},

      {"What is done with it", "--check", nullptr,
       "compare every output with a plain C++ reference; exit code 1 if they "
       "differ",
       SetFlag(&o->check)},
      {nullptr, "--bench", "N", "then time N batches and print the median",
       SetCount(&o->bench)},
      {nullptr, "--json", "FILE",
       "write checksums, check and timing as JSON; - is stdout",
       apps::SetPath(&o->json_path)},
      {nullptr, "--help", nullptr, "this text", SetFlag(&o->help)},
  };
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args) {
  Options result;
  APPS_RETURN_IF_ERROR(apps::ParseCommandLine(MakeOptions(&result), args));
  if (!result.help) APPS_RETURN_IF_ERROR(result.network.Validate());
  return result;
}

std::string HelpText(absl::string_view program) {
  Options unused;
  return absl::StrCat("usage: ", program, R"( [options]

An Inception-style convolutional network on cuDNN: every block has four
branches that do not depend on each other, but all are issued on one stream,
which runs them one after the other. Needs a GPU and cuDNN 9. Prints a
checksum of the output for every batch.
)",
                      apps::OptionsText(MakeOptions(&unused)),
                      "\nExamples:\n  ", program, " --check\n  ", program,
                      " --graph --bench 200 --json -\n  ", program,
                      " --blocks 2 --channels 64 --size 8 --check\n", R"(
Exit codes: 0 done, 1 the check failed, 2 the options are wrong, 3 an error.
)");
}

}  // namespace inception
