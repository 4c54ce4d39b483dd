/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a few lines, to be linked in unusual ways. */
#ifdef WITH_DRIVER
int cuInit(unsigned flags);
int cuInit(unsigned flags) { return (int)flags; }
#endif

int main(void) { return 0; }
