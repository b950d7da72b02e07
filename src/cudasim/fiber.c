/* Switching stacks: by hand where we know how, else through ucontext, which asks the system at every switch. Stacks are large, since kernels may
 * keep 256 KiB in arrays of their own, and take memory only where they are touched. */
#include "cudasim/fiber.h"

#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__) || defined(CUDASIM_UCONTEXT)
#define BY_UCONTEXT 1
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { GUARD_BYTES = 4096, COLOURS = 61 };

struct Fiber {
#ifdef BY_UCONTEXT
    ucontext_t here, scheduler;
#else
    void *here, *scheduler; /* stack pointers */
#endif
    char  *stack;
    size_t colour; /* so that the tops of stacks are not all in one set of the cache */
    void (*body)(void);
    void *fake_here, *fake_scheduler; /* AddressSanitizer's */
    const void *scheduler_stack;
    size_t      scheduler_bytes;
};

/* The fiber that is being entered for the first time. */
static Fiber *entered;

#ifdef ASAN
static void switch_begins(void **fake, const void *stack, size_t bytes)
{
    __sanitizer_start_switch_fiber(fake, stack, bytes);
}

static void switch_ends(void *fake, const void **stack, size_t *bytes)
{
    __sanitizer_finish_switch_fiber(fake, stack, bytes);
}
#else
static void switch_begins(void **fake, const void *stack, size_t bytes)
{
    (void)fake, (void)stack, (void)bytes;
}

static void switch_ends(void *fake, const void **stack, size_t *bytes)
{
    (void)fake, (void)stack, (void)bytes;
}
#endif

static void fiber_main(void)
{
    Fiber *f = entered;
    switch_ends(NULL, &f->scheduler_stack, &f->scheduler_bytes);
    for (;;) {
        f->body();
        cudasim_fiber_leave(f);
    }
}

#ifdef BY_UCONTEXT
static void switch_stacks(ucontext_t *save, ucontext_t *load)
{
    swapcontext(save, load);
}

static void prepare(Fiber *f)
{
    getcontext(&f->here);
    f->here.uc_stack.ss_sp = f->stack;
    f->here.uc_stack.ss_size = FIBER_BYTES - f->colour;
    f->here.uc_link = NULL;
    makecontext(&f->here, fiber_main, 0);
}
#else
/* Saves what a called function must keep, changes stacks, and returns on the other one. */
void cudasim_switch(void **save, void *const *load);
__asm__(".text\n"
        ".globl cudasim_switch\n"
        ".type cudasim_switch, @function\n"
        "cudasim_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size cudasim_switch, . - cudasim_switch\n"
        ".section .note.GNU-stack, \"\", @progbits\n"
        ".text\n");

static void switch_stacks(void **save, void *const *load)
{
    cudasim_switch(save, load);
}

/* As if fiber_main had been called and had called switch_stacks at once: six registers, its address, and a place that aligns its frame. */
static void prepare(Fiber *f)
{
    void **top = (void **)(void *)(f->stack + FIBER_BYTES - 64 - f->colour);
    *--top = NULL;
    *--top = (void *)(uintptr_t)fiber_main;
    for (int k = 0; k < 6; k++)
        *--top = NULL;
    f->here = top;
}
#endif

Fiber *cudasim_fiber_new(void (*body)(void))
{
    static size_t made;
    Fiber        *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->stack = mmap(NULL, FIBER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED || mprotect(f->stack, GUARD_BYTES, PROT_NONE) != 0) {
        if (f->stack != MAP_FAILED)
            munmap(f->stack, FIBER_BYTES);
        free(f);
        return NULL;
    }
    f->colour = made++ * 5 % COLOURS * 64;
    f->body = body;
    prepare(f);
    return f;
}

void cudasim_fiber_enter(Fiber *f)
{
    entered = f;
    switch_begins(&f->fake_scheduler, f->stack, FIBER_BYTES);
    switch_stacks(&f->scheduler, &f->here);
    switch_ends(f->fake_scheduler, NULL, NULL);
}

void cudasim_fiber_leave(Fiber *f)
{
    switch_begins(&f->fake_here, f->scheduler_stack, f->scheduler_bytes);
    switch_stacks(&f->here, &f->scheduler);
    switch_ends(f->fake_here, &f->scheduler_stack, &f->scheduler_bytes);
}

void cudasim_fiber_restart(Fiber *f)
{
#ifdef ASAN
    ASAN_UNPOISON_MEMORY_REGION(f->stack + GUARD_BYTES, FIBER_BYTES - GUARD_BYTES);
#endif
    prepare(f);
}

uintptr_t cudasim_fiber_stack(const Fiber *f)
{
    return (uintptr_t)f->stack;
}
