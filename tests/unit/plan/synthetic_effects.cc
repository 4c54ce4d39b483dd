// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/plan/synthetic_effects.h"

#include <initializer_list>
#include <utility>

namespace heddle::plan {
namespace {

using access::Extent;
using access::ExtentSet;

constexpr uint64_t kWeights = 0x7f0000000000;
constexpr uint64_t kLayerWeights = 32 << 20;
constexpr uint64_t kActivations = kWeights + 0x60000000;
constexpr uint64_t kBuffer = 64 << 10;
constexpr uint64_t kScattered = kWeights + 0x70000000;
constexpr uint64_t kCache = kWeights + 0x100000000;
constexpr uint64_t kCachePerLayer = 64 << 20;
constexpr uint64_t kSlice = 4096;

class Decoder {
 public:
  Decoder(const DecodeShape& shape, uint32_t operations)
      : shape_(shape), limit_(operations) {
    operations_.reserve(operations);
  }

  std::vector<Effects> Run() && {
    while (operations_.size() < limit_) Token();
    operations_.resize(limit_);
    return std::move(operations_);
  }

 private:
  static Extent Buffer(uint32_t number) {
    return {kActivations + number * kBuffer, 8192};
  }
  Extent Weight(uint32_t part, uint32_t parts) const {
    const uint64_t size = kLayerWeights / parts;
    return {kWeights + layer_ * kLayerWeights + part * size, size};
  }
  Extent Cache(uint64_t from, uint64_t tokens) const {
    return {kCache + layer_ * kCachePerLayer + from * kSlice, tokens * kSlice};
  }

  bool IsTurn(uint32_t one_in) const {
    return one_in != 0 && operations_.size() % one_in == one_in - 1;
  }

  void Launch(std::initializer_list<Extent> reads,
              std::initializer_list<Extent> writes) {
    Extras();
    operations_.push_back(
        {.reads = ExtentSet(reads), .writes = ExtentSet(writes)});
  }

  void Extras() {
    if (IsTurn(shape_.unknown_one_in)) {
      operations_.push_back({.reads_anything = true, .writes_anything = true});
    }
    if (IsTurn(shape_.read_all_one_in)) {
      operations_.push_back(
          {.reads = ExtentSet({{kWeights, uint64_t{2} << 30}}),
           .writes = ExtentSet({Buffer(100)})});
    }
    if (IsTurn(shape_.scattered_one_in)) {
      ExtentSet pieces;
      for (uint64_t i = 0; i < 10000; ++i) {
        pieces.Append({kScattered + i * 2048, 1024});
      }
      operations_.push_back(
          {.reads = ExtentSet({Buffer(0)}), .writes = std::move(pieces)});
    }
    if (IsTurn(shape_.ordering_one_in)) {
      operations_.push_back({.ordering_point = true});
    }
    if (IsTurn(shape_.independent_one_in)) {
      operations_.push_back({.reads = ExtentSet({Weight(0, 8)})});
    }
  }

  void Token() {
    layer_ = 0;
    Launch({}, {{Buffer(8).address, 4}});            // token from the host
    Launch({Weight(0, 8), Buffer(8)}, {Buffer(0)});  // embedding
    for (; layer_ < shape_.layers; ++layer_) {
      const Extent x = Buffer(0);               // the residual stream
      Launch({x, Weight(0, 64)}, {Buffer(1)});  // norm
      for (uint32_t i = 0; i < 3; ++i) {        // queries, keys, values
        Launch({Buffer(1), Weight(1 + i, 8)}, {Buffer(2 + i)});
      }
      Launch({Buffer(2), Buffer(9)}, {Buffer(2)});  // rotate, in place
      Launch({Buffer(3), Buffer(9)}, {Buffer(3)});
      Launch({Buffer(3), Buffer(4)}, {Cache(token_, 1)});
      Launch({Buffer(2), Cache(0, token_ + 1)}, {Buffer(5)});
      Launch({Buffer(5), Weight(4, 8), x}, {x});
      Launch({x, Weight(1, 64)}, {Buffer(1)});
      Launch({Buffer(1), Weight(5, 8)}, {Buffer(6)});  // gate
      Launch({Buffer(1), Weight(6, 8)}, {Buffer(7)});  // up
      Launch({Buffer(6), Buffer(7), Weight(7, 8), x}, {x});
    }
    --layer_;
    Launch({Buffer(0), Weight(0, 4)}, {Buffer(10)});  // logits
    Launch({Buffer(10)}, {{Buffer(8).address, 4}});   // the next token
    ++token_;
  }

  const DecodeShape shape_;
  const uint32_t limit_;
  std::vector<Effects> operations_;
  uint32_t layer_ = 0;
  uint64_t token_ = 0;
};

}  // namespace

std::vector<Effects> SyntheticDecode(const DecodeShape& shape,
                                     uint32_t operations) {
  return Decoder(shape, operations).Run();
}

}  // namespace heddle::plan
