// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/patch_cache.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/byte_reader.h"

namespace heddle::cubin {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMagic = 0x31484354'50444448;  // "HDDPTCH1"
constexpr absl::string_view kSuffix = ".patch";
constexpr absl::string_view kTemporarySuffix = ".tmp";
// What a process that was killed left behind is younger than that only while
// another one may still be writing it.
constexpr time_t kTemporarySeconds = 3600;

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

std::optional<std::vector<uint8_t>> ReadAll(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

bool WriteAll(int file, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// What is there is run on the device: the folder must be the user's own.
bool IsOurs(const std::string& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & S_IWOTH) == 0 &&
         access(folder.c_str(), R_OK | W_OK | X_OK) == 0;
}

}  // namespace

std::string PatchCache::DefaultFolder() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  std::string folder = variable("HEDDLE_CACHE_DIR");
  if (!folder.empty()) return folder;
  folder = variable("XDG_CACHE_HOME");
  if (!folder.empty()) return folder + "/heddle";
  folder = variable("HOME");
  return folder.empty() ? "" : folder + "/.cache/heddle";
}

std::unique_ptr<PatchCache> PatchCache::Open(const std::string& folder,
                                             uint64_t max_bytes) {
  if (folder.empty()) return nullptr;
  std::error_code error;
  const fs::path parent = fs::path(folder).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  mkdir(folder.c_str(), S_IRWXU);
  if (!IsOurs(folder)) return nullptr;
  return std::unique_ptr<PatchCache>(new PatchCache(folder, max_bytes));
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
  const std::string path = absl::StrCat(folder_, "/", key, kSuffix);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const absl::Cleanup close_file = [file] { close(file); };
  const std::optional<std::vector<uint8_t>> bytes = ReadAll(file);
  if (!bytes.has_value()) return std::nullopt;
  std::optional<PatchedImage> image = Decode(*bytes, key);
  // The time of change is the time of the last use; see Evict.
  if (image.has_value()) futimens(file, nullptr);
  return image;
}

void PatchCache::Store(absl::string_view key, const PatchedImage& image) const {
  const std::vector<uint8_t> bytes = Encode(key, image);
  if (bytes.size() > max_bytes_) return;
  static std::atomic<uint64_t> counter = 0;
  const std::string temporary =
      absl::StrCat(folder_, "/.", getpid(), ".", counter++, ".",
                   XXH3_64bits(key.data(), key.size()), kTemporarySuffix);
  const int file =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
           S_IRUSR | S_IWUSR);
  if (file < 0) return;
  const bool written = WriteAll(file, bytes);
  const std::string path = absl::StrCat(folder_, "/", key, kSuffix);
  if (close(file) != 0 || !written ||
      rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  Evict();
}

void PatchCache::Evict() const {
  struct File {
    std::string path;
    timespec used;
    uint64_t bytes;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    const bool temporary = absl::EndsWith(path, kTemporarySuffix);
    struct stat status {};
    if ((!temporary && !absl::EndsWith(path, kSuffix)) ||
        lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    if (temporary) {
      if (time(nullptr) - status.st_mtime > kTemporarySeconds) {
        unlink(path.c_str());
      }
      continue;
    }
    files.push_back(
        {path, status.st_mtim, static_cast<uint64_t>(status.st_size)});
    total += files.back().bytes;
  }
  if (total <= max_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.path) <
           std::tie(b.used.tv_sec, b.used.tv_nsec, b.path);
  });
  for (const File& file : files) {
    if (total <= max_bytes_) break;
    unlink(file.path.c_str());
    total -= file.bytes;
  }
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
