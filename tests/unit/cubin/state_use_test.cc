// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/state_use.h"

#include <gtest/gtest.h>

#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

class StateUseTest : public testing::TestWithParam<int> {
 protected:
  absl::flat_hash_set<std::string> Find(const std::string& image) {
    absl::StatusOr<absl::flat_hash_set<std::string>> found =
        KernelsWithState(TestImage(image));
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : absl::flat_hash_set<std::string>();
  }
  std::string Image(const std::string& stem) {
    return stem + ".sm_" + std::to_string(GetParam()) + ".cubin";
  }
};

TEST_P(StateUseTest, KernelsThatTouchVariables) {
  const absl::flat_hash_set<std::string> found = Find(Image("state_kernels"));
  for (const char* name : {"reads", "writes", "adds", "by_pointer",
                           "asserts_and_writes", "indexes", "calls"}) {
    EXPECT_TRUE(found.contains(name)) << name;
  }
}

TEST_P(StateUseTest, KernelsThatDoNot) {
  const absl::flat_hash_set<std::string> found = Find(Image("state_kernels"));
  for (const char* name : {"plain", "constants"}) {
    EXPECT_FALSE(found.contains(name)) << name;
  }
  if (GetParam() < 90) return;  // calls there are not seen through
  for (const char* name : {"asserts", "prints"}) {
    EXPECT_FALSE(found.contains(name)) << name;
  }
}

TEST_P(StateUseTest, DamagedImagesDoNotCrash) {
  ForEachDamaged(TestImage(Image("state_kernels")),
                 [](absl::Span<const uint8_t> bytes) {
                   (void)KernelsWithState(bytes).ok();
                 });
}

INSTANTIATE_TEST_SUITE_P(Chips, StateUseTest, testing::Values(80, 90));

}  // namespace
}  // namespace heddle::cubin
