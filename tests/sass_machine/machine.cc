// SPDX-License-Identifier: Apache-2.0
#include "tests/sass_machine/machine.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/sass_machine/block.h"
#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {
namespace {

// What the driver puts below the parameters, as compiled code reads it.
std::vector<uint8_t> MakeBank0(const KernelCode& kernel, const Launch& launch) {
  std::vector<uint8_t> bank(
      kernel.kernel.param_base +
      std::max<size_t>(launch.params.size(), kernel.kernel.param_size));
  const auto put = [&](size_t at, uint32_t value) {
    if (at + 4 <= bank.size()) std::memcpy(&bank[at], &value, 4);
  };
  for (size_t i = 0; i < 3; ++i) {
    put(4 * i, launch.block[i]);
    put(12 + 4 * i, launch.grid[i]);
  }
  put(0x18, 0);
  put(0x1c, kSharedWindow);
  put(0x20, 0);
  put(0x24, kLocalWindow);
  put(0x28, LocalSize(kernel.kernel));  // where the stack begins, downwards
  if (!launch.params.empty()) {
    std::memcpy(&bank[kernel.kernel.param_base], launch.params.data(),
                launch.params.size());
  }
  return bank;
}

uint64_t Volume(const std::array<uint32_t, 3>& extent) {
  return uint64_t{extent[0]} * extent[1] * extent[2];
}

std::array<uint32_t, 3> Coordinates(uint64_t index,
                                    const std::array<uint32_t, 3>& extent) {
  return {static_cast<uint32_t>(index % extent[0]),
          static_cast<uint32_t>(index / extent[0] % extent[1]),
          static_cast<uint32_t>(index / extent[0] / extent[1])};
}

absl::Status RunBlock(Block* block, uint64_t threads,
                      const RunOptions& options) {
  std::vector<std::unique_ptr<Warp>> warps;
  for (uint64_t first = 0; first < threads; first += 32) {
    warps.push_back(std::make_unique<Warp>(
        block, static_cast<uint32_t>(first),
        static_cast<uint32_t>(std::min<uint64_t>(32, threads - first))));
  }
  block->live_threads = static_cast<uint32_t>(threads);
  bool alive = true;
  while (alive) {
    alive = false;
    bool moved = false;
    for (const std::unique_ptr<Warp>& warp : warps) {
      if (warp->done()) continue;
      alive = true;
      // A slice of time; warps may wait for one another in loops.
      for (int i = 0; i < 1000 && !warp->done(); ++i) {
        const absl::StatusOr<bool> ran = warp->Step();
        if (!ran.ok()) return ran.status();
        if (!*ran) break;
        moved = true;
        if (warp->instructions() > options.max_instructions) {
          return absl::DeadlineExceededError("endless loop");
        }
      }
    }
    if (block->ReleaseBarriers(warps)) moved = true;
    if (alive && !moved) {
      return absl::DeadlineExceededError(
          "threads wait for one another and none can go on");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Run(const Program& program, const Launch& launch, Memory* memory,
                 AccessLog* log, const RunOptions& options) {
  const KernelCode* kernel = program.Find(launch.kernel);
  if (kernel == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the image has no kernel ", launch.kernel));
  }
  const uint64_t threads = Volume(launch.block);
  if (threads == 0 || threads > 1024 || Volume(launch.grid) == 0 ||
      launch.params.size() > kernel->kernel.param_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no legal launch of ", launch.kernel, ": ", threads,
        " threads a block, ", Volume(launch.grid), " blocks, ",
        launch.params.size(), " bytes of parameters where the kernel has ",
        kernel->kernel.param_size));
  }
  const std::vector<uint8_t> bank0 = MakeBank0(*kernel, launch);
  std::vector<uint64_t> order(Volume(launch.grid));
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (options.block_order_seed != 0) {
    std::shuffle(order.begin(), order.end(),
                 std::mt19937_64(options.block_order_seed));
  }
  for (const uint64_t index : order) {
    Block block;
    block.kernel = kernel;
    block.arch = program.arch;
    block.launch = &launch;
    block.bank0 = &bank0;
    block.memory = memory;
    block.log = log;
    block.index = Coordinates(index, launch.grid);
    block.shared.resize(kSharedReserved + kernel->kernel.static_shared_bytes +
                        launch.dynamic_shared + 128);
    const absl::Status status = RunBlock(&block, threads, options);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(launch.kernel, " block ", block.index[0],
                                       ",", block.index[1], ",", block.index[2],
                                       ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace heddle::sass_machine
