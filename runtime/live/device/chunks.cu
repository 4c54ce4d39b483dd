// SPDX-License-Identifier: Apache-2.0
// Kernels of the verifier: memory is compared and moved in chunks. The last
// chunk of a range may be shorter. Chunk sizes are multiples of 16; ranges may
// begin anywhere, as variables of modules do.
#include <cstdint>

namespace {

// Bytes of chunk `index` of a range of `bytes`.
__device__ uint64_t ChunkSize(uint64_t index, uint32_t chunk_bytes,
                              uint64_t bytes) {
  const uint64_t begin = index * chunk_bytes;
  return bytes - begin < chunk_bytes ? bytes - begin : chunk_bytes;
}

// How many units of 16 bytes both ranges can be read in: none if they are not
// aligned, as variables of modules need not be.
__device__ uint64_t Vectors(const void* a, const void* b, uint64_t bytes) {
  const auto both =
      reinterpret_cast<uint64_t>(a) | reinterpret_cast<uint64_t>(b);
  return both % 16 == 0 ? bytes / 16 : 0;
}

// Whether any byte of the two ranges differs, told to every thread.
__device__ bool Differs(const uint8_t* a, const uint8_t* b, uint64_t bytes) {
  bool different = false;
  const uint64_t vectors = Vectors(a, b, bytes);
  const auto* a16 = reinterpret_cast<const uint4*>(a);
  const auto* b16 = reinterpret_cast<const uint4*>(b);
  for (uint64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const uint4 x = a16[i];
    const uint4 y = b16[i];
    different |= x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w;
  }
  for (uint64_t i = vectors * 16 + threadIdx.x; i < bytes; i += blockDim.x) {
    different |= a[i] != b[i];
  }
  return __syncthreads_or(different) != 0;
}

__device__ void Copy(const uint8_t* from, uint8_t* to, uint64_t bytes) {
  const uint64_t vectors = Vectors(from, to, bytes);
  const auto* from16 = reinterpret_cast<const uint4*>(from);
  auto* to16 = reinterpret_cast<uint4*>(to);
  for (uint64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    to16[i] = from16[i];
  }
  for (uint64_t i = vectors * 16 + threadIdx.x; i < bytes; i += blockDim.x) {
    to[i] = from[i];
  }
}

}  // namespace

// changed[i] = 1 where chunk i of `a` and `b` differs; others stay as they are.
extern "C" __global__ void heddle_compare_chunks(const void* a, const void* b,
                                                 uint64_t bytes,
                                                 uint32_t chunk_bytes,
                                                 uint32_t* changed) {
  const uint64_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  for (uint64_t i = blockIdx.x; i < chunks; i += gridDim.x) {
    const uint64_t begin = i * chunk_bytes;
    if (Differs(static_cast<const uint8_t*>(a) + begin,
                static_cast<const uint8_t*>(b) + begin,
                ChunkSize(i, chunk_bytes, bytes)) &&
        threadIdx.x == 0) {
      changed[i] = 1;
    }
  }
}

// Chunk k of `to` = chunk chunk_indices[k] of `from`, which has `bytes` bytes.
extern "C" __global__ void heddle_gather_chunks(const void* from, void* to,
                                                const uint64_t* chunk_indices,
                                                uint64_t count,
                                                uint32_t chunk_bytes,
                                                uint64_t bytes) {
  for (uint64_t k = blockIdx.x; k < count; k += gridDim.x) {
    const uint64_t index = chunk_indices[k];
    Copy(static_cast<const uint8_t*>(from) + index * chunk_bytes,
         static_cast<uint8_t*>(to) + k * chunk_bytes,
         ChunkSize(index, chunk_bytes, bytes));
  }
}

// mismatches[k] = 1 where chunk k of `packed` differs from chunk
// chunk_indices[k] of `whole`; others stay as they are.
extern "C" __global__ void heddle_compare_gathered(
    const void* packed, const void* whole, const uint64_t* chunk_indices,
    uint64_t count, uint32_t chunk_bytes, uint64_t bytes,
    uint32_t* mismatches) {
  for (uint64_t k = blockIdx.x; k < count; k += gridDim.x) {
    const uint64_t index = chunk_indices[k];
    if (Differs(static_cast<const uint8_t*>(packed) + k * chunk_bytes,
                static_cast<const uint8_t*>(whole) + index * chunk_bytes,
                ChunkSize(index, chunk_bytes, bytes)) &&
        threadIdx.x == 0) {
      mismatches[k] = 1;
    }
  }
}
