// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/image.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

// What nvcc's host code passes to the driver; see fatbinary_section.h.
struct Wrapper {
  uint32_t magic = 0x466243b1;
  uint32_t version = 1;
  const void* data = nullptr;
  const void* filename = nullptr;
};

TEST(IdentifyImageTest, FindsTheExtentOfACubinBehindABarePointer) {
  for (const char* name : {"kernels.sm_80.cubin", "kernels.sm_90.cubin"}) {
    std::vector<uint8_t> image = TestImage(name);
    ASSERT_FALSE(image.empty()) << name;
    const size_t size = image.size();
    image.resize(size + 100, 0xee);
    absl::StatusOr<ImageView> view =
        IdentifyImage(static_cast<const void*>(image.data()));
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(view->kind, ImageKind::kElf);
    EXPECT_EQ(view->bytes.data(), image.data());
    EXPECT_EQ(view->bytes.size(), size);
    EXPECT_FALSE(view->wrapped);
  }
}

TEST(IdentifyImageTest, FindsTheExtentOfAFatbinBehindABarePointer) {
  std::vector<uint8_t> image = TestImage("kernels.packed.fatbin");
  ASSERT_FALSE(image.empty());
  const size_t size = image.size();
  // A second container follows, as in .nv_fatbin: it is another image.
  image.insert(image.end(), image.begin(), image.begin() + size);
  absl::StatusOr<ImageView> view =
      IdentifyImage(static_cast<const void*>(image.data()));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->kind, ImageKind::kFatbin);
  EXPECT_EQ(view->bytes.size(), size);
}

TEST(IdentifyImageTest, FollowsTheWrapperOfHostCode) {
  const std::vector<uint8_t> image = TestImage("kernels.plain.fatbin");
  Wrapper wrapper;
  wrapper.data = image.data();
  absl::StatusOr<ImageView> view = IdentifyImage(&wrapper);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->kind, ImageKind::kFatbin);
  EXPECT_EQ(view->bytes.data(), image.data());
  EXPECT_EQ(view->bytes.size(), image.size());
  EXPECT_TRUE(view->wrapped);
}

TEST(IdentifyImageTest, TakesPtxWithItsTerminator) {
  std::vector<uint8_t> image = TestImage("kernels.ptx");
  ASSERT_FALSE(image.empty());
  const size_t size = image.size();
  image.push_back(0);
  image.push_back('x');
  absl::StatusOr<ImageView> view =
      IdentifyImage(static_cast<const void*>(image.data()));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->kind, ImageKind::kPtx);
  EXPECT_EQ(view->bytes.size(), size + 1);
  EXPECT_EQ(view->bytes.back(), 0);
}

TEST(IdentifyImageTest, TakesPtxOfAFileWithoutTerminator) {
  const std::string text =
      "/* by hand */\n// more\n\t.version 8.0\n.target sm_90\n";
  absl::StatusOr<ImageView> view = IdentifyImage(absl::Span<const uint8_t>(
      reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->kind, ImageKind::kPtx);
  EXPECT_EQ(view->bytes.size(), text.size());
}

TEST(IdentifyImageTest, RefusesWhatIsNoImage) {
  EXPECT_FALSE(IdentifyImage(nullptr).ok());
  EXPECT_FALSE(IdentifyImage(static_cast<const void*>("")).ok());
  EXPECT_FALSE(IdentifyImage(static_cast<const void*>("hello")).ok());
  EXPECT_FALSE(IdentifyImage(static_cast<const void*>("/* open")).ok());
  EXPECT_FALSE(
      IdentifyImage(static_cast<const void*>("/* a **/ .versio")).ok());
  EXPECT_FALSE(IdentifyImage(absl::Span<const uint8_t>()).ok());
  Wrapper wrapper;
  EXPECT_FALSE(IdentifyImage(&wrapper).ok());
}

TEST(IdentifyImageTest, RefusesAWrapperInAFile) {
  Wrapper wrapper;
  wrapper.data = &wrapper;
  EXPECT_FALSE(IdentifyImage(absl::Span<const uint8_t>(
                                 reinterpret_cast<const uint8_t*>(&wrapper),
                                 sizeof(wrapper)))
                   .ok());
}

TEST(IdentifyImageTest, NeverLeavesTheBoundsOfADamagedFile) {
  for (const char* name :
       {"kernels.sm_90.cubin", "kernels.packed.fatbin", "kernels.ptx"}) {
    ForEachDamaged(TestImage(name), [](absl::Span<const uint8_t> bytes) {
      absl::StatusOr<ImageView> view = IdentifyImage(bytes);
      if (!view.ok()) return;
      EXPECT_GE(view->bytes.data(), bytes.data());
      EXPECT_LE(view->bytes.data() + view->bytes.size(),
                bytes.data() + bytes.size());
    });
  }
}

TEST(IdentifyImageTest, RefusesEveryCutCubinAndFatbin) {
  for (const char* name : {"kernels.sm_90.cubin", "kernels.packed.fatbin"}) {
    const std::vector<uint8_t> image = TestImage(name);
    for (size_t size = 0; size < image.size(); ++size) {
      ASSERT_FALSE(IdentifyImage(absl::MakeConstSpan(image).first(size)).ok())
          << name << " cut to " << size;
    }
  }
}

}  // namespace
}  // namespace heddle::cubin
