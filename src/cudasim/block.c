/* One launch: blocks one after the other, the threads of each as fibers. A thread runs until it ends or has to wait; then another one is entered.
 *
 * What CUDA leaves undefined is a fault here: a barrier that not all threads reach, two barriers that meet, lanes of a warp that meet with different masks
 * or on different lines, a shuffle from a lane that takes no part. CUDASIM_ORDER=reverse, or a number, puts threads and blocks in another order. With CUDASIM_BLOCKS=N accesses are checked
 * of N blocks of each launch. */
#include "cudasim/sim.h"

#include <stdlib.h>
#include <string.h>

typedef enum State { FRESH, READY, AT_BARRIER, AT_WARP, ENDED } State;
typedef enum WarpCall { SHUFFLE, BALLOT, WARP_BARRIER } WarpCall;

typedef struct Thread {
    State    state;
    Fiber   *fiber;
    uint3    index;
    int      line;    /* where it waits */
    unsigned mask;    /* AT_WARP */
    WarpCall call;
    uint64_t value;   /* what it brings, then what it gets */
    unsigned from;    /* SHUFFLE */
} Thread;

typedef struct Block {
    unsigned n, ended, waiting; /* threads: all, over, at the barrier */
    unsigned waits;   /* the first that waits there */
    int      said[2];           /* how many said `is` at the barrier, by its number's last bit */
    unsigned barriers;
    unsigned queue[MOST_THREADS], head, queued; /* threads that are ready */
    Thread   threads[MOST_THREADS];
    unsigned order[MOST_THREADS];
    unsigned n_fibers, n_free;
    Fiber   *fibers[MOST_THREADS], *free[MOST_THREADS];
    uint64_t random, first, step; /* order_blocks */
    bool     checked;             /* accesses of this block are */
} Block;

uint3        cudasim_thread, cudasim_block, cudasim_block_size, cudasim_grid_size;
Now          cudasim_now;
static Block block;

/* ---- order ---- */

static uint64_t next_random(void)
{
    block.random = block.random * 6364136223846793005u + 1442695040888963407u;
    return block.random >> 33;
}

static const char *order_wanted(void)
{
    const char *s = getenv("CUDASIM_ORDER");
    return s ? s : "";
}

static void order_threads(const char *wanted)
{
    for (unsigned k = 0; k < block.n; k++)
        block.order[k] = strcmp(wanted, "reverse") == 0 ? block.n - 1 - k : k;
    for (unsigned k = block.n; *wanted >= '0' && *wanted <= '9' && k > 1; k--) {
        unsigned other = (unsigned)(next_random() % k), x = block.order[k - 1];
        block.order[k - 1] = block.order[other];
        block.order[other] = x;
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* The k-th block to run is k * step + first, modulo n. */
static void order_blocks(const char *wanted, uint64_t n)
{
    bool reverse = strcmp(wanted, "reverse") == 0, shuffled = *wanted >= '0' && *wanted <= '9';
    block.first = reverse ? n - 1 : 0;
    block.step = reverse ? n - 1 : shuffled ? next_random() % n : 1;
    while (common_divisor(block.step, n) != 1)
        block.step++;
}

static uint64_t block_in_order(uint64_t k, uint64_t n)
{
    return (uint64_t)(((__uint128_t)k * block.step + block.first) % n);
}

/* ---- threads ---- */

static void make_ready(unsigned t)
{
    block.threads[t].state = READY;
    block.queue[(block.head + block.queued++) % MOST_THREADS] = t;
}

static Thread *current(void)
{
    return &block.threads[cudasim_now.thread];
}

/* Lets others run; returns when this thread is ready again. Its state says what it waits for, or that it is ready by now. */
static void let_others_run(void)
{
    cudasim_fiber_leave(current()->fiber);
}

static void thread_body(void)
{
    Thread *t = current();
    cudasim_now.launch->run(cudasim_now.launch->args);
    t->state = ENDED;
    block.ended++;
    if (block.waiting > 0)
        cudasim_fault(NULL, block.threads[block.waits].line, "thread %u ended while others wait at this barrier", cudasim_now.thread);
}

static Fiber *take_fiber(void)
{
    if (block.n_free > 0)
        return block.free[--block.n_free];
    Fiber *f = cudasim_fiber_new(thread_body);
    if (f)
        block.fibers[block.n_fibers++] = f;
    return f;
}

static bool enter(unsigned k)
{
    Thread *t = &block.threads[k];
    if (t->state == FRESH) {
        t->fiber = take_fiber();
        t->state = READY;
    }
    if (!t->fiber) {
        cudasim_fault(NULL, 0, "no memory for the stack of a thread");
        return false;
    }
    cudasim_now.thread = k;
    cudasim_now.fiber = t->fiber;
    cudasim_now.stack = block.checked ? cudasim_fiber_stack(t->fiber) : 0;
    cudasim_thread = t->index;
    cudasim_fiber_enter(t->fiber);
    cudasim_now.fiber = NULL;
    cudasim_now.stack = 0;
    if (t->state == ENDED)
        block.free[block.n_free++] = t->fiber;
    return !cudasim_has_fault();
}

/* ---- barriers ---- */

static void barrier_done(void)
{
    block.barriers++;
    block.said[block.barriers & 1] = 0;
    block.waiting = 0;
    cudasim_now.time++;
    for (unsigned k = 0; k < block.n; k++)
        make_ready(block.order[k]);
}

int cudasim_barrier(int line, int is)
{
    Thread  *t = current();
    unsigned odd = block.barriers & 1;
    if (block.ended > 0)
        cudasim_fault(NULL, line, "a barrier that %u of %u threads have not reached before they ended", block.ended, block.n);
    if (block.waiting > 0 && block.threads[block.waits].line != line)
        cudasim_fault(NULL, line, "a barrier meets another one: thread %u waits at that of line %d", block.waits, block.threads[block.waits].line);
    if (block.waiting++ == 0)
        block.waits = cudasim_now.thread;
    block.said[odd] += is != 0;
    t->line = line;
    t->state = AT_BARRIER;
    if (block.waiting == block.n)
        barrier_done();
    let_others_run();
    return block.said[odd];
}

/* ---- warps ---- */

static unsigned lanes_of(unsigned warp, State s)
{
    unsigned lanes = 0;
    for (unsigned k = 0; k < WARP && warp * WARP + k < block.n; k++)
        lanes |= (unsigned)(block.threads[warp * WARP + k].state == s) << k;
    return lanes;
}

static unsigned existing_lanes(unsigned warp)
{
    unsigned n = block.n - warp * WARP;
    return n >= WARP ? ~0u : (1u << n) - 1;
}

/* All lanes of the mask are here: each gets its value. */
static void warp_done(Thread *first, unsigned mask, WarpCall call)
{
    uint64_t brought[WARP] = { 0 };
    unsigned ballot = 0;
    for (unsigned k = 0; k < WARP; k++)
        if (mask >> k & 1) {
            brought[k] = first[k].value;
            ballot |= (unsigned)(first[k].value != 0) << k;
        }
    for (unsigned k = 0; k < WARP; k++)
        if (mask >> k & 1) {
            first[k].value = call == SHUFFLE ? brought[first[k].from] : ballot;
            make_ready((unsigned)(first - block.threads) + k);
        }
}

static void check_warp_call(const Thread *first, WarpCall call, unsigned mask, unsigned exist, unsigned from, int line)
{
    unsigned lane = cudasim_now.thread % WARP;
    if (!(mask >> lane & 1))
        cudasim_fault(NULL, line, "lane %u is not in its own mask %08x", lane, mask);
    if (call == SHUFFLE && !((mask & exist) >> from & 1))
        cudasim_fault(NULL, line, "a shuffle from lane %u, which is not in the mask %08x", from, mask & exist);
    for (unsigned k = 0; k < WARP; k++) {
        if (!((mask & exist) >> k & 1))
            continue;
        if (first[k].state == ENDED)
            cudasim_fault(NULL, line, "lane %u is in the mask %08x but has ended", k, mask);
        if (first[k].state == AT_WARP && (first[k].line != line || first[k].mask != mask || first[k].call != call))
            cudasim_fault(NULL, line, "lanes of a warp meet on different lines or with different masks: lane %u on line %d with %08x, lane %u with %08x", k,
                          first[k].line, first[k].mask, lane, mask);
    }
}

static uint64_t warp_call(WarpCall call, unsigned mask, uint64_t value, unsigned from, int line)
{
    Thread  *t = current();
    unsigned warp = cudasim_now.thread / WARP, exist = existing_lanes(warp);
    Thread  *first = &block.threads[warp * WARP];
    check_warp_call(first, call, mask, exist, from, line);
    t->value = value;
    t->from = from;
    t->mask = mask;
    t->call = call;
    t->line = line;
    t->state = AT_WARP;
    if ((lanes_of(warp, AT_WARP) & mask) == (mask & exist)) {
        cudasim_now.warp_times[warp] += call == WARP_BARRIER;
        warp_done(first, mask & exist, call);
    }
    let_others_run();
    return t->value;
}

uint64_t cudasim_shuffle(unsigned mask, uint64_t value, unsigned from, int line)
{
    return warp_call(SHUFFLE, mask, value, from, line);
}

unsigned cudasim_ballot(unsigned mask, int is, int line)
{
    return (unsigned)warp_call(BALLOT, mask, is != 0, 0, line);
}

unsigned cudasim_active(void)
{
    unsigned warp = cudasim_now.thread / WARP;
    return existing_lanes(warp) & ~lanes_of(warp, ENDED);
}

void cudasim_warp_barrier(unsigned mask, int line)
{
    warp_call(WARP_BARRIER, mask, 0, 0, line);
}

/* ---- blocks ---- */

/* Nobody is ready, but not all have ended: each waits for another one. A warp's lanes are the better explanation. */
static void report_stuck(void)
{
    unsigned found = block.n;
    for (unsigned k = 0; k < block.n; k++)
        if (block.threads[k].state == AT_WARP || (found == block.n && block.threads[k].state == AT_BARRIER))
            found = k;
    const Thread *t = &block.threads[found];
    cudasim_now.thread = found;
    if (t->state == AT_WARP)
        cudasim_fault(NULL, t->line, "the lanes of mask %08x never meet: lane %u waits for the others", t->mask, found % WARP);
    else
        cudasim_fault(NULL, t->line, "a barrier that not all threads reach: %u of %u wait here", block.waiting, block.n);
}

/* With NaNs, but for what of dynamic memory the launch did not ask for. */
static void fill_shared(const Image *image)
{
    const cudasim_launch *l = cudasim_now.launch;
    char *dynamic = l->shared(), *lo = (char *)image->shared.lo, *hi = (char *)image->shared.hi;
    if (lo == hi)
        return;
    memset(lo, 0xff, (size_t)(dynamic - lo) + l->shared_bytes);
    memset(dynamic + CUDASIM_MOST_SHARED, 0xff, (size_t)(hi - dynamic) - CUDASIM_MOST_SHARED);
}

static void begin_block(const Image *image)
{
    block.ended = block.waiting = block.head = block.queued = block.barriers = 0;
    block.said[0] = block.said[1] = 0;
    for (unsigned k = 0; k < block.n; k++) {
        block.threads[k].state = FRESH;
        block.threads[k].fiber = NULL;
    }
    memset(cudasim_now.warp_times, 0, sizeof cudasim_now.warp_times);
    fill_shared(image);
    cudasim_now.block_time = ++cudasim_now.time;
}

static bool run_block(const Image *image)
{
    bool ok = true;
    begin_block(image);
    for (unsigned k = 0; ok && k < block.n; k++) {
        ok = enter(block.order[k]);
        while (ok && block.queued > 0) {
            unsigned t = block.queue[block.head];
            block.head = (block.head + 1) % MOST_THREADS;
            block.queued--;
            ok = enter(t);
        }
    }
    if (ok && block.ended < block.n) {
        report_stuck();
        ok = false;
    }
    return ok;
}

static void begin_launch(const cudasim_launch *l)
{
    unsigned t = 0;
    block.n = l->block.x * l->block.y * l->block.z;
    block.random = (uint64_t)atoll(order_wanted());
    for (unsigned z = 0; z < l->block.z; z++)
        for (unsigned y = 0; y < l->block.y; y++)
            for (unsigned x = 0; x < l->block.x; x++)
                block.threads[t++].index = (uint3){ x, y, z };
    order_threads(order_wanted());
    order_blocks(order_wanted(), (uint64_t)l->grid.x * l->grid.y * l->grid.z);
    cudasim_block_size = l->block;
    cudasim_grid_size = l->grid;
    cudasim_now.launch = l;
    cudasim_now.launch_time = ++cudasim_now.time;
}

/* After a fault fibers are left in the middle of something. */
static void restart_fibers(void)
{
    for (unsigned k = 0; k < block.n_fibers; k++) {
        cudasim_fiber_restart(block.fibers[k]);
        block.free[k] = block.fibers[k];
    }
    block.n_free = block.n_fibers;
}

/* How many of a launch have their accesses checked. */
static uint64_t checked_blocks(void)
{
    const char *s = getenv("CUDASIM_BLOCKS");
    return s ? strtoull(s, NULL, 10) : UINT64_MAX;
}

/* The first, the last, and others at even distances. */
static bool is_checked(uint64_t k, uint64_t n, uint64_t checked)
{
    if (checked >= n || k == 0)
        return checked > 0;
    const __uint128_t gaps = checked ? checked - 1 : 0;
    return k * gaps / (n - 1) != (k - 1) * gaps / (n - 1);
}

bool cudasim_run(const cudasim_launch *l)
{
    Image    image = { 0 };
    uint64_t blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z, checked = checked_blocks();
    bool     ok = l->shared() && cudasim_image_of(l->kernel, &image); /* shared memory is there once it has been asked for */
    begin_launch(l);
    if (!ok)
        cudasim_fault(NULL, 0, "a launch of what is no kernel");
    cudasim_log_begin(checked >= blocks);
    cudasim_check_launch(l, &image);
    for (uint64_t k = 0; ok && k < blocks; k++) {
        uint64_t at = block_in_order(k, blocks);
        cudasim_block = (uint3){ (unsigned)(at % l->grid.x), (unsigned)(at / l->grid.x % l->grid.y), (unsigned)(at / l->grid.x / l->grid.y) };
        block.checked = is_checked(at, blocks, checked);
        ok = run_block(&image);
    }
    if (!ok) {
        cudasim_fault_locate();
        restart_fibers();
    }
    cudasim_log_end();
    cudasim_now.launch = NULL;
    return ok;
}
