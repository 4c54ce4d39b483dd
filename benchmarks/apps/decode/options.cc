// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/options.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "benchmarks/apps/common/command_line.h"
#include "benchmarks/apps/common/status_macros.h"

namespace decode {
namespace {

using apps::Option;
using apps::SetChoice;
using apps::SetCount;
using apps::SetFlag;
using apps::SetPath;

absl::Status ApplyPreset(const std::string& name, ModelConfig* model) {
  if (name == "tiny") {
    *model = ModelConfig();
    return absl::OkStatus();
  }
  if (name == "1b") {
    *model = ModelConfig{.layers = 16,
                         .hidden = 2048,
                         .heads = 32,
                         .kv_heads = 8,
                         .head_dim = 64,
                         .intermediate = 8192,
                         .vocab = 128256,
                         .max_seq = 512,
                         .tied_embeddings = true,
                         .rope_theta = 500000.0f};
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("wants one of tiny, 1b");
}

absl::Status ParsePrompt(const std::string& value,
                         std::vector<int32_t>* prompt) {
  prompt->clear();
  for (const absl::string_view piece : absl::StrSplit(value, ',')) {
    int32_t token = 0;
    if (!absl::SimpleAtoi(piece, &token) || token < 0) {
      return absl::InvalidArgumentError("wants token numbers, as in 1,17,4");
    }
    prompt->push_back(token);
  }
  return absl::OkStatus();
}

std::vector<Option> MakeOptions(Options* o, int* head_dim) {
  ModelConfig* m = &o->model;
  const auto heads = [=](const std::string& value) {
    o->heads_given = true;
    m->head_dim = 0;  // derived below
    return SetCount(&m->heads)(value);
  };
  const auto hidden = [=](const std::string& value) {
    m->head_dim = 0;
    return SetCount(&m->hidden)(value);
  };
  const auto max_int = std::numeric_limits<int>::max();
  return {
      {"Model (defaults in brackets)", "--preset", "NAME",
       "tiny [the defaults below] or 1b, the shape of Llama-3.2-1B; options "
       "after it change single sizes",
       [=](const std::string& value) { return ApplyPreset(value, m); }},
      {nullptr, "--layers", "N", "decoder layers [4]", SetCount(&m->layers)},
      {nullptr, "--hidden", "N", "width of the residual stream [128]", hidden},
      {nullptr, "--heads", "N", "attention heads [4]", heads},
      {nullptr, "--kv-heads", "N", "key/value heads; divides --heads [2]",
       SetCount(&m->kv_heads)},
      {nullptr, "--head-dim", "N", "width of a head [hidden / heads]",
       SetCount(head_dim)},
      {nullptr, "--intermediate", "N", "width of the MLP [384]",
       SetCount(&m->intermediate)},
      {nullptr, "--vocab", "N", "tokens in the vocabulary [512]",
       SetCount(&m->vocab)},
      {nullptr, "--max-seq", "N", "capacity of the key/value cache [64]",
       SetCount(&m->max_seq)},
      {nullptr, "--rope-theta", "X",
       "base of the rotary positions; 500000 for Llama 3 [10000]",
       apps::SetPositive(&m->rope_theta)},
      {nullptr, "--tie-embeddings", nullptr,
       "use the embedding as the output matrix as well",
       SetFlag(&m->tied_embeddings)},
      {nullptr, "--dtype", "TYPE",
       "storage of the weights: f32 or bf16; arithmetic is fp32 [f32]",
       SetChoice<DataType>(
           &o->dtype, {{"f32", DataType::kF32}, {"bf16", DataType::kBf16}})},
      {nullptr, "--weights", "FILE",
       "a .safetensors file with the tensor names of a Hugging Face Llama; the "
       "sizes come from it, all but --heads, --max-seq and --rope-theta",
       SetPath(&o->weights_path)},
      {nullptr, "--seed", "N", "seed of the random weights used otherwise [1]",
       apps::SetSeed(&o->seed)},
      {"Sequence", "--prompt", "A,B,C", "the first tokens of the sequence [1]",
       [=](const std::string& value) {
         return ParsePrompt(value, &o->prompt);
       }},
      {nullptr, "--tokens", "N", "tokens to generate after the prompt [16]",
       SetCount(&o->tokens)},
      {"How it is issued", "--graph", nullptr,
       "capture one step as a CUDA graph and replay it for every token",
       SetFlag(&o->graph)},
      {nullptr, "--gemm", "KIND",
       "matrix products by own kernels or by cublas (needs a GPU) [own]",
       SetChoice<GemmKind>(
           &o->gemm, {{"own", GemmKind::kOwn}, {"cublas", GemmKind::kCublas}})},
      {nullptr, "--load", "ROUTE",
       "how driver calls are found: direct symbols, dlsym or procaddress "
       "(cuGetProcAddress) [direct]",
       SetChoice<std::string>(&o->load, {{"direct", "direct"},
                                         {"dlsym", "dlsym"},
                                         {"procaddress", "procaddress"}})},
      {nullptr, "--image", "KIND",
       "device code to load: fatbin or cubin (sm_90 alone) [fatbin]",
       SetChoice<std::string>(&o->image,
                              {{"fatbin", "fatbin"}, {"cubin", "cubin"}})},
      {nullptr, "--device", "N", "CUDA device [0]",
       apps::SetInt(&o->device, 0, max_int)},
      {nullptr, "--stream-tokens", nullptr,
       "read every token back before the next step, as a chat server does",
       SetFlag(&o->stream_tokens)},
      {nullptr, "--steps-range", nullptr,
       "put an NVTX range \"step\" around the launches of every token",
       SetFlag(&o->steps_range)},
      {"What is done with it", "--check", nullptr,
       "compare every step's logits with a plain C++ reference; exit code 1 if "
       "they differ",
       SetFlag(&o->check)},
      {nullptr, "--bench", "N", "then time N more tokens and print the median",
       SetCount(&o->bench)},
      {nullptr, "--json", "FILE",
       "write tokens, check and timing as JSON; - is stdout",
       SetPath(&o->json_path)},
      {nullptr, "--help", nullptr, "this text", SetFlag(&o->help)},
  };
}

absl::Status CheckTogether(const Options& options) {
  // A checkpoint decides the sizes later; the reader validates them then.
  if (options.weights_path.empty()) {
    absl::Status status = options.model.Validate();
    if (!status.ok()) return status;
    for (const int32_t token : options.prompt) {
      if (token >= options.model.vocab) {
        return absl::InvalidArgumentError(
            absl::StrCat("--prompt: token ", token, " is not below --vocab ",
                         options.model.vocab));
      }
    }
  }
  const int64_t length =
      static_cast<int64_t>(options.prompt.size()) + options.tokens;
  if (length > options.model.max_seq) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a prompt of ", options.prompt.size(), " and --tokens ", options.tokens,
        " need --max-seq ", length, " or more; it is ", options.model.max_seq));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args) {
  Options result;
  int head_dim = 0;
  APPS_RETURN_IF_ERROR(
      apps::ParseCommandLine(MakeOptions(&result, &head_dim), args));
  if (result.help) return result;
  ModelConfig& model = result.model;
  if (head_dim > 0) {
    model.head_dim = head_dim;
  } else if (model.head_dim == 0 && result.weights_path.empty()) {
    if (model.hidden % model.heads != 0) {
      return absl::InvalidArgumentError(
          "--heads does not divide --hidden; give the width of a head with "
          "--head-dim");
    }
    model.head_dim = model.hidden / model.heads;
  }
  APPS_RETURN_IF_ERROR(CheckTogether(result));
  return result;
}

std::string HelpText(absl::string_view program) {
  Options unused;
  int head_dim = 0;
  return absl::StrCat(
      "usage: ", program, R"( [options]

A small Llama-like language model: greedy decoding, batch 1, one kernel per
operator on one stream, as an eager framework would launch them. Token and
position live on the device, so a step is the same launches every time. It
prints the tokens that it generates.
)",
      apps::OptionsText(MakeOptions(&unused, &head_dim)), "\nExamples:\n  ",
      program, " --check\n  ", program, " --graph --tokens 32 --check\n  ",
      program, " --preset 1b --dtype bf16 --graph --bench 200 --json -\n  ",
      program, " --weights model.safetensors --heads 32 --max-seq 512\n", R"(
Exit codes: 0 done, 1 the check failed, 2 the options are wrong, 3 an error.
)");
}

}  // namespace decode
