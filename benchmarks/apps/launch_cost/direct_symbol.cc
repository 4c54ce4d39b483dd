// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/launch_cost/direct_symbol.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace {

// The GNU hash section names no number of symbols: the highest one is the end
// of the longest chain.
uint32_t SymbolCount(const uint32_t* hash) {
  const uint32_t buckets = hash[0];
  const uint32_t first = hash[1];
  const uint32_t bloom_words = hash[2];
  const uint32_t* bucket = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) {
    if (bucket[i] > last) last = bucket[i];
  }
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

}  // namespace

void* DirectSymbol(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) {
      symbols = reinterpret_cast<const ElfW(Sym)*>(value);
    } else if (entry->d_tag == DT_STRTAB) {
      strings = reinterpret_cast<const char*>(value);
    } else if (entry->d_tag == DT_GNU_HASH) {
      hash = reinterpret_cast<const uint32_t*>(value);
    }
  }
  if (symbols == nullptr || strings == nullptr || hash == nullptr) {
    return nullptr;
  }
  const uint32_t count = SymbolCount(hash);
  for (uint32_t i = 0; i < count; ++i) {
    if (symbols[i].st_shndx != SHN_UNDEF &&
        std::strcmp(strings + symbols[i].st_name, name) == 0) {
      return reinterpret_cast<void*>(map->l_addr + symbols[i].st_value);
    }
  }
  return nullptr;
}
