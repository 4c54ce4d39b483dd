// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/hostdevice/device_test.h"

namespace {

constexpr size_t kPage = size_t{2} << 20;

class MemoryTest : public DeviceTest {
 protected:
  CUmemAllocationProp Prop() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return prop;
  }
  CUmemAccessDesc Access() {
    CUmemAccessDesc desc{};
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return desc;
  }
  // Reserves `wanted`, backs it with memory and makes it accessible.
  CUdeviceptr MapAt(CUdeviceptr wanted, size_t size) {
    CUdeviceptr address = 0;
    EXPECT_OK(cuMemAddressReserve(&address, size, 0, wanted, 0));
    const CUmemAllocationProp prop = Prop();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_OK(cuMemCreate(&handle, size, &prop, 0));
    EXPECT_OK(cuMemMap(address, size, 0, handle, 0));
    EXPECT_OK(cuMemRelease(handle));
    const CUmemAccessDesc access = Access();
    EXPECT_OK(cuMemSetAccess(address, size, &access, 1));
    return address;
  }
  void UnmapAt(CUdeviceptr address, size_t size) {
    EXPECT_OK(cuMemUnmap(address, size));
    EXPECT_OK(cuMemAddressFree(address, size));
  }
};

bool HasZero(const std::vector<int>& values) {
  return std::count(values.begin(), values.end(), 0) > 0;
}

TEST_F(MemoryTest, NewMemoryIsNeverZero) {
  const CUdeviceptr plain = Allocate(4096);
  EXPECT_FALSE(HasZero(Read(plain, 1024)));
  const CUstream stream = NewStream();
  CUdeviceptr pooled = 0;
  ASSERT_CUDA(cuMemAllocAsync(&pooled, 4096, stream));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_FALSE(HasZero(Read(pooled, 1024)));
  const CUdeviceptr mapped = MapAt(0, kPage);
  EXPECT_FALSE(HasZero(Read(mapped, 1024)));
  UnmapAt(mapped, kPage);
}

TEST_F(MemoryTest, FreedMemoryLosesItsContent) {
  const CUdeviceptr data = Ints(64, 5);
  const int* pointer = reinterpret_cast<const int*>(data);
  EXPECT_EQ(pointer[63], 5);
  ASSERT_CUDA(cuMemFree(data));
  // Still readable, as on a device, and not what it was.
  EXPECT_EQ(std::count(pointer, pointer + 64, 5), 0);
}

TEST_F(MemoryTest, AllocationsAreAlignedAndDoNotOverlap) {
  std::vector<CUdeviceptr> all;
  for (size_t size : {1, 511, 512, 513, 4096, 1 << 20, 5 << 20}) {
    all.push_back(Allocate(size));
    EXPECT_EQ(all.back() % 512, 0u);
    CUdeviceptr base = 0;
    size_t got = 0;
    EXPECT_OK(cuMemGetAddressRange(&base, &got, all.back() + size - 1));
    EXPECT_EQ(base, all.back());
    EXPECT_EQ(got, size);
  }
  std::set<CUdeviceptr> unique(all.begin(), all.end());
  EXPECT_EQ(unique.size(), all.size());
}

TEST_F(MemoryTest, BadFreesAreErrors) {
  const CUdeviceptr data = Allocate(100);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(data + 4));
  EXPECT_OK(cuMemFree(data));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(data));
  EXPECT_OK(cuMemFree(0));
  int host = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(&host));
  EXPECT_CUDA(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
              cuMemHostUnregister(&host));
}

TEST_F(MemoryTest, TheDeviceHasAnEnd) {
  size_t free = 0;
  size_t total = 0;
  ASSERT_CUDA(cuMemGetInfo(&free, &total));
  CUdeviceptr data = 0;
  EXPECT_CUDA(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&data, free + 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&data, 0));
  ASSERT_CUDA(cuMemAlloc(&data, size_t{3} << 30));
  size_t after = 0;
  ASSERT_CUDA(cuMemGetInfo(&after, &total));
  EXPECT_EQ(after, free - (size_t{3} << 30));
  ASSERT_CUDA(cuMemFree(data));
}

TEST_F(MemoryTest, AnAddressCanBeHadAgainInAnotherProcess) {
  // What replay does: the recorded address of a plain allocation is reserved
  // and mapped by a process that did not allocate it.
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    const CUdeviceptr data = Ints(16, 3);
    const ssize_t written = write(fds[1], &data, sizeof(data));
    _exit(written == sizeof(data) ? 0 : 1);
  }
  CUdeviceptr recorded = 0;
  ASSERT_EQ(read(fds[0], &recorded, sizeof(recorded)),
            static_cast<ssize_t>(sizeof(recorded)));
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // In this process other things may be in that page: use one that is free.
  const CUdeviceptr page = recorded / kPage * kPage + 64 * kPage;
  EXPECT_EQ(MapAt(page, kPage), page);
  EXPECT_OK(cuMemsetD32(page, 8, 4));
  EXPECT_EQ(Read(page, 4), std::vector<int>(4, 8));
  UnmapAt(page, kPage);
}

TEST_F(MemoryTest, AReservationThatIsTakenGetsAnotherAddress) {
  const CUdeviceptr first = MapAt(0, kPage);
  CUdeviceptr second = 0;
  ASSERT_CUDA(cuMemAddressReserve(&second, kPage, 0, first, 0));
  EXPECT_NE(second, first);
  EXPECT_OK(cuMemAddressFree(second, kPage));
  UnmapAt(first, kPage);
#if !defined(__SANITIZE_THREAD__)  // which allows few addresses
  // An address of a real device, far outside the range of this one.
  const CUdeviceptr far = 0x7e1234000000;
  EXPECT_EQ(MapAt(far, kPage), far);
  UnmapAt(far, kPage);
#endif
}

TEST_F(MemoryTest, OneHandleMappedTwiceIsOneMemory) {
  const CUmemAllocationProp prop = Prop();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CUDA(cuMemCreate(&handle, kPage, &prop, 0));
  CUdeviceptr base = 0;
  ASSERT_CUDA(cuMemAddressReserve(&base, 2 * kPage, 0, 0, 0));
  ASSERT_CUDA(cuMemMap(base, kPage, 0, handle, 0));
  ASSERT_CUDA(cuMemMap(base + kPage, kPage, 0, handle, 0));
  const CUmemAccessDesc access = Access();
  ASSERT_CUDA(cuMemSetAccess(base, 2 * kPage, &access, 1));
  ASSERT_CUDA(cuMemsetD32(base, 12, 4));
  EXPECT_EQ(Read(base + kPage, 4), std::vector<int>(4, 12));
  // Mapped memory outlives its handle.
  ASSERT_CUDA(cuMemRelease(handle));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
  ASSERT_CUDA(cuMemUnmap(base, kPage));
  EXPECT_EQ(Read(base + kPage, 1)[0], 12);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, 2 * kPage));
  ASSERT_CUDA(cuMemUnmap(base + kPage, kPage));
  ASSERT_CUDA(cuMemAddressFree(base, 2 * kPage));
}

TEST_F(MemoryTest, VirtualMemoryCallsCheckTheirArguments) {
  CUdeviceptr base = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuMemAddressReserve(&base, 4096, 0, 0, 0));
  const CUmemAllocationProp prop = Prop();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 4096, &prop, 0));
  ASSERT_CUDA(cuMemCreate(&handle, kPage, &prop, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuMemMap(0x12340000000, kPage, 0, handle, 0));
  ASSERT_CUDA(cuMemAddressReserve(&base, 2 * kPage, 0, 0, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuMemMap(base, 2 * kPage, 0, handle, 0));
  ASSERT_CUDA(cuMemMap(base, kPage, 0, handle, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemMap(base, kPage, 0, handle, 0));
  const CUmemAccessDesc access = Access();
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuMemSetAccess(base, 2 * kPage, &access, 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(base));
  CUmemGenericAllocationHandle again = 0;
  ASSERT_CUDA(
      cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(base)));
  EXPECT_EQ(again, handle);
  ASSERT_CUDA(cuMemRelease(again));
  ASSERT_CUDA(cuMemRelease(handle));
  ASSERT_CUDA(cuMemUnmap(base, kPage));
  ASSERT_CUDA(cuMemAddressFree(base, 2 * kPage));
}

TEST_F(MemoryTest, PointersTellWhatTheyAre) {
  const CUdeviceptr data = Allocate(256);
  CUmemorytype type{};
  ASSERT_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    data + 100));
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  CUdeviceptr start = 0;
  ASSERT_CUDA(cuPointerGetAttribute(
      &start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, data + 100));
  EXPECT_EQ(start, data);
  void* pinned = nullptr;
  ASSERT_CUDA(cuMemHostAlloc(&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  ASSERT_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    reinterpret_cast<CUdeviceptr>(pinned)));
  EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
  CUdeviceptr managed = 0;
  ASSERT_CUDA(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  unsigned is_managed = 0;
  ASSERT_CUDA(cuPointerGetAttribute(&is_managed,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  EXPECT_EQ(is_managed, 1u);
  int on_stack = 0;
  const auto unknown = reinterpret_cast<CUdeviceptr>(&on_stack);
  EXPECT_CUDA(
      CUDA_ERROR_INVALID_VALUE,
      cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown));
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* values[] = {&type};
  EXPECT_OK(cuPointerGetAttributes(1, attributes, values, unknown));
  EXPECT_EQ(static_cast<int>(type), 0);
  EXPECT_OK(cuMemFreeHost(pinned));
}

TEST_F(MemoryTest, RegisteredMemoryIsPinnedOnce) {
  std::vector<int> host(1024, 9);
  ASSERT_CUDA(cuMemHostRegister(host.data(), 4096, 0));
  EXPECT_CUDA(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              cuMemHostRegister(host.data(), 4096, 0));
  CUdeviceptr mapped = 0;
  ASSERT_CUDA(cuMemHostGetDevicePointer(&mapped, host.data(), 0));
  ASSERT_CUDA(Launch("increment", 4, nullptr, mapped));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(host[3], 10);
  EXPECT_EQ(host[4], 9);
  ASSERT_CUDA(cuMemHostUnregister(host.data()));
}

TEST_F(MemoryTest, StreamOrderedMemoryIsTheProgramsFromTheAllocationOn) {
  const CUstream stream = NewStream();
  const CUstream early = NewStream();
  // Written by another stream that did not wait for the allocation: lost in
  // some orders.
  const std::set<bool> kept = OverSeeds(40, [&] {
    CUdeviceptr data = 0;
    EXPECT_OK(cuMemAllocAsync(&data, 16, stream));
    EXPECT_OK(Launch("fill", 1, early, data, 3));
    EXPECT_OK(cuCtxSynchronize());
    const bool same = Read(data, 1)[0] == 3;
    EXPECT_OK(cuMemFreeAsync(data, stream));
    EXPECT_OK(cuCtxSynchronize());
    return same;
  });
  EXPECT_EQ(kept, (std::set<bool>{false, true}));
}

TEST_F(MemoryTest, PoolsCountAndRefuseDoubleFrees) {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  ASSERT_CUDA(cuMemPoolCreate(&pool, &props));
  const CUstream stream = NewStream();
  CUdeviceptr data = 0;
  ASSERT_CUDA(cuMemAllocFromPoolAsync(&data, 1000, pool, stream));
  cuuint64_t used = 0;
  ASSERT_CUDA(
      cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 1000u);
  ASSERT_CUDA(cuMemFreeAsync(data, stream));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(data, stream));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(data));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  ASSERT_CUDA(
      cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 0u);
  ASSERT_CUDA(cuMemPoolDestroy(pool));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
}

}  // namespace
