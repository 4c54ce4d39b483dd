// SPDX-License-Identifier: Apache-2.0
// A program that is linked with the driver: calls every symbol directly.
#include "tests/unit/interpose/probe.h"

namespace heddle::interpose_test {
namespace {

#define HEDDLE_SYMBOL(index, name)                                          \
  extern "C" int name(Word, Word, Word, Word, Word, Word, Word, Word, Word, \
                      Word, Word);                                          \
  int Call_##name(const Word* a) {                                          \
    return name(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], \
                a[10]);                                                     \
  }
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL

void Run() {
  // cuInit first, as in every program: injection happens there.
  PrintCall("first cuInit", kIndex_cuInit, Call_cuInit);
#define HEDDLE_SYMBOL(index, name) PrintCall("elf " #name, index, Call_##name);
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
}

}  // namespace
}  // namespace heddle::interpose_test

int main() { heddle::interpose_test::Run(); }
