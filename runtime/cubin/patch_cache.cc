// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/patch_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/byte_reader.h"

namespace heddle::cubin {
namespace {

constexpr uint64_t kMagic = 0x31484354'50444448;  // "HDDPTCH1"
constexpr absl::string_view kSuffix = ".patch";

// Then: the key, the kernels, the image. The checksum is of all that.
struct EntryHeader {
  uint64_t magic;
  uint64_t checksum;
  uint64_t image_size;
  uint32_t key_size;
  uint32_t kernels;
};
struct KernelHeader {
  uint32_t name_size;
  uint32_t reason_size;
  uint32_t hidden_offset;
  uint32_t hidden_ordinal;
  uint32_t patched;
};

template <typename T>
void Append(const T& value, std::vector<uint8_t>* out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof(T));
}

void AppendText(absl::string_view text, std::vector<uint8_t>* out) {
  out->insert(out->end(), text.begin(), text.end());
}

std::vector<uint8_t> Encode(absl::string_view key, const PatchedImage& image) {
  EntryHeader header{kMagic, 0, image.image.size(),
                     static_cast<uint32_t>(key.size()),
                     static_cast<uint32_t>(image.kernels.size())};
  std::vector<uint8_t> out;
  out.reserve(sizeof(header) + image.image.size() + image.kernels.size() * 256);
  Append(header, &out);
  AppendText(key, &out);
  for (const KernelPatch& kernel : image.kernels) {
    Append(KernelHeader{static_cast<uint32_t>(kernel.name.size()),
                        static_cast<uint32_t>(kernel.reason.size()),
                        kernel.hidden_offset, kernel.hidden_ordinal,
                        kernel.patched ? 1U : 0U},
           &out);
    AppendText(kernel.name, &out);
    AppendText(kernel.reason, &out);
  }
  out.insert(out.end(), image.image.begin(), image.image.end());
  header.checksum =
      XXH3_64bits(out.data() + sizeof(header), out.size() - sizeof(header));
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

// Takes bytes off the front of an entry; empty and false once it is too short.
class EntryReader {
 public:
  explicit EntryReader(Bytes rest) : rest_(rest) {}
  Bytes Take(uint64_t size) {
    if (size > rest_.size()) {
      good_ = false;
      return {};
    }
    const Bytes taken = rest_.first(size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string TakeText(uint64_t size) {
    const Bytes text = Take(size);
    return std::string(text.begin(), text.end());
  }
  template <typename T>
  T TakeValue() {
    T value{};
    ReadAt(Take(sizeof(T)), 0, &value);
    return value;
  }
  Bytes rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  Bytes rest_;
  bool good_ = true;
};

std::optional<PatchedImage> Decode(Bytes entry, absl::string_view key) {
  EntryReader reader(entry);
  const auto header = reader.TakeValue<EntryHeader>();
  if (!reader.good() || header.magic != kMagic ||
      header.checksum !=
          XXH3_64bits(reader.rest().data(), reader.rest().size()) ||
      reader.TakeText(header.key_size) != key) {
    return std::nullopt;
  }
  PatchedImage image;
  for (uint32_t i = 0; i < header.kernels && reader.good(); ++i) {
    const auto kernel = reader.TakeValue<KernelHeader>();
    KernelPatch patch;
    patch.name = reader.TakeText(kernel.name_size);
    patch.reason = reader.TakeText(kernel.reason_size);
    patch.hidden_offset = kernel.hidden_offset;
    patch.hidden_ordinal = kernel.hidden_ordinal;
    patch.patched = kernel.patched != 0;
    image.kernels.push_back(std::move(patch));
  }
  if (!reader.good() || reader.rest().size() != header.image_size) {
    return std::nullopt;
  }
  image.image.assign(reader.rest().begin(), reader.rest().end());
  return image;
}

}  // namespace

std::string PatchCache::DefaultFolder() { return CacheFolder::DefaultPath(); }

std::unique_ptr<PatchCache> PatchCache::Open(const std::string& folder,
                                             uint64_t max_bytes) {
  std::unique_ptr<CacheFolder> files =
      CacheFolder::Open(folder, std::string(kSuffix), max_bytes);
  if (files == nullptr) return nullptr;
  return std::unique_ptr<PatchCache>(new PatchCache(std::move(files)));
}

std::string PatchCache::Key(absl::Span<const uint8_t> cubin,
                            const PatchOptions& options) {
  const XXH128_hash_t hash = XXH3_128bits(cubin.data(), cubin.size());
  return absl::StrCat(absl::Hex(hash.high64, absl::kZeroPad16),
                      absl::Hex(hash.low64, absl::kZeroPad16), "-",
                      static_cast<int>(options.prologue), "-",
                      options.hidden_parameter_bytes, "-", PatcherVersion());
}

std::optional<PatchedImage> PatchCache::Load(absl::string_view key) const {
  const std::optional<std::vector<uint8_t>> bytes = files_->Load(key);
  if (!bytes.has_value()) return std::nullopt;
  std::optional<PatchedImage> image = Decode(*bytes, key);
  if (image.has_value()) files_->Touch(key);
  return image;
}

void PatchCache::Store(absl::string_view key, const PatchedImage& image) const {
  files_->Store(key, Encode(key, image));
}

absl::StatusOr<PatchedImage> PatchCubinCached(absl::Span<const uint8_t> cubin,
                                              const PatchOptions& options,
                                              PatchCache* cache) {
  if (cache == nullptr) return PatchCubin(cubin, options);
  const std::string key = PatchCache::Key(cubin, options);
  if (std::optional<PatchedImage> image = cache->Load(key)) {
    return *std::move(image);
  }
  absl::StatusOr<PatchedImage> image = PatchCubin(cubin, options);
  if (image.ok()) cache->Store(key, *image);
  return image;
}

}  // namespace heddle::cubin
