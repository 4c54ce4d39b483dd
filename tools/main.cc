// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "tools/command.h"

int main(int argc, char** argv) {
  return heddle::tools::Main(std::vector<std::string>(argv + 1, argv + argc));
}
