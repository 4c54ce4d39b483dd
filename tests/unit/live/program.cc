// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/live/program.h"

#include <algorithm>

#include "tests/unit/live/host_kernels.h"

namespace heddle::live {

Memory Program::Start() const {
  Memory memory(buffers, Buffer(kCount));
  for (uint32_t i = 0; i < buffers; ++i) {
    for (uint32_t k = 0; k < kCount; ++k) {
      memory[i][k] = 0xabcd0000 + i * 1000 + k;
    }
  }
  return memory;
}

void Program::RunSerially(Memory* memory) const {
  for (const Step& step : steps) {
    Buffer& out = (*memory)[step.writes];
    if (!step.kernel) {
      std::fill(out.begin(), out.end(), step.salt);
      continue;
    }
    const unsigned* in[3] = {};
    for (size_t k = 0; k < step.reads.size(); ++k) {
      in[k] = (*memory)[step.reads[k]].data();
    }
    for (unsigned block = 0; block < step.blocks; ++block) {
      out[block] = Fold(out[block], in, kCount, step.salt, block);
    }
  }
}

Program Program::Chain(uint32_t count, unsigned blocks) {
  Program program;
  program.buffers = count + 1;
  for (uint32_t i = 0; i < count; ++i) {
    Step step;
    step.reads = {0};
    if (i > 0) {
      step.after = {i - 1};
      step.reads.push_back(i);
    }
    step.writes = i + 1;
    step.salt = i;
    step.blocks = blocks;
    program.steps.push_back(step);
  }
  return program;
}

Program Program::ForkJoin(uint32_t width, unsigned blocks) {
  Program program;
  program.buffers = width + 3;
  const auto add = [&](std::vector<uint32_t> after,
                       std::vector<uint32_t> reads) {
    Step step;
    step.after = std::move(after);
    step.reads = std::move(reads);
    step.writes = static_cast<uint32_t>(program.steps.size()) + 1;
    step.salt = 100 + step.writes;
    step.blocks = blocks;
    program.steps.push_back(step);
  };
  add({}, {0});
  std::vector<uint32_t> branches;
  std::vector<uint32_t> results;
  for (uint32_t i = 0; i < width; ++i) {
    add({0}, {0, 1});
    branches.push_back(i + 1);
    results.push_back(i + 2);
  }
  results.resize(std::min(results.size(), size_t{3}));
  add(branches, results);
  return program;
}

Program Program::Lanes(uint32_t width, uint32_t length, unsigned blocks) {
  Program program;
  program.buffers = width * length + 2;
  for (uint32_t i = 0; i < width * length; ++i) {
    Step step;
    if (i > 0) step.after = {i - 1};
    step.reads = {0};
    if (i >= width) step.reads.push_back(i - width + 1);
    step.writes = i + 1;
    step.salt = 200 + i;
    step.blocks = blocks;
    program.steps.push_back(step);
  }
  Step join;
  join.after = {width * length - 1};
  for (uint32_t lane = 0; lane < std::min(width, 3u); ++lane) {
    join.reads.push_back(width * (length - 1) + lane + 1);
  }
  join.writes = width * length + 1;
  join.blocks = blocks;
  program.steps.push_back(join);
  return program;
}

Program Program::InLine(Random& random, uint32_t max_nodes, uint32_t buffers) {
  Program program;
  program.buffers = buffers;
  const uint32_t count = 3 + Below(random, max_nodes - 2);
  for (uint32_t i = 0; i < count; ++i) {
    Step step;
    if (i > 0) step.after = {i - 1};
    step.kernel = Below(random, 6) != 0;
    step.writes = 1 + Below(random, buffers - 1);
    step.salt = static_cast<unsigned>(random());
    step.blocks = 1 + Below(random, kCount);
    for (uint32_t k = Below(random, 3); step.kernel && k > 0; --k) {
      const uint32_t buffer = Below(random, buffers);
      if (buffer != step.writes) step.reads.push_back(buffer);
    }
    program.steps.push_back(std::move(step));
  }
  return program;
}

Program Program::Any(Random& random, uint32_t max_nodes) {
  Program program;
  const uint32_t count = 2 + Below(random, max_nodes - 1);
  program.buffers = 2 * count + 1;
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  std::vector<std::vector<uint32_t>> readers(program.buffers);
  std::vector<std::vector<uint32_t>> writers(program.buffers);
  const uint32_t density = 1 + Below(random, 4);
  for (uint32_t node = 0; node < count; ++node) {
    Step step;
    for (uint32_t from = 0; from < node; ++from) {
      if (Below(random, 4) >= density && from + 1 != node) continue;
      if (before[node][from] || Below(random, 5) == 0) continue;
      step.after.push_back(from);
      before[node][from] = true;
      for (uint32_t i = 0; i < count; ++i) {
        if (before[from][i]) before[node][i] = true;
      }
    }
    const auto ordered = [&](const std::vector<uint32_t>& others) {
      return std::all_of(others.begin(), others.end(),
                         [&](uint32_t other) { return before[node][other]; });
    };
    std::vector<uint32_t> readable;
    std::vector<uint32_t> writable;
    for (uint32_t i = 0; i <= count; ++i) {
      if (!ordered(writers[i])) continue;
      readable.push_back(i);
      if (i > 0 && ordered(readers[i])) writable.push_back(i);
    }
    // If none is, one of its own.
    if (writable.empty()) writable.push_back(count + 1 + node);
    step.writes =
        writable[Below(random, static_cast<uint32_t>(writable.size()))];
    step.kernel = Below(random, 7) != 0;
    step.salt = static_cast<unsigned>(random());
    step.blocks = 1 + Below(random, kCount);
    if (step.kernel) {
      std::shuffle(readable.begin(), readable.end(), random);
      for (const uint32_t i : readable) {
        if (i == step.writes || step.reads.size() == 3) continue;
        // Recent results most of all.
        if (writers[i].empty() && i != 0 && Below(random, 2) == 0) continue;
        step.reads.push_back(i);
        readers[i].push_back(node);
      }
    }
    readers[step.writes].clear();
    writers[step.writes] = {node};
    program.steps.push_back(std::move(step));
  }
  return program;
}

}  // namespace heddle::live
