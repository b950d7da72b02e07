/* What kernels read and write, byte by byte. The compiler calls the functions at the end before every access of code that it was told to watch for races
 * (-fsanitize=thread); here CUDA's rules are applied instead of those of C++:
 *
 *   - a kernel touches device memory, its block's shared memory, variables of its file and its own stack, each access aligned to its size;
 *   - of two threads of a block that touch a byte, one of them writing, there is a barrier in between (of the warp, if both are of one warp);
 *   - threads of different blocks of a launch do so only if both are atomic.
 *
 * A place remembers who wrote and who read it last in this launch. `when` tells the block and the barrier, since time (Now.time) only goes forward. A place has as many bytes as
 * the narrowest access to its page so far, so that an array of floats is looked at float by float. */
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

/* Of memory that this launch has touched. */
enum { PAGE = 4096, TABLE = 1 << 16, LAST = 256, MOST_SHIFT = 4 };
typedef struct Page {
    uintptr_t    number;
    struct Page *next, *used; /* of the same place in the table; that was made before */
    Range        block;       /* what of this page accesses may touch, as far as it is known: not all where several blocks are in it */
    bool         shared;
    unsigned     shift;       /* a cell is of 2^shift bytes */
    Cell         cells[];
} Page;

typedef struct Check {
    Page *table[TABLE], *last[LAST] /* by number: the last ones */, *used, *unused[MOST_SHIFT + 1];
    Image image; /* of the kernel */
    Range dynamic, rest; /* shared memory that the launch asked for, and what is left of it */
    bool  logs;
} Check;

static Check check;

static Page **table_of(uintptr_t number)
{
    return &check.table[(number * 0x9E3779B97F4A7C15u >> 48) % TABLE];
}

static Page *new_page(uintptr_t number, unsigned shift)
{
    const size_t bytes = sizeof(Page) + (PAGE >> shift) * sizeof(Cell);
    Page        *p = check.unused[shift];
    if (p)
        check.unused[shift] = p->next;
    else
        p = malloc(bytes);
    if (!p)
        cudasim_fault(NULL, 0, "no memory to check accesses");
    memset(p, 0, bytes);
    p->number = number;
    p->shift = shift;
    return p;
}

static void put_in_table(Page *p)
{
    Page **at = table_of(p->number);
    p->next = *at;
    *at = check.last[p->number % LAST] = p;
    p->used = check.used;
    check.used = p;
}

/* The page with cells of 2^shift bytes in the place of wider ones. */
static Page *split(Page *old, unsigned shift)
{
    Page  *p = new_page(old->number, shift), **at = table_of(old->number), **used = &check.used;
    size_t by = old->shift - shift;
    p->block = old->block;
    p->shared = old->shared;
    for (size_t k = 0; k < (size_t)PAGE >> shift; k++)
        p->cells[k] = old->cells[k >> by];
    while (*at != old)
        at = &(*at)->next;
    *at = old->next;
    while (*used != old)
        used = &(*used)->used;
    *used = old->used;
    old->next = check.unused[old->shift];
    check.unused[old->shift] = old;
    put_in_table(p);
    return p;
}

/* The page of [a, a + n), or of where that begins, with cells that n bytes there are some of. */
static Page *page_of(uintptr_t a, size_t n)
{
    const unsigned shift = (unsigned)__builtin_ctzll(a | n | 1 << MOST_SHIFT);
    Page          *p = *table_of(a / PAGE);
    while (p && p->number != a / PAGE)
        p = p->next;
    if (!p) {
        p = new_page(a / PAGE, shift);
        put_in_table(p);
    }
    check.last[a / PAGE % LAST] = p;
    return p->shift > shift ? split(p, shift) : p;
}

/* What was touched so far, was before all that comes. */
static void forget(void)
{
    for (Page *p = check.used, *next; p; p = next) {
        next = p->used;
        *table_of(p->number) = check.last[p->number % LAST] = NULL;
        p->next = check.unused[p->shift];
        check.unused[p->shift] = p;
    }
    check.used = NULL;
}

void cudasim_check_reset(void)
{
    forget();
    for (unsigned k = 0; k <= MOST_SHIFT; k++)
        for (Page *p = check.unused[k], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    memset(check.unused, 0, sizeof check.unused);
}

void cudasim_check_launch(const cudasim_launch *l, const Image *image)
{
    enum { LATE = 1u << 31 };
    uintptr_t dynamic = (uintptr_t)l->shared();
    forget();
    check.image = *image;
    check.dynamic = (Range){ dynamic, dynamic + l->shared_bytes };
    check.rest = (Range){ dynamic + l->shared_bytes, dynamic + CUDASIM_MOST_SHARED };
    check.logs = cudasim_log_is_on();
    if (cudasim_now.time > LATE)
        cudasim_now.time = cudasim_now.launch_time = 1;
}

/* ---- races ---- */

static bool is_of_warp(const Stamp *s, unsigned warp)
{
    return s->who == MANY_OF_WARP + warp || (s->who < MOST_THREADS && s->who / WARP == warp);
}

/* What s tells of was before what this thread does now. */
static inline bool is_before(const Stamp *s, bool shared)
{
    const Now *now = &cudasim_now;
    if (s->when < now->block_time)
        return shared || s->when == 0;
    if (s->when != now->time || s->who == now->thread)
        return true;
    const unsigned warp = now->thread / WARP;
    return is_of_warp(s, warp) && s->warp_time != (uint16_t)now->warp_times[warp];
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
static inline void note_read(Stamp *r, Stamp now)
{
    now.others = r->others || (r->when != 0 && r->when < cudasim_now.block_time);
    if (r->when == now.when && r->who != now.who && !is_before(r, false))
        now.who = (uint16_t)(is_of_warp(r, cudasim_now.thread / WARP) ? MANY_OF_WARP + cudasim_now.thread / WARP : MANY);
    *r = now;
}

static inline __attribute__((always_inline)) void look_at(Cell *c, bool reads, bool writes, bool atomic, bool shared, size_t n, const void *pc)
{
    const Now *now = &cudasim_now;
    Stamp      s = { now->time, (uint16_t)now->thread, (uint16_t)now->warp_times[now->thread / WARP], (uint32_t)((uintptr_t)pc - check.image.base), atomic, false };
    if (!(atomic && c->write.atomic) && !is_before(&c->write, shared))
        report_race(&c->write, writes, true, n, pc);
    if (writes && (!is_before(&c->read, shared) || (!shared && c->read.others)))
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

/* A kernel's arguments and its thread's numbers need no look. */
static inline bool is_its_own(uintptr_t a)
{
    const cudasim_launch *l = cudasim_now.launch;
    const uint3          *const numbers[] = { &cudasim_thread, &cudasim_block, &cudasim_block_size, &cudasim_grid_size };
    bool                  is = a - (uintptr_t)l->args < l->args_bytes;
    for (int k = 0; k < 4; k++)
        is |= a - (uintptr_t)numbers[k] < sizeof(uint3);
    return is;
}

/* The block of memory around a, as far as it may be touched; hi is 0: none. */
static Range block_of(uintptr_t a, bool shared)
{
    Range block = { 0 }, all = check.image.shared;
    if (in(&check.dynamic, a) || in(&check.rest, a))
        return check.dynamic;
    if (shared) /* but for the dynamic one, which is in the midst of it */
        return a < check.dynamic.lo ? (Range){ all.lo, check.dynamic.lo < all.hi ? check.dynamic.lo : all.hi } : (Range){ check.rest.hi > all.lo ? check.rest.hi : all.lo, all.hi };
    if (!cudasim_memory_find((const void *)a, &block) && in(&check.image.memory, a))
        return check.image.memory;
    return block;
}

/* The first access to a page, one over its end, one that is wrong. */
static __attribute__((noinline)) void touch_slowly(uintptr_t a, size_t n, bool reads, bool writes, bool atomic, bool aligned, const void *pc)
{
    const char *what = writes ? "written" : "read";
    const bool  shared = in(&check.image.shared, a) || in(&check.dynamic, a) || in(&check.rest, a);
    const Range block = block_of(a, shared);
    if (block.hi == 0)
        report_place((const void *)a, n, what, pc);
    if (a + n > block.hi)
        cudasim_fault(pc, 0, "%zu bytes are %s at byte %zu of %s of %zu", n, what, (size_t)(a - block.lo), shared ? "shared memory" : "a block",
                      (size_t)(block.hi - block.lo));
    if (aligned && (n & (n - 1)) == 0 && a % n != 0)
        cudasim_fault(pc, 0, "%zu bytes are %s at an address that is no multiple of %zu", n, what, n);
    if (check.logs && !shared)
        cudasim_log_access((const void *)a, n, writes, pc);
    for (uintptr_t at = a, end = a + n; at < end;) {
        const uintptr_t page_end = (at / PAGE + 1) * PAGE, to = end < page_end ? end : page_end;
        Page           *p = page_of(at, to - at);
        p->block = block;
        p->shared = shared;
        for (; at < to; at += (uintptr_t)1 << p->shift)
            look_at(&p->cells[at % PAGE >> p->shift], reads, writes, atomic, shared, n, pc);
    }
}

/* Kernels run on stacks of their own: whoever is on another one is the host. So is a block's thread that is not looked at, whose stack is not told. */
static inline __attribute__((always_inline)) void touch(const void *p, size_t n, bool reads, bool writes, bool atomic, bool aligned, const void *pc)
{
    const uintptr_t a = (uintptr_t)p, stack = cudasim_now.stack;
    if ((uintptr_t)__builtin_frame_address(0) - stack >= FIBER_BYTES || a - stack < FIBER_BYTES)
        return;
    Page *page = check.last[a / PAGE % LAST];
    if (page && page->number == a / PAGE && (size_t)1 << page->shift == n && a % n == 0 && a >= page->block.lo && a + n <= page->block.hi && !check.logs)
        look_at(&page->cells[a % PAGE / n], reads, writes, atomic, page->shared, n, pc);
    else if (!is_its_own(a))
        touch_slowly(a, n, reads, writes, atomic, aligned, pc);
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
