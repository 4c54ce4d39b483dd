/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the device code that nvcc built into the program's read-only data.
 * DECODE_FATBIN and DECODE_CUBIN are the files' paths, from the build.
 */
        .section .rodata
        .balign 64
        .global decode_image_fatbin
        .type decode_image_fatbin, @object
decode_image_fatbin:
        .incbin DECODE_FATBIN
        .size decode_image_fatbin, . - decode_image_fatbin

        .balign 64
        .global decode_image_cubin
        .type decode_image_cubin, @object
decode_image_cubin:
        .incbin DECODE_CUBIN
        .size decode_image_cubin, . - decode_image_cubin

        .section .note.GNU-stack, "", @progbits
