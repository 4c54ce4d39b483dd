// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/trace/packed.h"
#include "tools/blob_codec.h"
#include "tools/command.h"
#include "tools/names.h"
#include "tools/progress.h"
#include "tools/trace_args.h"
#include "tools/trace_output.h"

namespace heddle::tools {
namespace {

// A block ends at this size, uncompressed: a reader unpacks it whole.
constexpr uint64_t kBlockBytes = 32u << 20;
// Smaller pieces of blobs go into the block, where they are compressed with
// their like; larger ones stay what they are.
constexpr uint64_t kSmallPieceBytes = 256u << 10;
// zstd level of blobs of an unpacked trace, as the recorder's.
constexpr int kUnpackedLevel = 1;

absl::Span<const uint8_t> SpanOf(const flatbuffers::DetachedBuffer& buffer) {
  return absl::MakeConstSpan(buffer.data(), buffer.size());
}

class Packer {
 public:
  Packer(TraceOutput* output, int level) : output_(output), level_(level) {}

  absl::Status Add(const trace::Record& record) {
    if (const auto* piece = record.As<fb::Blob>(); piece != nullptr) {
      return AddPiece(*piece);
    }
    // The last record stays outside, where a reader of the file's end finds
    // it.
    if (record.type == fb::RecordType::kEnd ||
        record.payload.size() > kBlockBytes) {
      Flush();
      output_->Copy(record);
    } else {
      AddToBlock(record.type, record.payload);
    }
    return absl::OkStatus();
  }

  void Flush() {
    if (block_.empty()) return;
    const flatbuffers::DetachedBuffer payload = block_.Finish(level_);
    output_->writer().Append(fb::RecordType::kPacked, SpanOf(payload));
  }

 private:
  void AddToBlock(fb::RecordType type, absl::Span<const uint8_t> payload) {
    if (block_.bytes() + payload.size() > kBlockBytes) Flush();
    block_.Add(type, payload);
  }

  absl::Status AddPiece(const fb::Blob& piece) {
    absl::StatusOr<std::vector<uint8_t>> bytes = PieceBytes(piece);
    if (!bytes.ok()) return bytes.status();
    if (bytes->size() <= kSmallPieceBytes) {
      AddToBlock(fb::RecordType::kBlob,
                 SpanOf(EncodePiece(piece, *bytes, /*level=*/0)));
    } else {
      Flush();
      output_->writer().Append(fb::RecordType::kBlob,
                               SpanOf(EncodePiece(piece, *bytes, level_)));
    }
    return absl::OkStatus();
  }

  TraceOutput* const output_;
  const int level_;
  trace::PackedBlock block_;
};

absl::Status Unpacked(const trace::Record& record, TraceOutput* output) {
  const auto* piece = record.As<fb::Blob>();
  if (piece == nullptr) {
    output->Copy(record);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<uint8_t>> bytes = PieceBytes(*piece);
  if (!bytes.ok()) return bytes.status();
  output->writer().Append(fb::RecordType::kBlob,
                          SpanOf(EncodePiece(*piece, *bytes, kUnpackedLevel)));
  return absl::OkStatus();
}

// A trace that was cut gets a proper end, which says so.
void AddEnd(const trace::Reader& reader, TraceOutput* output) {
  if (!reader.truncated()) return;
  fb::EndT end;
  end.records = reader.records().size();
  end.reason =
      absl::StrCat("the recording was truncated ", reader.truncation());
  output->writer().AppendObject(end);
}

bool SameRecord(const trace::Record& a, const trace::Record& b) {
  if (a.type != b.type) return false;
  const auto* piece_a = a.As<fb::Blob>();
  if (piece_a == nullptr) return a.payload == b.payload;
  const auto* piece_b = b.As<fb::Blob>();
  const auto bytes_a = PieceBytes(*piece_a);
  const auto bytes_b = PieceBytes(*piece_b);
  const auto hash_of = [](const fb::Blob& piece) {
    return piece.hash() == nullptr
               ? trace::Hash128{}
               : trace::Hash128{piece.hash()->lo(), piece.hash()->hi()};
  };
  return bytes_a.ok() && bytes_b.ok() && *bytes_a == *bytes_b &&
         hash_of(*piece_a) == hash_of(*piece_b) &&
         piece_a->size() == piece_b->size() &&
         piece_a->offset() == piece_b->offset();
}

absl::Status CheckSame(const trace::Reader& before,
                       const trace::Reader& after) {
  const uint64_t expected =
      before.records().size() + (before.truncated() ? 1 : 0);
  bool same = after.records().size() == expected;
  for (uint64_t i = 0; same && i < before.records().size(); ++i) {
    same = SameRecord(before.records()[i], after.records()[i]);
  }
  if (same) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the new file is not the same trace as ", before.path(),
                   ", which was left as it is; this is a bug in heddle"));
}

absl::StatusOr<int> Run(Invocation& call) {
  int64_t level = 12;
  bool unpack = false;
  std::string output_path;
  call.flags()
      .Int("level", "LEVEL", &level, "zstd level, 1 (fast) to 22 (small)")
      .Bool("unpack", &unpack, "undo it: records as the recorder writes them")
      .String("output", "FILE", &output_path,
              "write to this file instead of changing TRACE")
      .Short('o');
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (level < 1 || level > 22) {
    return call.UsageError("--level: expected a zstd level, 1 to 22");
  }
  const std::string& path = call.positional()[0];
  auto reader = OpenTrace(path);
  if (!reader.ok()) return reader.status();
  if (absl::Status status = CheckNotBeingWritten(path); !status.ok()) {
    return status;
  }
  if (output_path.empty()) output_path = path;
  auto output =
      TraceOutput::Create(output_path, **reader, static_cast<int>(level));
  if (!output.ok()) return output.status();

  Packer packer(output->get(), static_cast<int>(level));
  {
    Progress progress(unpack ? "unpacking" : "packing",
                      (*reader)->records().size());
    for (const trace::Record& record : (*reader)->records()) {
      absl::Status status =
          unpack ? Unpacked(record, output->get()) : packer.Add(record);
      if (!status.ok()) return status;
      progress.Update(record.index);
    }
    packer.Flush();
    AddEnd(**reader, output->get());
  }
  uint64_t size = 0;
  absl::Status status = (*output)->Commit([&](const trace::Reader& after) {
    size = after.file_size();
    return CheckSame(**reader, after);
  });
  if (!status.ok()) return status;
  std::printf("%s: %s -> %s\n", output_path.c_str(),
              Bytes((*reader)->file_size()).c_str(), Bytes(size).c_str());
  return kExitOk;
}

}  // namespace

const Command& PackCommand() {
  static constexpr Command kCommand = {
      .name = "pack",
      .synopsis = "make a trace smaller, in place",
      .arguments = "[flags] TRACE",
      .help =
          "Compresses records together, so that launches that are repeated "
          "cost a few bytes\neach, and code and memory at a higher level. "
          "Every verb reads a packed trace as it\nreads any other; numbers of "
          "records stay what they are. The new file is written\nbeside the "
          "old one, read back, compared with it and only then takes its "
          "place. The\nunused tail that a killed program leaves is dropped.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
