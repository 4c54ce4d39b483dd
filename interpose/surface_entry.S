/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers and slow stubs of every symbol: see surface.h. They are written
 * in assembly because they must not depend on a symbol's signature: arguments,
 * those on the stack too, and the return address stay where the program put
 * them. (Compilers copy stack arguments onto themselves before such a jump, and
 * cuLaunchKernel has five.) */

#if defined(__x86_64__)

.macro wrapper label, family, index
    .p2align 4
\label:
    endbr64
    movq heddle_targets + 8 * (\family * COUNT + \index)(%rip), %rax
    jmp *%rax
    .size \label, . - \label
.endm

/* r11 is scratch at a call and carries the symbol's index. */
.macro slow_stub label, family, index
    .p2align 4
\label:
    endbr64
    movl $\index, %r11d
    jmp slow_call_\family
    .size \label, . - \label
.endm

/* Keeps whatever may hold an argument over heddle_slow_call(family, index). */
.macro slow_call family
    .type slow_call_\family, %function
slow_call_\family:
    .cfi_startproc
    subq $184, %rsp
    .cfi_adjust_cfa_offset 184
    movaps %xmm0, (%rsp)
    movaps %xmm1, 16(%rsp)
    movaps %xmm2, 32(%rsp)
    movaps %xmm3, 48(%rsp)
    movaps %xmm4, 64(%rsp)
    movaps %xmm5, 80(%rsp)
    movaps %xmm6, 96(%rsp)
    movaps %xmm7, 112(%rsp)
    movq %rdi, 128(%rsp)
    movq %rsi, 136(%rsp)
    movq %rdx, 144(%rsp)
    movq %rcx, 152(%rsp)
    movq %r8, 160(%rsp)
    movq %r9, 168(%rsp)
    movl $\family, %edi
    movl %r11d, %esi
    call heddle_slow_call
    movaps (%rsp), %xmm0
    movaps 16(%rsp), %xmm1
    movaps 32(%rsp), %xmm2
    movaps 48(%rsp), %xmm3
    movaps 64(%rsp), %xmm4
    movaps 80(%rsp), %xmm5
    movaps 96(%rsp), %xmm6
    movaps 112(%rsp), %xmm7
    movq 128(%rsp), %rdi
    movq 136(%rsp), %rsi
    movq 144(%rsp), %rdx
    movq 152(%rsp), %rcx
    movq 160(%rsp), %r8
    movq 168(%rsp), %r9
    addq $184, %rsp
    .cfi_adjust_cfa_offset -184
    jmp *%rax
    .cfi_endproc
    .size slow_call_\family, . - slow_call_\family
.endm

#elif defined(__aarch64__)

/* x16 and x17 are scratch at a call, and br through x16 may land where only calls
 * may ("bti c", hint 34). The acquiring load pairs with the release of
 * dispatch.c. */
.macro wrapper label, family, index
    .p2align 4
\label:
    hint #34
    adrp x16, heddle_targets + 8 * (\family * COUNT + \index)
    add x16, x16, :lo12:heddle_targets + 8 * (\family * COUNT + \index)
    ldar x16, [x16]
    br x16
    .size \label, . - \label
.endm

.macro slow_stub label, family, index
    .p2align 4
\label:
    hint #34
    mov w16, #\index
    b slow_call_\family
    .size \label, . - \label
.endm

/* Keeps whatever may hold an argument over heddle_slow_call(family, index). */
.macro slow_call family
    .type slow_call_\family, %function
slow_call_\family:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, #\family
    mov w1, w16
    bl heddle_slow_call
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_restore x30
    .cfi_restore x29
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
    .size slow_call_\family, . - slow_call_\family
.endm

#else
#error "heddle: the wrappers are written for x86-64 and aarch64"
#endif

.macro hidden_function label
    .globl \label
    .hidden \label
    .type \label, %function
.endm

/* The exported name is a second label of the first wrapper: a program may define
 * a symbol of that name (in a non-PIC executable, its PLT entry), and our tables
 * must hold the wrapper all the same. */
.macro symbol name, index
    hidden_function heddle_elf_\name
    hidden_function heddle_proc_\name
    hidden_function heddle_slow_elf_\name
    hidden_function heddle_slow_proc_\name
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    wrapper heddle_elf_\name, 0, \index
    .size \name, . - \name
    wrapper heddle_proc_\name, 1, \index
    slow_stub heddle_slow_elf_\name, 0, \index
    slow_stub heddle_slow_proc_\name, 1, \index
.endm

/* The number of symbols, as in the enum of surface.h. */
    .set COUNT, 0
#define HEDDLE_SYMBOL(index, name) .set COUNT, COUNT + 1
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL

    .text
    .hidden heddle_targets
    .hidden heddle_slow_call
    slow_call 0
    slow_call 1

    .cfi_startproc
#define HEDDLE_SYMBOL(index, name) symbol name, index
#include "interpose/surface.inc"
    .cfi_endproc

    .section .note.GNU-stack, "", %progbits
