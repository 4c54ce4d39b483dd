// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_MEMORY_H_
#define HEDDLE_TESTS_SASS_MACHINE_MEMORY_H_

// Global memory of the machine: buffers at addresses that the test chooses.
// Nothing is between them: an access that is not inside one buffer is an error.

#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace heddle::sass_machine {

class Memory {
 public:
  // Makes a buffer at `address`, which must not overlap another.
  void Add(uint64_t address, std::vector<uint8_t> content);
  // The same, for a buffer of any size of which little is used: a page comes to
  // be, full of small numbers, when it is touched. No access may cross from one
  // to the next (aligned ones never do). Not in `buffers`.
  void AddSparse(uint64_t address, uint64_t size);
  template <typename T>
  void AddValues(uint64_t address, const std::vector<T>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    Add(address, std::move(bytes));
  }

  // Where [address, address + size) lies; nullptr unless in one buffer.
  uint8_t* At(uint64_t address, uint64_t size);

  // The content of the buffer that begins at `address`; empty if none does.
  template <typename T>
  std::vector<T> Values(uint64_t address) const {
    const auto found = buffers_.find(address);
    if (found == buffers_.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    if (!values.empty()) {
      std::memcpy(values.data(), found->second.data(),
                  values.size() * sizeof(T));
    }
    return values;
  }

  const std::map<uint64_t, std::vector<uint8_t>>& buffers() const {
    return buffers_;
  }

 private:
  uint8_t* AtSparse(uint64_t address, uint64_t size);

  std::map<uint64_t, std::vector<uint8_t>> buffers_;  // by address
  std::map<uint64_t, uint64_t> sparse_;               // address, size
  std::map<uint64_t, std::vector<uint8_t>> pages_;    // by address
};

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_MEMORY_H_
