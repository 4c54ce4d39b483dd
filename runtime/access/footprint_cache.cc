// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/footprint_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <utility>
#include <vector>

#include "heddle/footprint_generated.h"

namespace heddle::access {
namespace {

constexpr char kSuffix[] = ".access";
constexpr uint64_t kMagic = 0x31534343'41444448;  // "HDDACCS1"

struct FileHeader {
  uint64_t magic;
  uint64_t checksum;  // of what follows
};

template <typename T>
void Append(const T& value, std::string* key) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Text(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

}  // namespace

std::string ShapeKey(absl::string_view kernel, const LaunchValues& launch) {
  std::string key(kernel);
  key.push_back('\0');
  Append(launch.grid, &key);
  Append(launch.block, &key);
  Append(launch.param_base, &key);
  std::vector<uint8_t> params(launch.params.begin(), launch.params.end());
  for (const uint32_t at : launch.pointers) {
    Append(at, &key);
    std::memset(params.data() + at + 1, 0, 7);
  }
  key.append(params.begin(), params.end());
  return key;
}

absl::string_view AnalysisVersion() { return HEDDLE_ANALYSIS_VERSION; }

std::unique_ptr<cubin::CacheFolder> OpenFootprintFolder(
    const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  return cubin::CacheFolder::Open(path, kSuffix, kMostBytes);
}

FootprintCache::FootprintCache(const cubin::CacheFolder* folder,
                               std::string image)
    : folder_(folder), image_(std::move(image)) {
  if (folder_ == nullptr) return;
  const auto bytes = folder_->Load(image_);
  if (!bytes.has_value()) return;
  Read(*bytes);
  if (!entries_.empty()) folder_->Touch(image_);
}

FootprintCache::~FootprintCache() { Save(); }

void FootprintCache::Read(absl::Span<const uint8_t> bytes) {
  FileHeader header;
  if (bytes.size() < sizeof(header)) return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  if (header.magic != kMagic ||
      header.checksum != XXH3_64bits(bytes.data(), bytes.size())) {
    return;
  }
  flatbuffers::Verifier::Options options;
  options.max_tables = 10'000'000;
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), options);
  if (!fb::VerifyEntriesBuffer(verifier)) return;
  const fb::Entries* file = fb::GetEntries(bytes.data());
  if (Text(file->version()) != AnalysisVersion() ||
      file->entries() == nullptr) {
    return;
  }
  for (const fb::Entry* entry : *file->entries()) {
    auto kernel = std::make_unique<KernelFootprint>();
    kernel->unknown = Text(entry->unknown());
    kernel->instructions = entry->instructions();
    kernel->sweeps = entry->sweeps();
    if (entry->footprints() != nullptr) {
      for (const fb::Footprint* part : *entry->footprints()) {
        // Enumerators that there are not: nothing of the file can be trusted.
        if (part->mode() > static_cast<uint8_t>(Mode::kAtomic)) {
          entries_.clear();
          return;
        }
        Footprint footprint;
        footprint.offset = part->offset();
        footprint.name = Text(part->name());
        footprint.mode = static_cast<Mode>(part->mode());
        footprint.bytes = part->bytes();
        footprint.generic = part->generic();
        footprint.pointer = part->pointer();
        footprint.origins = part->origins();
        footprint.bounded = part->bounded();
        footprint.lo = part->lo();
        footprint.hi = part->hi();
        footprint.constant = part->constant();
        footprint.tensor_map = part->tensor_map();
        if (part->terms() != nullptr) {
          for (const fb::Term* term : *part->terms()) {
            footprint.terms.push_back({static_cast<SymbolKind>(term->kind()),
                                       term->axis(), term->coefficient(),
                                       term->lo(), term->hi()});
          }
        }
        kernel->footprints.push_back(std::move(footprint));
      }
    }
    entries_[std::string(entry->key()->begin(), entry->key()->end())] =
        std::move(kernel);
  }
}

const KernelFootprint* FootprintCache::Find(const std::string& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second.get();
}

const KernelFootprint& FootprintCache::Add(const std::string& key,
                                           KernelFootprint footprint) {
  changed_ = true;
  std::unique_ptr<KernelFootprint>& entry = entries_[key];
  entry = std::make_unique<KernelFootprint>(std::move(footprint));
  return *entry;
}

void FootprintCache::Save() {
  if (!changed_ || folder_ == nullptr) return;
  changed_ = false;
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::Entry>> entries;
  for (const auto& [key, kernel] : entries_) {
    std::vector<flatbuffers::Offset<fb::Footprint>> parts;
    for (const Footprint& part : kernel->footprints) {
      std::vector<fb::Term> terms;
      for (const AddressTerm& term : part.terms) {
        terms.emplace_back(term.coefficient, term.lo, term.hi,
                           static_cast<uint8_t>(term.kind), term.axis);
      }
      const auto name = builder.CreateSharedString(part.name);
      const auto of_terms = builder.CreateVectorOfStructs(terms);
      parts.push_back(fb::CreateFootprint(
          builder, part.offset, name, static_cast<uint8_t>(part.mode),
          part.bytes, part.generic, part.pointer, part.origins, part.bounded,
          part.lo, part.hi, part.constant, of_terms, part.tensor_map));
    }
    const auto of_key = builder.CreateVector(
        reinterpret_cast<const uint8_t*>(key.data()), key.size());
    const auto unknown = builder.CreateString(kernel->unknown);
    const auto of_parts = builder.CreateVector(parts);
    entries.push_back(fb::CreateEntry(builder, of_key, unknown,
                                      kernel->instructions, kernel->sweeps,
                                      of_parts));
  }
  const auto version =
      builder.CreateString(AnalysisVersion().data(), AnalysisVersion().size());
  const auto of_entries = builder.CreateVector(entries);
  builder.Finish(fb::CreateEntries(builder, version, of_entries));
  const FileHeader header{
      kMagic, XXH3_64bits(builder.GetBufferPointer(), builder.GetSize())};
  std::vector<uint8_t> bytes(sizeof(header) + builder.GetSize());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), builder.GetBufferPointer(),
              builder.GetSize());
  folder_->Store(image_, bytes);
}

}  // namespace heddle::access
