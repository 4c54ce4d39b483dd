// SPDX-License-Identifier: Apache-2.0
// The kernels of runtime/live/device as host functions: the same names, the
// same parameters, the same results for any grid. Memory is cut into chunks of
// `chunk_bytes`; the last one ends with the memory.

#include "tests/hostdevice/builtin_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace heddle::hostdevice {
namespace {

template <typename T>
T Get(void* const* params, int index) {
  T value;
  std::memcpy(&value, params[index], sizeof(value));
  return value;
}

// Calls body(i) for the i of [0, count) that fall to this block: its own index
// and every gridDim.x-th one from there.
template <typename Body>
void ForMine(const HeddleHostBlock* block, uint64_t count, Body body) {
  for (uint64_t i = block->block_index[0]; i < count; i += block->grid[0]) {
    body(i);
  }
}

// Bytes of chunk `index`; 0 for one behind the end.
uint64_t ChunkSize(uint64_t index, uint32_t chunk_bytes, uint64_t bytes) {
  if (chunk_bytes == 0 || index > bytes / chunk_bytes) return 0;
  return std::min<uint64_t>(chunk_bytes, bytes - index * chunk_bytes);
}

// heddle_compare_chunks(const void* a, const void* b, uint64_t bytes,
//                       uint32_t chunk_bytes, uint32_t* changed)
void CompareChunks(const HeddleHostBlock* block, void* const* params) {
  const auto* a = Get<const uint8_t*>(params, 0);
  const auto* b = Get<const uint8_t*>(params, 1);
  const auto bytes = Get<uint64_t>(params, 2);
  const auto chunk_bytes = Get<uint32_t>(params, 3);
  auto* changed = Get<uint32_t*>(params, 4);
  if (chunk_bytes == 0 || bytes == 0) return;
  ForMine(block, (bytes - 1) / chunk_bytes + 1, [&](uint64_t i) {
    const uint64_t at = i * chunk_bytes;
    const uint64_t size = ChunkSize(i, chunk_bytes, bytes);
    if (std::memcmp(a + at, b + at, size) != 0) changed[i] = 1;
  });
}

// heddle_gather_chunks(const void* from, void* to,
//                      const uint64_t* chunk_indices, uint64_t count,
//                      uint32_t chunk_bytes, uint64_t bytes)
void GatherChunks(const HeddleHostBlock* block, void* const* params) {
  const auto* from = Get<const uint8_t*>(params, 0);
  auto* to = Get<uint8_t*>(params, 1);
  const auto* chunks = Get<const uint64_t*>(params, 2);
  const auto chunk_bytes = Get<uint32_t>(params, 4);
  const auto bytes = Get<uint64_t>(params, 5);
  ForMine(block, Get<uint64_t>(params, 3), [&](uint64_t k) {
    const uint64_t size = ChunkSize(chunks[k], chunk_bytes, bytes);
    if (size == 0) return;
    std::memcpy(to + k * chunk_bytes, from + chunks[k] * chunk_bytes, size);
  });
}

// heddle_scatter_chunks(const void* packed, void* to,
//                       const uint64_t* chunk_indices, uint64_t count,
//                       uint32_t chunk_bytes, uint64_t bytes)
void ScatterChunks(const HeddleHostBlock* block, void* const* params) {
  const auto* packed = Get<const uint8_t*>(params, 0);
  auto* to = Get<uint8_t*>(params, 1);
  const auto* chunks = Get<const uint64_t*>(params, 2);
  const auto chunk_bytes = Get<uint32_t>(params, 4);
  const auto bytes = Get<uint64_t>(params, 5);
  ForMine(block, Get<uint64_t>(params, 3), [&](uint64_t k) {
    const uint64_t size = ChunkSize(chunks[k], chunk_bytes, bytes);
    if (size == 0) return;
    std::memcpy(to + chunks[k] * chunk_bytes, packed + k * chunk_bytes, size);
  });
}

// heddle_compare_gathered(const void* packed, const void* whole,
//                         const uint64_t* chunk_indices, uint64_t count,
//                         uint32_t chunk_bytes, uint64_t bytes,
//                         uint32_t* mismatches)
void CompareGathered(const HeddleHostBlock* block, void* const* params) {
  const auto* packed = Get<const uint8_t*>(params, 0);
  const auto* whole = Get<const uint8_t*>(params, 1);
  const auto* chunks = Get<const uint64_t*>(params, 2);
  const auto chunk_bytes = Get<uint32_t>(params, 4);
  const auto bytes = Get<uint64_t>(params, 5);
  auto* mismatches = Get<uint32_t*>(params, 6);
  ForMine(block, Get<uint64_t>(params, 3), [&](uint64_t k) {
    const uint64_t size = ChunkSize(chunks[k], chunk_bytes, bytes);
    if (size == 0) return;
    if (std::memcmp(packed + k * chunk_bytes, whole + chunks[k] * chunk_bytes,
                    size) != 0) {
      mismatches[k] = 1;
    }
  });
}

struct Builtin {
  absl::string_view name;
  HeddleHostKernelFn body;
};

constexpr Builtin kBuiltins[] = {
    {"heddle_compare_chunks", CompareChunks},
    {"heddle_gather_chunks", GatherChunks},
    {"heddle_scatter_chunks", ScatterChunks},
    {"heddle_compare_gathered", CompareGathered},
};

}  // namespace

HeddleHostKernelFn FindBuiltinKernel(absl::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return builtin.body;
  }
  return nullptr;
}

}  // namespace heddle::hostdevice
