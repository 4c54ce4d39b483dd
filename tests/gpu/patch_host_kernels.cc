// SPDX-License-Identifier: Apache-2.0
//
// The bodies of patch_kernels.cu on the host device: with them
// patch_gpu_test.cc also runs where there is no GPU, and finds out what a chain
// of programmatic edges does to kernels that do not wait.

#include <array>
#include <cstdint>

#include "tests/hostdevice/host_kernel.h"

namespace {

using Elements = std::uint32_t*;

// out[i] = body(in, i, thread) for the threads of the block.
template <typename Body>
void Threads(const HeddleHostBlock* block, void* const* params, Body body) {
  const auto* in = *static_cast<const std::uint32_t* const*>(params[0]);
  auto* out = *static_cast<const Elements*>(params[1]);
  for (std::uint32_t thread = 0; thread < block->block[0]; ++thread) {
    const std::uint32_t i = block->block_index[0] * block->block[0] + thread;
    out[i] = body(in, i, thread);
  }
}

std::uint32_t Collatz(std::uint32_t value) {
  return value % 2 == 0 ? value / 2 : value * 3 + 1;
}
std::uint32_t Mix(std::uint32_t value) {
  return value * 2654435761U ^ value >> 7;
}

}  // namespace

HEDDLE_HOST_KERNEL(plain) {
  Threads(block, params, [](auto in, auto i, auto) { return in[i] * 3 + 1; });
}

HEDDLE_HOST_KERNEL(static_shared) {
  Threads(block, params, [&](auto in, auto i, auto thread) {
    return in[i - thread + block->block[0] - 1 - thread] + thread;
  });
}

HEDDLE_HOST_KERNEL(dynamic_shared) {
  Threads(block, params,
          [](auto in, auto i, auto) { return in[i ^ 1] ^ 0x55; });
}

HEDDLE_HOST_KERNEL(clustered) {
  Threads(block, params,
          [&](auto in, auto i, auto) { return in[i ^ block->block[0]] + 7; });
}

HEDDLE_HOST_KERNEL(bounded) {
  Threads(block, params, [](auto in, auto i, auto) {
    std::uint32_t value = in[i];
    for (std::uint32_t round = 0; round < 8; ++round) value = value * 5 + round;
    return value;
  });
}

// Its variable has no address that a host function knows.
HEDDLE_HOST_KERNEL(no_params) {
  (void)block;
  (void)params;
}

HEDDLE_HOST_KERNEL(large_params) {
  const auto* table = static_cast<const std::uint32_t*>(params[2]);
  Threads(block, params,
          [&](auto in, auto i, auto) { return in[i] + table[i % 1250]; });
}

HEDDLE_HOST_KERNEL(full_first_form) {
  const auto* table = static_cast<const std::uint32_t*>(params[2]);
  Threads(block, params,
          [&](auto in, auto i, auto) { return in[i] ^ table[i % 1084]; });
}

HEDDLE_HOST_KERNEL(calling) {
  Threads(block, params, [](auto in, auto i, auto) {
    std::uint32_t value = Collatz(in[i]);
    for (int round = 0; round < 3; ++round) {
      value = in[i] % 3 == 0 ? Mix(value) : Collatz(value);
    }
    return value;
  });
}

HEDDLE_HOST_KERNEL(branching) {
  Threads(block, params, [](auto in, auto i, auto) {
    std::uint32_t value = in[i];
    for (std::uint32_t round = 0; round < (in[i] & 15); ++round) {
      switch (value & 7) {
        case 0:
          value += in[i ^ 1];
          break;
        case 1:
          value -= in[i ^ 2];
          break;
        case 2:
          value ^= 0x5a5a;
          break;
        case 3:
          value *= 9;
          break;
        case 4:
          value = static_cast<std::uint32_t>(__builtin_popcount(value)) + round;
          break;
        case 5:
          value = value / ((value | 1) & 15);
          break;
        case 6:
          value += in[i ^ 4] * 5;
          break;
        default:
          value = ~value;
          break;
      }
    }
    return value;
  });
}

HEDDLE_HOST_KERNEL(spilling) {
  Threads(block, params, [](auto in, auto i, auto) {
    std::array<std::uint32_t, 64> local{};
    for (std::uint32_t k = 0; k < 64; ++k) {
      local[(k * 29 + in[i]) % 64] = k * in[i];
    }
    return local[in[i] % 64] + local[(in[i] >> 6) % 64];
  });
}

HEDDLE_HOST_KERNEL(already_dependent) {
  block->launch_dependents(block);
  block->grid_dependency_wait(block);
  Threads(block, params, [](auto in, auto i, auto) { return in[i] + 11; });
}
