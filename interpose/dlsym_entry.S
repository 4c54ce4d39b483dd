/* SPDX-License-Identifier: Apache-2.0 */
/* void *dlsym(void *handle, const char *name): see dlsym.h. The arguments and
 * the return address must be back in place when the real one is entered. */

#if defined(__x86_64__)

    .text
    .globl dlsym
    .type dlsym, @function
    .globl heddle_dlsym_entry
    .hidden heddle_dlsym_entry
    .hidden heddle_filter_dlsym
    .p2align 4
dlsym:
heddle_dlsym_entry:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx
    call heddle_filter_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rdx, %rdx
    jne 1f
    jmp *%rax
1:  ret
    .cfi_endproc
    .size dlsym, .-dlsym

#elif defined(__aarch64__)

    .text
    .globl dlsym
    .type dlsym, %function
    .globl heddle_dlsym_entry
    .hidden heddle_dlsym_entry
    .hidden heddle_filter_dlsym
    .p2align 4
dlsym:
heddle_dlsym_entry:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    mov x2, x30
    bl heddle_filter_dlsym
    /* br through x16 may land on "bti c", as a call may. */
    mov x16, x0
    mov x17, x1
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x30
    .cfi_restore x29
    .cfi_def_cfa_offset 0
    cbnz x17, 1f
    br x16
1:  mov x0, x16
    ret
    .cfi_endproc
    .size dlsym, .-dlsym

#else
#error "heddle: dlsym is written for x86-64 and aarch64"
#endif

    .section .note.GNU-stack, "", %progbits
