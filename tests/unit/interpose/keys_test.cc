// SPDX-License-Identifier: Apache-2.0
// The generated list of what cuGetProcAddress means by a name and a version.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>

extern "C" const char* heddle_test_unlike_key();

namespace heddle::interpose_test {
namespace {

using Key = std::tuple<std::string, int, int>;

constexpr struct {
  const char* base;
  int version;
  int per_thread;
  const char* symbol;
} kKeys[] = {
#define HEDDLE_KEY(base, version, per_thread, symbol, index, type) \
  {base, version, per_thread, #symbol},
#include "interpose/keys.inc"
#undef HEDDLE_KEY
};

constexpr const char* kSymbols[] = {
#define HEDDLE_SYMBOL(index, name) #name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
};

std::map<Key, std::string> Keys() {
  std::map<Key, std::string> keys;
  for (const auto& key : kKeys) {
    keys[{key.base, key.version, key.per_thread}] = key.symbol;
  }
  return keys;
}

TEST(Keys, HaveTheTypesOfTheirSymbols) {
  EXPECT_STREQ(heddle_test_unlike_key(), nullptr);
}

TEST(Keys, NameEverySymbol) {
  std::set<std::string> named;
  for (const auto& key : kKeys) named.insert(key.symbol);
  for (const char* symbol : kSymbols) EXPECT_EQ(named.count(symbol), 1u);
  EXPECT_EQ(Keys().size(), std::size(kKeys)) << "two symbols of one key";
}

TEST(Keys, TellVersionsApart) {
  const std::map<Key, std::string> expected = {
      {{"cuMemAlloc", 2000, 0}, "cuMemAlloc"},
      {{"cuMemAlloc", 3020, 0}, "cuMemAlloc_v2"},
      {{"cuCtxCreate", 2000, 0}, "cuCtxCreate"},
      {{"cuCtxCreate", 3020, 0}, "cuCtxCreate_v2"},
      {{"cuCtxCreate", 11040, 0}, "cuCtxCreate_v3"},
      {{"cuGraphExecUpdate", 10020, 0}, "cuGraphExecUpdate"},
      {{"cuGraphExecUpdate", 12000, 0}, "cuGraphExecUpdate_v2"},
      {{"cuGraphInstantiate", 10000, 0}, "cuGraphInstantiate"},
      {{"cuGraphInstantiate", 11000, 0}, "cuGraphInstantiate_v2"},
      {{"cuGraphInstantiate", 12000, 0}, "cuGraphInstantiateWithFlags"},
      {{"cuGetProcAddress", 11030, 0}, "cuGetProcAddress"},
      {{"cuGetProcAddress", 12000, 0}, "cuGetProcAddress_v2"},
      {{"cuStreamBeginCapture", 10000, 1}, "cuStreamBeginCapture_ptsz"},
      {{"cuStreamBeginCapture", 10010, 1}, "cuStreamBeginCapture_v2_ptsz"},
      {{"cuMemcpyHtoD", 3020, 0}, "cuMemcpyHtoD_v2"},
      {{"cuMemcpyHtoD", 7000, 1}, "cuMemcpyHtoD_v2_ptds"},
      {{"cuLaunchKernel", 4000, 0}, "cuLaunchKernel"},
      {{"cuLaunchKernel", 7000, 1}, "cuLaunchKernel_ptsz"},
      {{"cuLaunchKernelEx", 11060, 0}, "cuLaunchKernelEx"},
      {{"cuStreamGetCaptureInfo", 12030, 0}, "cuStreamGetCaptureInfo_v3"},
  };
  const std::map<Key, std::string> keys = Keys();
  for (const auto& [key, symbol] : expected) {
    const auto found = keys.find(key);
    ASSERT_NE(found, keys.end()) << std::get<0>(key) << std::get<1>(key);
    EXPECT_EQ(found->second, symbol);
  }
}

}  // namespace
}  // namespace heddle::interpose_test
