/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for libheddle_preload.so in the tests of `heddle record`: copies the trace that STUB_TRACE names to where the recorder would write. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void CopyTrace(void) {
  const char* from = getenv("STUB_TRACE");
  const char* to = getenv("HEDDLE_TRACE");
  if (from == NULL || to == NULL) return;
  FILE* in = fopen(from, "rb");
  FILE* out = fopen(to, "wb");
  if (in != NULL && out != NULL) {
    char buffer[4096];
    size_t got;
    while ((got = fread(buffer, 1, sizeof(buffer), in)) > 0) {
      fwrite(buffer, 1, got, out);
    }
  }
  if (in != NULL) fclose(in);
  if (out != NULL) fclose(out);
}
