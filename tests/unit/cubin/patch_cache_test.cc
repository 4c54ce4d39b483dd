// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/patch_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

namespace fs = std::filesystem;

class PatchCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/heddle_cache_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    folder_ = root_ + "/deep/cache";
    image_ = TestImage("patch.sm_90.cubin");
    ASSERT_FALSE(image_.empty());
  }
  void TearDown() override { fs::remove_all(root_); }

  // Another image for each number: what is added behind it belongs to nothing.
  std::vector<uint8_t> Image(uint8_t number) const {
    std::vector<uint8_t> image = image_;
    image.push_back(number);
    return image;
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      files.push_back(entry.path());
    }
    return files;
  }
  static void ExpectSame(const absl::StatusOr<PatchedImage>& a,
                         const absl::StatusOr<PatchedImage>& b) {
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    EXPECT_EQ(a->image, b->image);
    EXPECT_EQ(a->kernels, b->kernels);
  }

  std::string root_;
  std::string folder_;
  std::vector<uint8_t> image_;
};

TEST_F(PatchCacheTest, TheSecondTimeComesFromDisk) {
  const std::unique_ptr<PatchCache> cache = PatchCache::Open(folder_);
  ASSERT_NE(cache, nullptr);
  const PatchOptions options{Prologue::kTriggerWait, 16};
  const std::string key = PatchCache::Key(image_, options);
  EXPECT_FALSE(cache->Load(key).has_value());
  ExpectSame(PatchCubinCached(image_, options, cache.get()),
             PatchCubin(image_, options));
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_EQ(fs::status(folder_).permissions() & fs::perms::others_all,
            fs::perms::none);
  // What is on disk is what is returned: put another image there.
  PatchedImage other;
  other.image = {1, 2, 3};
  other.kernels = {{"a", true, "", 8, 2}, {"b", false, "because", 0, 0}};
  cache->Store(key, other);
  ExpectSame(PatchCubinCached(image_, options, cache.get()), other);
}

TEST_F(PatchCacheTest, AnotherImageOrAnotherOptionIsAnotherEntry) {
  const std::unique_ptr<PatchCache> cache = PatchCache::Open(folder_);
  size_t entries = 0;
  for (const uint8_t number : {1, 2}) {
    for (const Prologue prologue : {Prologue::kWait, Prologue::kWaitTrigger}) {
      for (const uint32_t hidden : {0, 8}) {
        const PatchOptions options{prologue, hidden};
        ExpectSame(PatchCubinCached(Image(number), options, cache.get()),
                   PatchCubin(Image(number), options));
        EXPECT_EQ(Files().size(), ++entries);
      }
    }
  }
  EXPECT_NE(PatchCache::Key(image_, {}).find(PatcherVersion()),
            std::string::npos);
}

TEST_F(PatchCacheTest, ErrorsAreNotKept) {
  const std::unique_ptr<PatchCache> cache = PatchCache::Open(folder_);
  const std::vector<uint8_t> older = TestImage("kernels.sm_80.cubin");
  EXPECT_FALSE(PatchCubinCached(older, {}, cache.get()).ok());
  EXPECT_TRUE(Files().empty());
}

TEST_F(PatchCacheTest, ADamagedEntryIsIgnoredAndReplaced) {
  const std::unique_ptr<PatchCache> cache = PatchCache::Open(folder_);
  const absl::StatusOr<PatchedImage> expected = PatchCubin(image_, {});
  ExpectSame(PatchCubinCached(image_, {}, cache.get()), expected);
  const fs::path file = Files().at(0);
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> intact(std::istreambuf_iterator<char>(in), {});
  const auto write = [&](const std::vector<char>& bytes) {
    std::ofstream(file, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  for (size_t at = 0; at < intact.size(); at += 1 + at / 4) {
    std::vector<char> damaged = intact;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    write(damaged);
    ASSERT_FALSE(cache->Load(PatchCache::Key(image_, {})).has_value()) << at;
    damaged.resize(at);
    write(damaged);
    ASSERT_FALSE(cache->Load(PatchCache::Key(image_, {})).has_value()) << at;
  }
  ExpectSame(PatchCubinCached(image_, {}, cache.get()), expected);
  EXPECT_EQ(fs::file_size(file), intact.size());
  // An entry under another name is not taken for it.
  fs::rename(file, folder_ + "/" + PatchCache::Key(Image(1), {}) + ".patch");
  EXPECT_FALSE(cache->Load(PatchCache::Key(Image(1), {})).has_value());
}

TEST_F(PatchCacheTest, TheLeastRecentlyUsedGoFirst) {
  const absl::StatusOr<PatchedImage> patched = PatchCubin(Image(0), {});
  ASSERT_TRUE(patched.ok());
  const uint64_t entry = patched->image.size() + 2048;  // and the kernels
  const std::unique_ptr<PatchCache> cache =
      PatchCache::Open(folder_, 3 * entry);
  const auto has = [&](uint8_t number) {
    return fs::exists(folder_ + "/" + PatchCache::Key(Image(number), {}) +
                      ".patch");
  };
  // File times may be as coarse as a tick of the kernel's clock.
  const auto use = [&](uint8_t number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(PatchCubinCached(Image(number), {}, cache.get()).ok());
  };
  use(0);
  use(1);
  use(2);
  EXPECT_TRUE(has(0) && has(1) && has(2));
  use(0);  // 1 is now the oldest
  use(3);
  EXPECT_TRUE(has(0) && !has(1) && has(2) && has(3));
  for (uint8_t number = 4; number < 20; ++number) {
    use(number);
    EXPECT_LE(Files().size(), 3u);
    EXPECT_TRUE(has(number));
  }
}

TEST_F(PatchCacheTest, WhatIsTooLargeIsNotKept) {
  const std::unique_ptr<PatchCache> cache = PatchCache::Open(folder_, 1000);
  EXPECT_TRUE(PatchCubinCached(image_, {}, cache.get()).ok());
  EXPECT_TRUE(Files().empty());
}

TEST_F(PatchCacheTest, FilesOfOthersAreLeftAlone) {
  const std::unique_ptr<PatchCache> cache = PatchCache::Open(folder_, 60000);
  std::ofstream(folder_ + "/notes.txt") << std::string(100000, 'x');
  const auto age = [&](const std::string& name, int hours) {
    std::ofstream(folder_ + "/" + name) << "x";
    fs::last_write_time(folder_ + "/" + name, fs::file_time_type::clock::now() -
                                                  std::chrono::hours(hours));
  };
  age(".1.0.7.tmp", 2);  // of a process that was killed
  age(".1.1.7.tmp", 0);  // of one that is writing
  EXPECT_TRUE(PatchCubinCached(image_, {}, cache.get()).ok());
  EXPECT_TRUE(fs::exists(folder_ + "/notes.txt"));
  EXPECT_FALSE(fs::exists(folder_ + "/.1.0.7.tmp"));
  EXPECT_TRUE(fs::exists(folder_ + "/.1.1.7.tmp"));
}

TEST_F(PatchCacheTest, AFolderThatCannotBeWrittenIsNoCache) {
  EXPECT_EQ(PatchCache::Open(""), nullptr);
  std::ofstream(root_ + "/file") << "x";
  EXPECT_EQ(PatchCache::Open(root_ + "/file"), nullptr);
  EXPECT_EQ(PatchCache::Open(root_ + "/file/below"), nullptr);
  fs::create_directories(root_ + "/open");
  fs::permissions(root_ + "/open", fs::perms::all);
  EXPECT_EQ(PatchCache::Open(root_ + "/open"), nullptr);  // anyone's code
  ExpectSame(PatchCubinCached(image_, {}, nullptr), PatchCubin(image_, {}));
}

TEST_F(PatchCacheTest, AFolderThatGoesAwayDoesNoHarm) {
  const std::unique_ptr<PatchCache> cache = PatchCache::Open(folder_);
  fs::remove_all(folder_);
  ExpectSame(PatchCubinCached(image_, {}, cache.get()), PatchCubin(image_, {}));
}

// Not thread safe: changes the environment, which the test restores.
TEST_F(PatchCacheTest, TheFolderComesFromTheEnvironment) {
  const std::vector<std::string> names = {"HEDDLE_CACHE_DIR", "XDG_CACHE_HOME",
                                          "HOME"};
  std::vector<std::string> before;
  for (const std::string& name : names) {
    const char* value = getenv(name.c_str());
    before.emplace_back(value == nullptr ? "" : value);
    setenv(name.c_str(), ("/" + name).c_str(), 1);
  }
  EXPECT_EQ(PatchCache::DefaultFolder(), "/HEDDLE_CACHE_DIR");
  unsetenv("HEDDLE_CACHE_DIR");
  EXPECT_EQ(PatchCache::DefaultFolder(), "/XDG_CACHE_HOME/heddle");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(PatchCache::DefaultFolder(), "/HOME/.cache/heddle");
  unsetenv("HOME");
  EXPECT_EQ(PatchCache::DefaultFolder(), "");
  for (size_t i = 0; i < names.size(); ++i) {
    if (!before[i].empty()) setenv(names[i].c_str(), before[i].c_str(), 1);
  }
}

// Two processes of several threads store and load the same few entries in a
// folder too small for all of them, so that they also evict each other's. Every
// image that comes out must be right.
TEST_F(PatchCacheTest, ProcessesThatRaceSeeWholeEntries) {
  constexpr uint8_t kImages = 6;
  std::vector<PatchedImage> expected;
  for (uint8_t i = 0; i < kImages; ++i) {
    expected.push_back(*PatchCubin(Image(i), {}));
  }
  const auto work = [&]() -> bool {
    const std::unique_ptr<PatchCache> cache =
        PatchCache::Open(folder_, 4 * (expected[0].image.size() + 2048));
    if (cache == nullptr) return false;
    std::atomic<bool> right = true;
    std::atomic<int> loaded = 0;
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 200; ++round) {
          const auto i = static_cast<uint8_t>((round * 7 + thread) % kImages);
          const std::string key = PatchCache::Key(Image(i), {});
          if (const auto image = cache->Load(key)) {
            ++loaded;
            if (image->image != expected[i].image) right = false;
          } else {
            cache->Store(key, expected[i]);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return right && loaded > 0;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(work() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  for (const fs::path& file : Files()) {
    EXPECT_EQ(file.extension(), ".patch") << file;
  }
}

}  // namespace
}  // namespace heddle::cubin
