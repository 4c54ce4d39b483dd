// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/access/case_runner.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::access {
namespace {

constexpr uint64_t kFar = uint64_t{1} << 38;

std::vector<uint8_t> ReadImage(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_TEST_IMAGES) + "/" + name,
                     std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

[[noreturn]] void Fail(const std::string& name, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), status.ToString().c_str());
  std::abort();
}

}  // namespace

MemoryView OneAllocation() {
  MemoryView view;
  view.allocation = [](uint64_t address) -> std::optional<Extent> {
    const Extent all{kFirst - kFar, 2 * kFar};
    if (address < all.address || address >= all.end()) return std::nullopt;
    return all;
  };
  view.tensor_map = [](absl::Span<const uint8_t>) { return std::nullopt; };
  return view;
}

CaseRunner::CaseRunner(const std::vector<std::string>& names, int arch) {
  for (const std::string& name : names) {
    const std::vector<uint8_t> image =
        ReadImage(absl::StrCat(name, ".sm_", arch, ".cubin"));
    sass_machine::Memory unused;
    absl::StatusOr<sass_machine::Program> program =
        sass_machine::LoadProgram(image, kTrapVariablesAt, &unused);
    if (!program.ok()) Fail(name, program.status());
    programs_[name] = *std::move(program);
    absl::StatusOr<std::unique_ptr<CodeImage>> code = CodeImage::Create(image);
    if (!code.ok()) Fail(name, code.status());
    images_[name] = *std::move(code);
  }
  Use(names.front());
}

void CaseRunner::Use(const std::string& name) {
  program_ = programs_.at(name);
  image_ = images_.at(name).get();
}

std::vector<Word128> CaseRunner::CodeOf(const std::string& kernel) const {
  std::vector<Word128> words;
  for (const sass_machine::Code& code : program_.kernels.at(kernel).code) {
    words.push_back({code.low, code.high});
  }
  return words;
}

CoverageResult CaseRunner::Check(const Case& made) {
  sass_machine::KernelCode& kernel = program_.kernels.at(made.launch.kernel);
  const std::vector<sass_machine::Code> original = kernel.code;
  kernel.code.clear();
  for (size_t i = 0; i < made.code.size(); ++i) {
    kernel.code.push_back(DecodeCode(made.code[i], 16 * i, program_.arch));
  }
  sass_machine::Memory memory;
  for (const TrapBuffer& buffer : made.buffers) {
    memory.Add(buffer.address, buffer.content);
  }
  memory.AddSparse(kFirst - kFar, 2 * kFar);
  sass_machine::AccessLog log;
  sass_machine::RunOptions options;
  options.max_instructions = 3000;
  // What ran before an error ran.
  const absl::Status ran =
      sass_machine::Run(program_, made.launch, &memory, &log, options);
  (ran.ok() ? ended_ : failed_)++;
  kernel.code = original;

  const MemoryView view = OneAllocation();
  return CheckCoverage(Analyze(made), ValuesOf(made), view, log);
}

LaunchValues CaseRunner::ValuesOf(const Case& made) const {
  LaunchValues values;
  values.grid = made.launch.grid;
  values.block = made.launch.block;
  values.param_base = image_->Find(made.launch.kernel)->param_base;
  values.params = made.launch.params;
  bool too_many = false;
  values.pointers = FindPointers(values.params, OneAllocation(), &too_many);
  return values;
}

KernelFootprint CaseRunner::Analyze(const Case& made) const {
  KernelCodeView code = image_->Find(made.launch.kernel)->code;
  code.text =
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(made.code.data()),
                          made.code.size() * sizeof(Word128));
  return AnalyzeKernel(code, ValuesOf(made));
}

Case CaseRunner::Smallest(Case made) {
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < made.code.size(); ++i) {
      const Word128 kept = std::exchange(made.code[i], NoOperation());
      if (Check(made).complaint.empty()) made.code[i] = kept;
    }
  }
  return made;
}

std::string CaseRunner::Listing(const Case& made) const {
  std::string text = absl::StrCat(
      "grid ", made.launch.grid[0], " ", made.launch.grid[1], " block ",
      made.launch.block[0], " ", made.launch.block[1], " params");
  for (size_t i = 0; 8 * i + 8 <= made.launch.params.size(); ++i) {
    uint64_t value;
    std::memcpy(&value, &made.launch.params[8 * i], 8);
    absl::StrAppend(&text, " ", absl::Hex(value));
  }
  absl::StrAppend(&text, "\n");
  for (size_t i = 0; i < made.code.size(); ++i) {
    if (made.code[i].low == NoOperation().low) continue;
    const sass_machine::Code code =
        DecodeCode(made.code[i], 16 * i, program_.arch);
    absl::StrAppend(&text, "  ", absl::Hex(16 * i, absl::kZeroPad4), ": {0x",
                    absl::Hex(made.code[i].low, absl::kZeroPad16), ", 0x",
                    absl::Hex(made.code[i].high, absl::kZeroPad16), "}, // ",
                    code.decoded.mnemonic, "\n");
  }
  return text;
}

}  // namespace heddle::access
