// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_CUBIN_LIBRARY_IMAGES_H_
#define HEDDLE_TESTS_UNIT_CUBIN_LIBRARY_IMAGES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heddle::cubin {

// Calls `visit` with every cubin for `arch` (compute capability x 10) in the
// library's .nv_fatbin section, decompressed, until it returns false. Returns
// how many there were, -1 if the file is no such library or damaged. The file
// is mapped, not read.
int ForEachLibraryCubin(const std::string& path, uint32_t arch,
                        const std::function<bool(std::vector<uint8_t>)>& visit);

}  // namespace heddle::cubin

#endif  // HEDDLE_TESTS_UNIT_CUBIN_LIBRARY_IMAGES_H_
