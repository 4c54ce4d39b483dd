/* SPDX-License-Identifier: Apache-2.0
 *
 * The templates of stubs/ that nvcc compiled, one cubin for each chip that it
 * knows, in read-only data. Layout: see heddle_stub_images in stubs.cc. The
 * list of files is written by the build.
 */
        .macro stub_image path
        .balign 8
        .quad 2f - 1f
1:      .incbin "\path"
2:
        .endm

        .section .rodata
        .balign 8
        .hidden heddle_stub_images
        .global heddle_stub_images
        .type heddle_stub_images, @object
heddle_stub_images:
#include HEDDLE_STUB_LIST
        .balign 8
        .quad 0
        .size heddle_stub_images, . - heddle_stub_images

        .section .note.GNU-stack, "", @progbits
