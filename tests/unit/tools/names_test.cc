// SPDX-License-Identifier: Apache-2.0
#include "tools/names.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/record_text.h"

namespace heddle::tools {
namespace {

TEST(Names, KernelsAreDemangledWithoutReturnTypeAndParameters) {
  EXPECT_EQ(Demangle("_Z5embedPKfPfi"), "embed");
  EXPECT_EQ(Demangle("_ZN2nn4gemvILi128EEEvPKfS2_Pfif"), "nn::gemv<128>");
  EXPECT_EQ(Demangle("_ZN12_GLOBAL__N_14copyEPi"),
            "(anonymous namespace)::copy");
  EXPECT_EQ(Demangle("_ZN1a1bclEi"), "a::b::operator()");
  EXPECT_EQ(Demangle("_Z3fooPFviE"), "foo");
}

TEST(Names, WhatIsNotMangledStaysAsItIs) {
  for (const char* name : {"tma_gemm", "f", "i", "sm90_xmma_gemm", "", "_Z",
                           "_Z5", "_ZN", "triton_poi_fused_0d1d2d"}) {
    EXPECT_EQ(Demangle(name), name);
  }
}

TEST(Names, SizesHaveBinaryUnits) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1536), "1.50 KiB");
  EXPECT_EQ(Bytes(uint64_t{141} << 30), "141.0 GiB");
}

TEST(Names, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(Printable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(Printable("h\u00e9"), "h\u00e9");
}

class BuffersTest : public testing::Test {
 protected:
  template <typename T>
  void Follow(const T& object) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(T::TableType::Pack(builder, &object));
    kept_.push_back(builder.Release());
    trace::Record record;
    record.type = trace::internal::RecordTypeOf<typename T::TableType>::value;
    record.payload =
        absl::MakeConstSpan(kept_.back().data(), kept_.back().size());
    buffers_.Follow(record);
  }
  void Alloc(uint64_t address, uint64_t size) {
    fb::AllocT alloc;
    alloc.address = address;
    alloc.size = size;
    Follow(alloc);
  }
  void Free(uint64_t address) {
    fb::FreeT free;
    free.address = address;
    Follow(free);
  }
  std::string At(uint64_t address) const {
    return buffers_.Locate(address).value_or("-");
  }

  Buffers buffers_;
  std::vector<flatbuffers::DetachedBuffer> kept_;
};

TEST_F(BuffersTest, AddressesLieInWhatIsLive) {
  Alloc(0x1000, 0x100);
  Alloc(0x1100, 0x10);
  EXPECT_EQ(At(0xfff), "-");
  EXPECT_EQ(At(0x1000), "buf1");
  EXPECT_EQ(At(0x10ff), "buf1+0xff");
  EXPECT_EQ(At(0x1100), "buf2");
  EXPECT_EQ(At(0x1110), "-");
  Free(0x1000);
  EXPECT_EQ(buffers_.last_freed(), 1u);
  EXPECT_EQ(At(0x1000), "-");
  Free(0x1000);
  EXPECT_EQ(buffers_.last_freed(), 0u);
  Alloc(0x1000, 0x20);
  EXPECT_EQ(At(0x1010), "buf3+0x10");
}

TEST_F(BuffersTest, RandomAllocationsAreFoundAsByALinearSearch) {
  struct Live {
    uint64_t number, address, size;
  };
  std::vector<Live> live;
  std::mt19937 random(10);
  uint64_t count = 0;
  for (int round = 0; round < 3000; ++round) {
    if (random() % 2 == 0 || live.empty()) {
      const uint64_t address = 0x1000 * (random() % 200);
      bool taken = false;
      for (const Live& other : live) taken |= other.address == address;
      if (taken) continue;
      const uint64_t size = 1 + random() % 0x1000;
      Alloc(address, size);
      live.push_back({++count, address, size});
    } else {
      const size_t which = random() % live.size();
      Free(live[which].address);
      live.erase(live.begin() + static_cast<int64_t>(which));
    }
    const uint64_t address = random() % (0x1000 * 200);
    uint64_t expected = 0;
    for (const Live& buffer : live) {
      if (address >= buffer.address && address - buffer.address < buffer.size) {
        expected = buffer.number;
      }
    }
    const Buffers::Buffer* found = buffers_.Find(address);
    EXPECT_EQ(found == nullptr ? 0 : found->number, expected);
  }
}

TEST_F(BuffersTest, ParametersAreShownByWhatTheySeemToBe) {
  Alloc(0x7f0000001000, 0x1000);
  const auto show = [this](const std::vector<uint8_t>& bytes,
                           uint32_t offset = 0) {
    return ParamToText(bytes, offset, buffers_);
  };
  EXPECT_EQ(show({5}), "5");
  EXPECT_EQ(show({0x34, 0x12}), "4660");
  EXPECT_EQ(show({0xff, 0xff, 0xff, 0xff}), "-1");
  EXPECT_EQ(show({0, 0, 0x40, 0x3f}), "0.75f");
  EXPECT_EQ(show({1, 0, 0, 0x80}), "0x80000001");
  EXPECT_EQ(show({0x10, 0x10, 0, 0, 0, 0x7f, 0, 0}), "buf1+0x10");
  EXPECT_EQ(show({0, 0, 0, 0, 0, 0x7e, 0, 0}), "0x7e0000000000");
  EXPECT_EQ(show({7, 0, 0, 0, 0, 0, 0, 0}), "7");
  std::vector<uint8_t> data(20);
  data[12] = 0x10;
  data[14] = 0;
  data[13] = 0x10;
  data[17] = 0x7f;
  // At offset 4 of the block, byte 12 is aligned to 8.
  EXPECT_EQ(show(data, 4), "{20 B, @12 buf1+0x10}");
  EXPECT_EQ(show(data, 0), "{20 B}");
  EXPECT_EQ(show({}), "{0 B}");
}

}  // namespace
}  // namespace heddle::tools
