// SPDX-License-Identifier: Apache-2.0
// Kernels with the names and parameters of runtime/live/device, as plain as can
// be: the host device has bodies of its own for them (builtin_kernels.cc).

using uint32 = unsigned;
using uint64 = unsigned long long;
using Byte = unsigned char;

__device__ uint64 ChunkSize(uint64 chunk, uint32 chunk_bytes, uint64 bytes) {
  const uint64 at = chunk * chunk_bytes;
  if (at >= bytes) return 0;
  return bytes - at < chunk_bytes ? bytes - at : chunk_bytes;
}

extern "C" __global__ void heddle_compare_chunks(const void* a, const void* b,
                                                 uint64 bytes,
                                                 uint32 chunk_bytes,
                                                 uint32* changed) {
  for (uint64 i = blockIdx.x; i * chunk_bytes < bytes; i += gridDim.x) {
    const Byte* left = static_cast<const Byte*>(a) + i * chunk_bytes;
    const Byte* right = static_cast<const Byte*>(b) + i * chunk_bytes;
    const uint64 size = ChunkSize(i, chunk_bytes, bytes);
    for (uint64 k = threadIdx.x; k < size; k += blockDim.x) {
      if (left[k] != right[k]) changed[i] = 1;
    }
  }
}

extern "C" __global__ void heddle_gather_chunks(const void* from, void* to,
                                                const uint64* chunk_indices,
                                                uint64 count,
                                                uint32 chunk_bytes,
                                                uint64 bytes) {
  for (uint64 i = blockIdx.x; i < count; i += gridDim.x) {
    const Byte* in =
        static_cast<const Byte*>(from) + chunk_indices[i] * chunk_bytes;
    Byte* out = static_cast<Byte*>(to) + i * chunk_bytes;
    const uint64 size = ChunkSize(chunk_indices[i], chunk_bytes, bytes);
    for (uint64 k = threadIdx.x; k < size; k += blockDim.x) out[k] = in[k];
  }
}

extern "C" __global__ void heddle_scatter_chunks(const void* packed, void* to,
                                                 const uint64* chunk_indices,
                                                 uint64 count,
                                                 uint32 chunk_bytes,
                                                 uint64 bytes) {
  for (uint64 i = blockIdx.x; i < count; i += gridDim.x) {
    const Byte* in = static_cast<const Byte*>(packed) + i * chunk_bytes;
    Byte* out = static_cast<Byte*>(to) + chunk_indices[i] * chunk_bytes;
    const uint64 size = ChunkSize(chunk_indices[i], chunk_bytes, bytes);
    for (uint64 k = threadIdx.x; k < size; k += blockDim.x) out[k] = in[k];
  }
}

extern "C" __global__ void heddle_compare_gathered(
    const void* packed, const void* whole, const uint64* chunk_indices,
    uint64 count, uint32 chunk_bytes, uint64 bytes, uint32* mismatches) {
  for (uint64 i = blockIdx.x; i < count; i += gridDim.x) {
    const Byte* left = static_cast<const Byte*>(packed) + i * chunk_bytes;
    const Byte* right =
        static_cast<const Byte*>(whole) + chunk_indices[i] * chunk_bytes;
    const uint64 size = ChunkSize(chunk_indices[i], chunk_bytes, bytes);
    for (uint64 k = threadIdx.x; k < size; k += blockDim.x) {
      if (left[k] != right[k]) mismatches[i] = 1;
    }
  }
}
