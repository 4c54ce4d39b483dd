// SPDX-License-Identifier: Apache-2.0
#include "tools/trace_args.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heddle::tools {
namespace {

// Kernels that a record names: the launched one, the described one.
std::optional<uint32_t> KernelOf(const trace::Record& record) {
  if (const auto* launch = record.As<fb::Launch>(); launch != nullptr) {
    if (launch->head() != nullptr) return launch->head()->kernel();
  } else if (const auto* kernel = record.As<fb::Kernel>(); kernel != nullptr) {
    return kernel->id();
  } else if (const auto* attribute = record.As<fb::KernelAttribute>();
             attribute != nullptr) {
    return attribute->kernel();
  }
  return std::nullopt;
}

absl::StatusOr<fb::RecordType> TypeByName(const std::string& name) {
  std::vector<std::string> names;
  std::string nearest;
  int best = 3;
  for (const fb::RecordType type : fb::EnumValuesRecordType()) {
    const std::string candidate = trace::RecordTypeName(type);
    if (candidate == name) return type;
    if (const int distance = EditDistance(candidate, name); distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--type: there is no record type \"", name, "\"",
      nearest.empty() ? ", try launch, memcpy, memset, alloc, free, graph, ..."
                      : absl::StrCat(", did you mean \"", nearest, "\"?")));
}

}  // namespace

absl::StatusOr<std::unique_ptr<trace::Reader>> OpenTrace(
    const std::string& path, bool quiet) {
  absl::StatusOr<std::unique_ptr<trace::Reader>> reader =
      trace::Reader::Open(path);
  if (reader.ok() && !quiet && (*reader)->truncated()) {
    std::fprintf(stderr, "note: %s is truncated %s\n", path.c_str(),
                 (*reader)->truncation().c_str());
  }
  return reader;
}

void RecordFilter::Declare(FlagSet* flags) {
  flags->String("calls", "SET", &calls_text_,
                "records to show, e.g. 100-120,200/2 or step3");
  flags->String("kernel", "REGEX", &kernel_text_,
                "launches whose kernel's name contains a match");
  flags->List("type", "LIST", &type_names_, "record types, e.g. launch,memcpy");
  flags->String("by", "SOURCE", &steps_by_,
                "what a step is: auto, recorded, graph, nvtx[:NAME], "
                "repeat[:N]");
}

absl::Status RecordFilter::Prepare(const trace::Reader& reader) {
  calls_ = CallSet::All();
  if (!calls_text_.empty()) {
    absl::StatusOr<CallSet> calls = CallSet::Parse(calls_text_, [&] {
      return trace::FindSteps(reader, {.by = steps_by_});
    });
    if (!calls.ok()) return calls.status();
    calls_ = *std::move(calls);
  }
  if (!kernel_text_.empty()) {
    try {
      kernel_ = std::regex(kernel_text_, std::regex::ECMAScript);
    } catch (const std::regex_error& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("--kernel: \"", kernel_text_, "\": ", error.what()));
    }
  }
  for (const std::string& name : type_names_) {
    absl::StatusOr<fb::RecordType> type = TypeByName(name);
    if (!type.ok()) return type.status();
    types_.insert(*type);
  }
  return absl::OkStatus();
}

bool RecordFilter::Contains(const trace::Record& record,
                            const KernelNames& names) const {
  if (!types_.empty() && !types_.contains(record.type)) return false;
  if (!calls_->Contains(record.index)) return false;
  if (!kernel_.has_value()) return true;
  const std::optional<uint32_t> kernel = KernelOf(record);
  if (!kernel.has_value()) return false;
  const auto [found, is_new] = matched_.try_emplace(*kernel, false);
  if (is_new) found->second = std::regex_search(names.Name(*kernel), *kernel_);
  return found->second;
}

}  // namespace heddle::tools
