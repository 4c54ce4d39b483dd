// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/verifier.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

// Grain at which a difference of another form counts as explained by serial
// runs.
constexpr uint64_t kExplainBlock = 4096;
// Above this, kernels are only watched where serial runs differ.
constexpr uint64_t kMaxWatched = uint64_t{4} << 30;

// Runs from the start of the step and compares with the first serial run.
class Comparison {
 public:
  explicit Comparison(Session& session) : session_(session) {}

  // The first serial run: what the others are compared with.
  absl::Status SetReference(Executor& serial) {
    if (absl::Status s = session_.Reset(); !s.ok()) return s;
    if (absl::Status s = RunAndWait(session_.driver(), serial); !s.ok()) {
      return s;
    }
    outputs_ = session_.bound().Outputs();
    absl::StatusOr<ExtentSet> changed = session_.ChangedSinceStart();
    if (!changed.ok()) return changed.status();
    changed_bytes_ = changed->bytes();
    written_ = changed->Rounded(Session::kWrittenBlock)
                   .Intersect(session_.image().extents());
    untouched_ = session_.image().extents().Minus(written_);
    absl::StatusOr<std::unique_ptr<Checkpoint>> result =
        session_.NewCheckpoint(written_);
    if (!result.ok()) return result.status();
    result_ = *std::move(result);
    return result_->Save();
  }

  absl::StatusOr<RunDifference> Run(Executor& executor) {
    if (absl::Status s = session_.Reset(); !s.ok()) return s;
    if (absl::Status s = RunAndWait(session_.driver(), executor); !s.ok()) {
      return s;
    }
    RunDifference difference;
    const std::vector<uint8_t> outputs = session_.bound().Outputs();
    AppendDifferences(0, outputs.data(), outputs_.data(), outputs.size(), 1,
                      difference.outputs);
    absl::StatusOr<ExtentSet> memory = result_->Changed();
    if (!memory.ok()) return memory.status();
    difference.memory = *std::move(memory);
    // Where the reference run changed nothing, the start is the reference.
    absl::StatusOr<ExtentSet> elsewhere = session_.start().Changed(untouched_);
    if (!elsewhere.ok()) return elsewhere.status();
    difference.memory.Add(*elsewhere);
    return difference;
  }

  const ExtentSet& written() const { return written_; }
  uint64_t changed_bytes() const { return changed_bytes_; }
  uint64_t output_bytes() const { return outputs_.size(); }

 private:
  Session& session_;
  std::vector<uint8_t> outputs_;
  ExtentSet written_;
  ExtentSet untouched_;
  uint64_t changed_bytes_ = 0;
  std::unique_ptr<Checkpoint> result_;
};

RunDifference Unexplained(const RunDifference& form,
                          const RunDifference& serial) {
  return {form.memory.Minus(serial.memory.Rounded(kExplainBlock)),
          form.outputs.Minus(serial.outputs.Rounded(kExplainBlock))};
}

void Add(RunDifference& into, const RunDifference& from) {
  into.memory.Add(from.memory);
  into.outputs.Add(from.outputs);
}

absl::StatusOr<std::vector<Finding>> Describe(Session& session,
                                              const RunDifference& difference,
                                              size_t max_findings) {
  std::vector<Finding> findings;
  std::vector<Extent> places = difference.memory.extents();
  constexpr size_t kMaxSearched = 256;
  if (places.size() > kMaxSearched) places.resize(kMaxSearched);
  absl::StatusOr<std::vector<int64_t>> writers =
      FindLastWriters(session, places);
  if (!writers.ok()) return writers.status();
  for (size_t i = 0; i < places.size(); ++i) {
    Finding finding;
    finding.address = places[i].address;
    finding.bytes = places[i].size;
    finding.where = session.image().Describe(places[i].address);
    finding.operation = (*writers)[i];
    if (finding.operation >= 0) {
      finding.writer =
          session.bound().step().operations[finding.operation].label;
    }
    findings.push_back(std::move(finding));
  }
  // The earliest writer first: what comes after it may only pass it on.
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return static_cast<uint64_t>(a.operation) <
                            static_cast<uint64_t>(b.operation);
                   });
  for (const Extent& extent : difference.outputs.extents()) {
    Finding finding;
    finding.address = extent.address;
    finding.bytes = extent.size;
    finding.where =
        absl::StrCat("bytes copied to the host, at offset ", extent.address);
    findings.push_back(std::move(finding));
  }
  if (findings.size() > max_findings) findings.resize(max_findings);
  return findings;
}

absl::Status Judge(Session& session, const RunDifference& difference,
                   const RunDifference& serial, size_t max_findings,
                   FormVerdict& verdict) {
  const RunDifference left = Unexplained(difference, serial);
  verdict.differing_bytes = left.bytes();
  if (left.empty()) {
    if (!difference.empty()) verdict.verdict = Verdict::kWithinSerial;
    return absl::OkStatus();
  }
  verdict.verdict = Verdict::kDifferent;
  absl::StatusOr<std::vector<Finding>> findings =
      Describe(session, left, max_findings);
  if (!findings.ok()) return findings.status();
  verdict.findings = *std::move(findings);
  return absl::OkStatus();
}

absl::Status FindKernels(Session& session, const RunDifference& serial,
                         const ExtentSet& written, InputVerdict& verdict) {
  ExtentSet watched = written;
  watched.Add(serial.memory.Rounded(kExplainBlock)
                  .Intersect(session.image().extents()));
  if (watched.bytes() > kMaxWatched) {
    watched = serial.memory.Rounded(kExplainBlock)
                  .Intersect(session.image().extents());
  }
  absl::StatusOr<std::vector<UnrepeatableKernel>> kernels =
      FindUnrepeatableKernels(session, watched);
  if (!kernels.ok()) return kernels.status();
  verdict.unrepeatable = *std::move(kernels);
  verdict.unexplained = verdict.unrepeatable.empty();
  return absl::OkStatus();
}

// Compares memory as it is, after a serial run, with the program's own.
absl::Status CompareOriginal(Session& session, const RunDifference& serial,
                             const VerifyOptions& options,
                             OriginalVerdict& verdict) {
  ExtentSet differs;
  for (const Content& content : session.program().after) {
    if (content.fill == fb::FillKind::kDescribed) continue;
    absl::StatusOr<CUdeviceptr> device =
        session.image().Translate(content.address, content.size);
    if (!device.ok()) continue;  // memory that the step knows nothing of
    std::vector<uint8_t> expected;
    if (content.fill == fb::FillKind::kExact) {
      absl::StatusOr<std::vector<uint8_t>> bytes =
          session.reader().ReadBlob(content.hash);
      if (!bytes.ok()) return bytes.status();
      expected = *std::move(bytes);
      if (expected.size() != content.size) {
        return absl::DataLossError(absl::StrCat(
            "memory after the step at 0x", absl::Hex(content.address), ": ",
            expected.size(), " bytes of ", content.size));
      }
    } else {
      expected.assign(content.size, 0);
    }
    verdict.available = true;
    verdict.compared_bytes += content.size;
    if (absl::Status s = session.transfer().Download(
            *device, content.size,
            [&](uint64_t offset, absl::Span<const uint8_t> now) {
              AppendDifferences(content.address + offset, now.data(),
                                expected.data() + offset, now.size(),
                                Checkpoint::kMergeBytes, differs);
            });
        !s.ok()) {
      return s;
    }
  }
  const RunDifference left{differs.Minus(serial.memory.Rounded(kExplainBlock)),
                           {}};
  verdict.differing_bytes = left.memory.bytes();
  if (left.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<Finding>> findings =
      Describe(session, left, options.max_findings);
  if (!findings.ok()) return findings.status();
  verdict.findings = *std::move(findings);
  return absl::OkStatus();
}

}  // namespace

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kWithinSerial:
      return "within-serial";
    case Verdict::kDifferent:
      return "different";
  }
  return "unknown";
}

Verdict InputVerdict::verdict() const {
  Verdict worst = Verdict::kIdentical;
  for (const FormVerdict& form : forms) worst = std::max(worst, form.verdict);
  return worst;
}

absl::StatusOr<VerifyResult> Verify(Session& session,
                                    const VerifyOptions& options) {
  VerifyResult result;
  absl::StatusOr<std::unique_ptr<Executor>> serial = session.NewSerial();
  if (!serial.ok()) return serial.status();
  absl::StatusOr<std::unique_ptr<Executor>> graph =
      session.NewGraph(options.graph);
  if (!graph.ok()) return graph.status();
  std::vector<Executor*> forms = {graph->get()};
  forms.insert(forms.end(), options.others.begin(), options.others.end());
  result.passed = true;
  // The first input last, so that the session ends with it.
  for (int number = options.inputs; number >= 1; --number) {
    session.Report(absl::StrCat("verifying on input ", number));
    absl::StatusOr<Session::Input> input = session.LoadInput(number);
    if (!input.ok()) return input.status();
    InputVerdict verdict;
    verdict.input = number;
    verdict.changed_bytes = input->changed;
    Comparison comparison(session);
    if (absl::Status s = comparison.SetReference(**serial); !s.ok()) return s;
    verdict.serial_runs = 1;
    verdict.compared_bytes =
        session.image().bytes() + comparison.output_bytes();
    verdict.written_bytes = comparison.changed_bytes();
    verdict.output_bytes = comparison.output_bytes();
    RunDifference serial_difference;
    const auto run_serial = [&]() {
      absl::StatusOr<RunDifference> again = comparison.Run(**serial);
      if (!again.ok()) return again.status();
      Add(serial_difference, *again);
      ++verdict.serial_runs;
      return absl::OkStatus();
    };
    if (absl::Status s = run_serial(); !s.ok()) return s;
    std::vector<RunDifference> differences(forms.size());
    for (size_t f = 0; f < forms.size(); ++f) {
      FormVerdict& form = verdict.forms.emplace_back();
      form.name = forms[f]->name();
      for (int i = 0; i < options.runs; ++i) {
        absl::StatusOr<RunDifference> run = comparison.Run(*forms[f]);
        if (!run.ok()) return run.status();
        Add(differences[f], *run);
        ++form.runs;
      }
    }
    const auto explained = [&] {
      return std::all_of(
          differences.begin(), differences.end(),
          [&](const RunDifference& difference) {
            return Unexplained(difference, serial_difference).empty();
          });
    };
    while (verdict.serial_runs < options.max_serial_runs && !explained()) {
      if (absl::Status s = run_serial(); !s.ok()) return s;
    }
    verdict.serial_differing_bytes = serial_difference.bytes();
    for (size_t f = 0; f < forms.size(); ++f) {
      if (absl::Status s = Judge(session, differences[f], serial_difference,
                                 options.max_findings, verdict.forms[f]);
          !s.ok()) {
        return s;
      }
    }
    if (verdict.verdict() == Verdict::kDifferent) result.passed = false;
    if (number == 1 && !session.program().after.empty()) {
      if (absl::Status s = session.Reset(); !s.ok()) return s;
      if (absl::Status s = RunAndWait(session.driver(), **serial); !s.ok()) {
        return s;
      }
      if (absl::Status s = CompareOriginal(session, serial_difference, options,
                                           result.original);
          !s.ok()) {
        return s;
      }
    }
    if (!serial_difference.empty()) {
      if (absl::Status s = FindKernels(session, serial_difference,
                                       comparison.written(), verdict);
          !s.ok()) {
        return s;
      }
    }
    session.SetWritten(comparison.written());
    result.inputs.insert(result.inputs.begin(), std::move(verdict));
  }
  // The change is counted at the input loaded second.
  if (result.inputs.size() > 1) {
    std::swap(result.inputs[0].changed_bytes, result.inputs[1].changed_bytes);
    if (result.inputs[1].changed_bytes == 0) {
      result.notes.push_back(
          "the second input equals the first: the memory holds nothing that "
          "looks like floating-point data");
    }
  }
  // Where the program itself is not repeatable, its memory may differ as well.
  const bool repeatable = std::all_of(
      result.inputs.begin(), result.inputs.end(),
      [](const InputVerdict& v) { return v.serial_differing_bytes == 0; });
  if (result.original.differing_bytes != 0 && repeatable) {
    result.passed = false;
  }
  return result;
}

}  // namespace heddle::replay
