// SPDX-License-Identifier: Apache-2.0
// Uses every NVTX call that the interposer answers, and prints what it returns.
// nvtx_program [driver | across]: with a driver loaded before, or in between.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

namespace {

nvtxEventAttributes_t Event(nvtxMessageType_t type) {
  nvtxEventAttributes_t event;
  std::memset(&event, 0, sizeof(event));
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = type;
  return event;
}

void DefaultDomain() {
  std::printf("push %d\n", nvtxRangePushA("outer"));
  std::printf("push %d\n", nvtxRangePushW(L"Gr\u00fc\u00dfe \U0001F9F5"));
  nvtxEventAttributes_t event = Event(NVTX_MESSAGE_TYPE_ASCII);
  event.message.ascii = "ex";
  std::printf("push %d\n", nvtxRangePushEx(&event));
  std::thread([] {
    std::printf("other thread: push %d\n", nvtxRangePushA("thread"));
    std::printf("other thread: pop %d\n", nvtxRangePop());
  }).join();
  for (int i = 0; i < 3; ++i) std::printf("pop %d\n", nvtxRangePop());
  std::printf("pop too many %s\n", nvtxRangePop() < 0 ? "negative" : "?");
  const nvtxRangeId_t first = nvtxRangeStartA("a");
  const nvtxRangeId_t second = nvtxRangeStartW(L"b");
  std::printf("range ids %s\n",
              first != 0 && second != 0 && first != second ? "differ" : "?");
  nvtxRangeEnd(first);
  nvtxRangeEnd(second);
  nvtxMarkA("mark a");
  nvtxMarkW(L"mark w");
  nvtxMarkEx(&event);
  event = Event(NVTX_MESSAGE_UNKNOWN);
  nvtxMarkEx(&event);
}

void OwnDomain() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("lib");
  const nvtxDomainHandle_t other = nvtxDomainCreateW(L"other");
  std::printf(
      "domains %s\n",
      domain != other && domain == nvtxDomainCreateA("lib") ? "ok" : "?");
  nvtxEventAttributes_t event = Event(NVTX_MESSAGE_TYPE_REGISTERED);
  event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  std::printf("domain push %d\n", nvtxDomainRangePushEx(domain, &event));
  event = Event(NVTX_MESSAGE_TYPE_UNICODE);
  event.message.unicode = L"\u4e2d";
  std::printf("domain push %d\n", nvtxDomainRangePushEx(domain, &event));
  std::printf("other domain push %d\n", nvtxDomainRangePushEx(other, &event));
  std::printf("domain pop %d\n", nvtxDomainRangePop(domain));
  std::printf("other domain pop %d\n", nvtxDomainRangePop(other));
  std::printf("domain pop %d\n", nvtxDomainRangePop(domain));
  event = Event(NVTX_MESSAGE_TYPE_REGISTERED);
  event.message.registered = nvtxDomainRegisterStringW(domain, L"wide");
  const nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &event);
  nvtxDomainRangeEnd(domain, id);
  nvtxDomainMarkEx(domain, &event);
  nvtxDomainDestroy(domain);
}

// Opens ranges before the first CUDA call and closes them after it.
void AcrossTheFirstCall() {
  std::printf("push %d\n", nvtxRangePushA("before"));
  const nvtxRangeId_t id = nvtxRangeStartA("before");
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto init =
      driver == nullptr
          ? nullptr
          : reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  if (init == nullptr || init(0) != 0) std::printf("no driver\n");
  std::printf("push %d\n", nvtxRangePushA("after"));
  nvtxRangeEnd(id);
  std::printf("pop %d\n", nvtxRangePop());
  std::printf("pop %d\n", nvtxRangePop());
  std::printf("push %d\n", nvtxRangePushA("later"));
  std::printf("pop %d\n", nvtxRangePop());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "across") {
    AcrossTheFirstCall();
    return 0;
  }
  if (mode == "driver" && dlopen("libcuda.so.1", RTLD_NOW) == nullptr) return 1;
  DefaultDomain();
  OwnDomain();
}
