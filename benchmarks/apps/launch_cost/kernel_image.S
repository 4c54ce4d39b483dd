/* SPDX-License-Identifier: Apache-2.0 */
        .section .rodata
        .balign 64
        .global launch_cost_image
        .type launch_cost_image, @object
launch_cost_image:
        .incbin LAUNCH_COST_FATBIN
        .size launch_cost_image, . - launch_cost_image

        .section .note.GNU-stack, "", @progbits
