// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <map>
#include <sstream>

#include "tests/unit/hostdevice/device_test.h"

namespace {

using Resolve = CUresult (*)(const char*, void**, int, cuuint64_t,
                             CUdriverProcAddressQueryResult*);

class ProcAddressTest : public testing::Test {
 protected:
  ProcAddressTest() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    resolve_ =
        reinterpret_cast<Resolve>(dlsym(library_, "cuGetProcAddress_v2"));
  }
  ~ProcAddressTest() override { dlclose(library_); }

  // What a caller gets, and the ELF symbol itself.
  void* Get(const std::string& name, int version, cuuint64_t flags = 0) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_OK(resolve_(name.c_str(), &function, version, flags, &status));
    status_ = status;
    EXPECT_EQ(function != nullptr, status == CU_GET_PROC_ADDRESS_SUCCESS);
    return function;
  }
  void* Symbol(const std::string& name) {
    return dlsym(library_, name.c_str());
  }

  void* library_ = nullptr;
  Resolve resolve_ = nullptr;
  CUdriverProcAddressQueryResult status_{};
};

TEST_F(ProcAddressTest, GivesTheFormThatTheCallersVersionKnows) {
  EXPECT_EQ(Get("cuMemAlloc", 12000), Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Get("cuGraphExecUpdate", 11080), Symbol("cuGraphExecUpdate"));
  EXPECT_EQ(Get("cuGraphExecUpdate", 12000), Symbol("cuGraphExecUpdate_v2"));
  EXPECT_EQ(Get("cuGraphAddDependencies", 12020),
            Symbol("cuGraphAddDependencies"));
  EXPECT_EQ(Get("cuGraphAddDependencies", 12030),
            Symbol("cuGraphAddDependencies_v2"));
  EXPECT_EQ(Get("cuStreamGetCaptureInfo", 10010),
            Symbol("cuStreamGetCaptureInfo"));
  EXPECT_EQ(Get("cuStreamGetCaptureInfo", 12000),
            Symbol("cuStreamGetCaptureInfo_v2"));
  EXPECT_EQ(Get("cuStreamGetCaptureInfo", 13000),
            Symbol("cuStreamGetCaptureInfo_v3"));
  EXPECT_EQ(Get("cuGetProcAddress", 11030), Symbol("cuGetProcAddress"));
  EXPECT_EQ(Get("cuGetProcAddress", 12000), Symbol("cuGetProcAddress_v2"));
}

TEST_F(ProcAddressTest, GivesThePerThreadFormOnRequestOnly) {
  constexpr cuuint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  constexpr cuuint64_t kPerThread =
      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(Get("cuLaunchKernel", 12000), Symbol("cuLaunchKernel"));
  EXPECT_EQ(Get("cuLaunchKernel", 12000, kLegacy), Symbol("cuLaunchKernel"));
  EXPECT_EQ(Get("cuLaunchKernel", 12000, kPerThread),
            Symbol("cuLaunchKernel_ptsz"));
  EXPECT_EQ(Get("cuMemcpyHtoD", 12000, kPerThread),
            Symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(Get("cuMemAlloc", 12000, kPerThread), Symbol("cuMemAlloc_v2"));
  EXPECT_NE(Symbol("cuLaunchKernel_ptsz"), Symbol("cuLaunchKernel"));
}

TEST_F(ProcAddressTest, SaysWhyThereIsNothing) {
  EXPECT_EQ(Get("cuNothing", 12000), nullptr);
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(Get("cuLibraryLoadData", 11080), nullptr);
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  // A versioned name is no base name.
  EXPECT_EQ(Get("cuMemAlloc_v2", 12000), nullptr);
  void* function = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              resolve_("cuInit", &function, 13010, 0, nullptr));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              resolve_("cuInit", &function, 12000, 4, nullptr));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              resolve_(nullptr, &function, 12000, 0, nullptr));
  using OldResolve = CUresult (*)(const char*, void**, int, cuuint64_t);
  const auto old = reinterpret_cast<OldResolve>(Symbol("cuGetProcAddress"));
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, old("cuNothing", &function, 12000, 0));
}

// The function pointer types of the toolkit name every form of every function
// and the version that brought it.
TEST_F(ProcAddressTest, AgreesWithTheToolkitOnEveryFormAndVersion) {
  std::ifstream file(std::string(HEDDLE_CUDA_INCLUDE) + "/cudaTypedefs.h");
  ASSERT_TRUE(file) << "no cudaTypedefs.h in " << HEDDLE_CUDA_INCLUDE;
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  std::map<std::string, std::set<int>> versions;
  std::map<std::string, std::set<int>> per_thread;
  // "PFN_<name>_v<version>[_ptsz|_ptds])" in each type definition.
  const std::string prefix = "*PFN_cu";
  for (size_t at = all.find(prefix); at != std::string::npos;
       at = all.find(prefix, at + 1)) {
    const std::string type = all.substr(at + 5, all.find(')', at) - (at + 5));
    const size_t v = type.rfind("_v");
    ASSERT_NE(v, std::string::npos) << type;
    size_t digits = 0;
    const int version = std::stoi(type.substr(v + 2), &digits);
    const bool plain = v + 2 + digits == type.size();
    (plain ? versions : per_thread)[type.substr(0, v)].insert(version);
  }
  ASSERT_GT(versions.size(), 400u);
  int checked = 0;
  for (const auto& [name, list] : versions) {
    // The n-th form has the suffix _vn; the 32-bit forms before CUDA 3.2 are
    // not here.
    int form = 0;
    for (const int version : list) {
      ++form;
      if (version > 13000) continue;
      const std::string symbol =
          form == 1 ? name : name + "_v" + std::to_string(form);
      if (version <= 3000 && Symbol(symbol) == nullptr) continue;
      if (name == "cuTexRefSetAddress2D" && form == 1) continue;
      if (name == "cuMemHostGetDevicePointer" && form == 1) continue;
      EXPECT_NE(Symbol(symbol), nullptr) << symbol;
      EXPECT_EQ(Get(name, version), Symbol(symbol)) << symbol << version;
      ++checked;
    }
  }
  for (const auto& [name, list] : per_thread) {
    for (const int version : list) {
      if (version > 13000) continue;
      void* function =
          Get(name, version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
      EXPECT_NE(function, nullptr) << name << version;
      EXPECT_NE(function, Get(name, version)) << name << version;
      ++checked;
    }
  }
  EXPECT_GT(checked, 500);
}

TEST_F(ProcAddressTest, UnsupportedFunctionsSaySo) {
  using NoArguments = CUresult (*)();
  for (const char* name :
       {"cuArrayCreate_v2", "cuTexObjectCreate", "cuIpcGetMemHandle",
        "cuLinkCreate_v2", "cuMulticastCreate"}) {
    const auto function = reinterpret_cast<NoArguments>(Symbol(name));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED, function());
  }
}

}  // namespace
