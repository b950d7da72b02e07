/* What kernels read and write, byte by byte. The compiler calls the functions at the end before every access of code that it was told to watch for races
 * (-fsanitize=thread); here CUDA's rules are applied instead of those of C++:
 *
 *   - a kernel touches device memory, its block's shared memory, variables of its file and its own stack, each access aligned to its size;
 *   - of two threads of a block that touch a byte, one of them writing, there is a barrier in between (of the warp, if both are of one warp);
 *   - threads of different blocks of a launch do so only if both are atomic.
 *
 * A byte remembers who wrote and who read it last. `when` tells the launch, the block and the barrier, since time (Now.time) only goes forward. */
#include "cudasim/sim.h"

#include <stdlib.h>
#include <string.h>

/* Whoever: a thread, or several that read in one interval between barriers. */
enum { MANY_OF_WARP = MOST_THREADS /* + number of the warp */, MANY = MOST_THREADS + MOST_THREADS / WARP };

typedef struct Stamp {
    uint32_t when;      /* 0: never */
    uint16_t who;
    uint16_t warp_time; /* its warp's barriers so far */
    uint32_t where;     /* the code's address behind its file's */
    bool     atomic;    /* of a write */
    bool     others;    /* of a read: other blocks of the launch read it before */
} Stamp;

typedef struct Cell {
    Stamp write, read;
} Cell;

enum { PAGE = 4096, TABLE = 1 << 16 };
typedef struct Page {
    uintptr_t    number;
    struct Page *next;
    Cell         cells[PAGE];
} Page;

typedef struct Check {
    Page *table[TABLE], *last;
    Image image; /* of the kernel */
    Range dynamic, unused; /* shared memory that the launch asked for, and what is left of it */
} Check;

static Check check;

static Cell *cell_of(uintptr_t a)
{
    uintptr_t number = a / PAGE;
    if (!check.last || check.last->number != number) {
        Page **p = &check.table[(number * 0x9E3779B97F4A7C15u >> 48) % TABLE];
        while (*p && (*p)->number != number)
            p = &(*p)->next;
        if (!*p) {
            *p = calloc(1, sizeof **p);
            if (!*p)
                cudasim_fault(NULL, 0, "no memory to check accesses");
            (*p)->number = number;
        }
        check.last = *p;
    }
    return &check.last->cells[a % PAGE];
}

void cudasim_check_reset(void)
{
    for (int k = 0; k < TABLE; k++)
        for (Page *p = check.table[k], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    memset(check.table, 0, sizeof check.table);
    check.last = NULL;
}

void cudasim_check_launch(const cudasim_launch *l, const Image *image)
{
    enum { LATE = 1u << 31 };
    uintptr_t dynamic = (uintptr_t)l->shared();
    check.image = *image;
    check.dynamic = (Range){ dynamic, dynamic + l->shared_bytes };
    check.unused = (Range){ dynamic + l->shared_bytes, dynamic + CUDASIM_MOST_SHARED };
    if (cudasim_now.time > LATE) { /* everything that was is long ago */
        cudasim_check_reset();
        cudasim_now.time = cudasim_now.launch_time = 1;
    }
}

/* ---- races ---- */

/* What s tells of was before what this thread does now. */
static bool is_before(const Stamp *s, bool shared)
{
    const Now *now = &cudasim_now;
    unsigned   warp = now->thread / WARP;
    if (s->when < now->launch_time)
        return true;
    if (s->when < now->block_time)
        return shared;
    if (s->when != now->time || s->who == now->thread)
        return true;
    bool same_warp = s->who == MANY_OF_WARP + warp || (s->who < MOST_THREADS && s->who / WARP == warp);
    return same_warp && s->warp_time != (uint16_t)now->warp_times[warp];
}

static void report_race(const Stamp *s, bool writes, bool wrote, size_t n, const void *pc)
{
    const char *now = writes ? "written" : "read", *then = wrote ? "writes" : "reads";
    cudasim_fault_other((const char *)check.image.base + s->where);
    if (s->when < cudasim_now.block_time)
        cudasim_fault(pc, 0, "a race between blocks: %zu bytes are %s that another block %s@", n, now, then);
    else if (s->who >= MOST_THREADS)
        cudasim_fault(pc, 0, "a race: %zu bytes are %s that other threads have just read@, with no barrier between", n, now);
    else
        cudasim_fault(pc, 0, "a race: %zu bytes are %s that thread %u %s@, with no barrier between", n, now, s->who, then);
}

/* Readers of one interval become several; those that the warp's barrier has put before are as good as forgotten: who could race with them would with this one. */
static void note_read(Stamp *r, Stamp now)
{
    bool this_launch = r->when >= cudasim_now.launch_time;
    now.others = this_launch && (r->others || r->when < cudasim_now.block_time);
    if (r->when == now.when && r->who != now.who && !is_before(r, false)) {
        unsigned warp = cudasim_now.thread / WARP;
        bool     same_warp = r->who == MANY_OF_WARP + warp || (r->who < MOST_THREADS && r->who / WARP == warp);
        now.who = (uint16_t)(same_warp ? MANY_OF_WARP + warp : MANY);
    }
    *r = now;
}

static void look_at(Cell *c, bool reads, bool writes, bool atomic, bool shared, size_t n, const void *pc)
{
    const Now *now = &cudasim_now;
    Stamp      s = { now->time, (uint16_t)now->thread, (uint16_t)now->warp_times[now->thread / WARP], (uint32_t)((uintptr_t)pc - check.image.base), atomic, false };
    if (!(atomic && c->write.atomic) && !is_before(&c->write, shared))
        report_race(&c->write, writes, true, n, pc);
    if (writes && (!is_before(&c->read, shared) || (!shared && c->read.others && c->read.when >= now->launch_time)))
        report_race(&c->read, true, false, n, pc);
    if (reads)
        note_read(&c->read, s);
    if (writes)
        c->write = s;
}

/* ---- places ---- */

static bool in(const Range *r, uintptr_t a)
{
    return a >= r->lo && a < r->hi;
}

static void report_place(const void *p, size_t n, const char *what, const void *pc)
{
    enum { NEAR = 1 << 20 };
    Range     block;
    uintptr_t a = (uintptr_t)p;
    if (cudasim_memory_before(p, &block) && a - block.hi < NEAR)
        cudasim_fault(pc, 0, "%zu bytes are %s %zu bytes behind a block of %zu", n, what, (size_t)(a - block.hi), (size_t)(block.hi - block.lo));
    else
        cudasim_fault(pc, 0, "%zu bytes are %s that are no memory of the device", n, what);
}

static void touch(const void *p, size_t n, bool reads, bool writes, bool atomic, bool aligned, const void *pc)
{
    const cudasim_launch *l = cudasim_now.launch;
    uintptr_t             a = (uintptr_t)p;
    Range                 block = { 0 };
    if (!cudasim_is_inside() || !cudasim_now.fiber || cudasim_fiber_has(cudasim_now.fiber, p) || a - (uintptr_t)l->args < l->args_bytes)
        return;
    if (a - (uintptr_t)&cudasim_thread < sizeof(uint3) || a - (uintptr_t)&cudasim_block < sizeof(uint3) || a - (uintptr_t)&cudasim_block_size < sizeof(uint3) ||
        a - (uintptr_t)&cudasim_grid_size < sizeof(uint3))
        return;
    const char *what = writes ? "written" : "read";
    bool        shared = in(&check.image.shared, a);
    if (in(&check.dynamic, a) || in(&check.unused, a))
        block = check.dynamic;
    else if (shared)
        block = check.image.shared;
    else if (!cudasim_memory_find(p, &block) && in(&check.image.memory, a))
        block = check.image.memory;
    if (block.hi == 0 && !shared)
        report_place(p, n, what, pc);
    if (a + n > block.hi)
        cudasim_fault(pc, 0, "%zu bytes are %s at byte %zu of %s of %zu", n, what, (size_t)(a - block.lo), shared ? "shared memory" : "a block",
                      (size_t)(block.hi - block.lo));
    if (aligned && (n & (n - 1)) == 0 && a % n != 0)
        cudasim_fault(pc, 0, "%zu bytes are %s at an address that is no multiple of %zu", n, what, n);
    if (!shared && !in(&check.dynamic, a))
        cudasim_log_access(p, n, writes, pc);
    for (size_t k = 0; k < n; k++)
        look_at(cell_of(a + k), reads, writes, atomic, shared, n, pc);
}

void cudasim_atomic(const void *p, size_t bytes, const void *caller)
{
    touch(p, bytes, false, true, true, true, caller);
}

void cudasim_aligned(uintptr_t p, size_t bytes)
{
    if (p % bytes != 0 && cudasim_is_inside() && cudasim_now.fiber)
        cudasim_fault(__builtin_return_address(0), 0, "%zu bytes are moved as one at an address that is no multiple of %zu", bytes, bytes);
}

/* ---- what compilers call ---- */

#define HOOKS(n)                                                                                                        \
    void __tsan_read##n(void *p);                                                                                       \
    void __tsan_write##n(void *p);                                                                                      \
    void __tsan_unaligned_read##n(void *p);                                                                             \
    void __tsan_unaligned_write##n(void *p);                                                                            \
    void __tsan_read##n(void *p) { touch(p, n, true, false, false, true, __builtin_return_address(0)); }                \
    void __tsan_write##n(void *p) { touch(p, n, false, true, false, true, __builtin_return_address(0)); }               \
    void __tsan_unaligned_read##n(void *p) { touch(p, n, true, false, false, false, __builtin_return_address(0)); }     \
    void __tsan_unaligned_write##n(void *p) { touch(p, n, false, true, false, false, __builtin_return_address(0)); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void *p, long n);
void __tsan_write_range(void *p, long n);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void *unused);
void __tsan_init(void);

void __tsan_read_range(void *p, long n)
{
    touch(p, (size_t)n, true, false, false, false, __builtin_return_address(0));
}

void __tsan_write_range(void *p, long n)
{
    touch(p, (size_t)n, false, true, false, false, __builtin_return_address(0));
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void *unused)
{
    (void)unused;
}

void __tsan_init(void)
{
}
