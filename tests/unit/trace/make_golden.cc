// SPDX-License-Identifier: Apache-2.0

// Writes the golden trace of the current version of the format, and what a
// reader must find in it:
//
//   cmake --build build --target make_golden_trace
//   build/bin/make_golden_trace traces/golden-v1
//
// It is run once for every version. The files are never written again: they
// stand for the traces that users have kept.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/packed.h"
#include "runtime/trace/writer.h"
#include "tests/unit/trace/golden.h"
#include "tests/unit/trace/schema_samples.h"

namespace {

using heddle::trace::GoldenText;
using heddle::trace::Reader;
using heddle::trace::SchemaSamples;
using heddle::trace::Writer;

void Append(Writer& writer, heddle::trace::PackedBlock& block) {
  const flatbuffers::DetachedBuffer payload = block.Finish(/*level=*/3);
  writer.Append(heddle::fb::RecordType::kPacked,
                absl::MakeConstSpan(payload.data(), payload.size()));
}

absl::Status MakeGolden(const std::string& base) {
  const std::string path = base + ".htrace";
  SchemaSamples samples;
  {
    heddle::trace::WriterOptions options;
    options.rank = 3;
    absl::StatusOr<std::unique_ptr<Writer>> writer =
        Writer::Create(path, options);
    if (!writer.ok()) return writer.status();
    for (const std::string& table : SchemaSamples::RecordTables()) {
      if (table == "Blob") continue;
      for (const uint32_t seed : {1u, 2u}) {
        (*writer)->Append(SchemaSamples::TypeOf(table),
                          samples.Payload(table, seed));
      }
    }
    // Blobs: empty, raw, compressed, in two pieces.
    const std::vector<uint8_t> raw = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
    (*writer)->AppendBlob({});
    (*writer)->AppendBlob(raw);
    (*writer)->AppendBlob(std::vector<uint8_t>(3000, 0x5a));
    (*writer)->AppendBlob(std::vector<uint8_t>(5 << 20, 0));
    // Blocks of packed records: one that is raw and one that is compressed.
    heddle::trace::PackedBlock block;
    block.Add(heddle::fb::RecordType::kStream, samples.Payload("Stream", 3));
    Append(**writer, block);
    for (uint32_t seed = 3; seed < 7; ++seed) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        block.Add(heddle::fb::RecordType::kLaunch,
                  samples.Payload("Launch", seed));
      }
      block.Add(static_cast<heddle::fb::RecordType>(60'001), raw);
    }
    Append(**writer, block);
    // What readers of this version must skip, and keep.
    (*writer)->Append(heddle::fb::RecordType::kPad, raw);
    (*writer)->Append(static_cast<heddle::fb::RecordType>(60'000), raw);
    if (absl::Status status = (*writer)->Close(); !status.ok()) return status;
  }
  const absl::StatusOr<std::unique_ptr<Reader>> reader = Reader::Open(path);
  if (!reader.ok()) return reader.status();
  std::ofstream text(base + ".jsonl");
  for (const std::string& line : GoldenText(samples, **reader)) {
    text << line << '\n';
  }
  return text.good() ? absl::OkStatus()
                     : absl::UnknownError("cannot write " + base + ".jsonl");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden_trace PATH-WITHOUT-EXTENSION\n");
    return 2;
  }
  const absl::Status status = MakeGolden(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
