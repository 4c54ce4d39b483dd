/* SPDX-License-Identifier: Apache-2.0
 *
 * Device code that the build compiled, in read-only data: each image between
 * two symbols. The paths are from the build.
 */
#define IMAGE(name, path)                           \
        .balign 64;                                 \
        .global image_##name, image_##name##_end;   \
image_##name:                                       \
        .incbin path;                               \
image_##name##_end:                                 \
        .byte 0

        .section .rodata
IMAGE(sm_90, IMAGE_sm_90)
IMAGE(sm_90a, IMAGE_sm_90a)
IMAGE(debug, IMAGE_debug)
IMAGE(linked, IMAGE_linked)
IMAGE(select, SELECT_FATBIN)

        .section .note.GNU-stack, "", @progbits
