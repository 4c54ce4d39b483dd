// SPDX-License-Identifier: Apache-2.0
//
// Times kernel launches as the calling thread sees them: batches of launches of
// a kernel with ten parameters and no work, each batch on an idle stream, so
// that no launch waits for the device. Every other batch calls the driver's
// function past whatever interposes it, so that one process under a recorder
// gives both the plain and the recorded cost.
//
//   launch_cost [threads [batches [launches per batch]]]
//
// Prints one JSON object: nanoseconds per launch, over all batches of all
// threads.

#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "benchmarks/apps/launch_cost/direct_symbol.h"

extern "C" const unsigned char launch_cost_image[];

namespace {

void Check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "launch_cost: %s: %s\n", call,
               name == nullptr ? "unknown error" : name);
  std::exit(1);
}
#define CHECK_CUDA(call) Check(call, #call)

struct Arguments {
  CUdeviceptr a, b, c, index;
  long long n = 1;
  int rows = 2;
  int columns = 3;
  float scale = 4;
  float shift = 5;
  unsigned flags = 6;
};

struct Times {
  std::vector<double> direct;  // nanoseconds per launch, by batch
  std::vector<double> called;
};

Times RunBatches(CUcontext context, CUfunction kernel, CUdeviceptr memory,
                 int batches, int launches) {
  const auto direct = reinterpret_cast<decltype(&cuLaunchKernel)>(
      DirectSymbol("libcuda.so.1", "cuLaunchKernel"));
  if (direct == nullptr) {
    std::fprintf(stderr, "launch_cost: no cuLaunchKernel in libcuda.so.1\n");
    std::exit(1);
  }
  CHECK_CUDA(cuCtxSetCurrent(context));
  CUstream stream;
  CHECK_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Arguments args{
      .a = memory, .b = memory + 256, .c = memory + 512, .index = memory + 768};
  void* params[] = {&args.a,     &args.b,    &args.c,       &args.index,
                    &args.n,     &args.rows, &args.columns, &args.scale,
                    &args.shift, &args.flags};
  Times times;
  for (int batch = 0; batch < 2 * batches; ++batch) {
    const auto launch = batch % 2 == 0 ? direct : &cuLaunchKernel;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) {
      args.n = i;
      CHECK_CUDA(launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr));
    }
    const std::chrono::duration<double, std::nano> took =
        std::chrono::steady_clock::now() - begin;
    CHECK_CUDA(cuStreamSynchronize(stream));
    // The first batches load code and fill caches.
    if (batch < batches / 5) continue;
    (batch % 2 == 0 ? times.direct : times.called)
        .push_back(took.count() / launches);
  }
  CHECK_CUDA(cuStreamDestroy(stream));
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const int batches = argc > 2 ? std::atoi(argv[2]) : 200;
  const int launches = argc > 3 ? std::atoi(argv[3]) : 256;
  if (threads < 1 || batches < 1 || launches < 1) {
    std::fprintf(stderr, "usage: launch_cost [threads [batches [launches]]]\n");
    return 2;
  }
  CHECK_CUDA(cuInit(0));
  CUdevice device;
  CHECK_CUDA(cuDeviceGet(&device, 0));
  CUcontext context;
  CHECK_CUDA(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_CUDA(cuCtxSetCurrent(context));
  CUmodule module;
  CHECK_CUDA(cuModuleLoadData(&module, launch_cost_image));
  CUfunction kernel;
  CHECK_CUDA(cuModuleGetFunction(&kernel, module, "launch_cost_ten"));
  CUdeviceptr memory;
  CHECK_CUDA(cuMemAlloc(&memory, 4096));

  std::vector<Times> results(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      results[static_cast<size_t>(i)] =
          RunBatches(context, kernel, memory, batches, launches);
    });
  }
  for (std::thread& worker : workers) worker.join();

  Times all;
  for (const Times& result : results) {
    all.direct.insert(all.direct.end(), result.direct.begin(),
                      result.direct.end());
    all.called.insert(all.called.end(), result.called.begin(),
                      result.called.end());
  }
  std::sort(all.direct.begin(), all.direct.end());
  std::sort(all.called.begin(), all.called.end());
  const auto at = [](const std::vector<double>& sorted, size_t quarter) {
    return sorted[(sorted.size() - 1) * quarter / 4];
  };
  std::printf(
      "{\"threads\": %d, \"launches\": %zu, \"direct_ns\": %.1f, "
      "\"called_ns\": %.1f, \"direct_quartiles_ns\": [%.1f, %.1f], "
      "\"called_quartiles_ns\": [%.1f, %.1f]}\n",
      threads, all.called.size() * static_cast<size_t>(launches),
      at(all.direct, 2), at(all.called, 2), at(all.direct, 1),
      at(all.direct, 3), at(all.called, 1), at(all.called, 3));
  return 0;
}
