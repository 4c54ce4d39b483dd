/* SPDX-License-Identifier: Apache-2.0
 *
 * chunks.cu as nvcc compiled it.
 */
        .section .rodata
        .balign 16
        .hidden heddle_live_chunks_image
        .global heddle_live_chunks_image
        .type heddle_live_chunks_image, @object
heddle_live_chunks_image:
        .incbin HEDDLE_CHUNKS_IMAGE
        .size heddle_live_chunks_image, . - heddle_live_chunks_image

        .section .note.GNU-stack, "", @progbits
