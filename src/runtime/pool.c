/* pool.c - see pool.h.
 *
 * The parts of a job are cut into shares, neighbours to one share, and each thread begins with the same share every time: what a thread wrote for one job lies in its
 * cache for the next. Who has done its own takes parts from the ends of others'. A share is one word, {generation, end, next}: whoever advances next, or takes one from
 * the end, has that part, and job and function are those of its generation, since the caller cannot leave before the part is done. Workers look for a new generation
 * for about half a millisecond after their last part, then they sleep. */
#include "runtime/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST_THREADS = 1024, MOST_SHARES = 16, SPINS = 20000 };

typedef struct Worker {
    hlort_pool *pool;
    pthread_t   thread;
    int         share; /* begins with this one */
    void       *memory;
} Worker;

typedef struct Share {
    _Atomic uint64_t left __attribute__((aligned(64)));
} Share;

struct hlort_pool {
    Share            share[MOST_SHARES];
    _Atomic uint32_t generation __attribute__((aligned(64)));
    _Atomic int64_t  done __attribute__((aligned(64)));
    _Atomic int      asleep, stop, busy;
    void (*work)(void *job, int64_t part, void *memory);
    void            *job;
    pthread_mutex_t  lock; /* of falling asleep */
    pthread_cond_t   wake;
    int              n;      /* workers that were started */
    int              shares; /* of a job: one a thread, at most MOST_SHARES */
    char            *memory;
    Worker          *workers;
};

static void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A part of share s, or -1: the next one for whom it belongs to, the last one for others. */
static int64_t claim(Share *s, int is_own)
{
    uint64_t t = atomic_load(&s->left);
    for (;;) {
        const uint64_t next = t & 0xffff, end = t >> 16 & 0xffff;
        if (next >= end)
            return -1;
        if (atomic_compare_exchange_weak(&s->left, &t, is_own ? t + 1 : t - 0x10000))
            return (int64_t)(is_own ? next : end - 1);
    }
}

static void run_parts(hlort_pool *p, int own, void *memory)
{
    for (int k = 0; k < p->shares; k++) {
        Share *s = &p->share[(own + k) % p->shares];
        for (int64_t part; (part = claim(s, k == 0)) >= 0;) {
            p->work(p->job, part, memory);
            atomic_fetch_add(&p->done, 1);
        }
    }
}

static int is_new(hlort_pool *p, uint32_t seen)
{
    return atomic_load(&p->generation) != seen || atomic_load(&p->stop);
}

static void await(hlort_pool *p, uint32_t seen)
{
    for (int spins = 0; spins < SPINS; spins++) {
        if (is_new(p, seen))
            return;
        pause_a_little();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while (!is_new(p, seen))
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
}

static void wake_all(hlort_pool *p)
{
    if (!atomic_load(&p->asleep))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void *worker(void *arg)
{
    Worker     *w = arg;
    hlort_pool *p = w->pool;
    uint32_t    seen = 0;
    while (!atomic_load(&p->stop)) {
        await(p, seen);
        seen = atomic_load(&p->generation);
        run_parts(p, w->share, w->memory);
    }
    return NULL;
}

hlort_pool *hlort_pool_new(int threads)
{
    int         others = threads < 1 ? 0 : threads > MOST_THREADS ? MOST_THREADS - 1 : threads - 1;
    hlort_pool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (!p)
        return NULL;
    *p = (hlort_pool){ .workers = malloc((size_t)(others + 1) * sizeof(Worker)),
                       .memory = aligned_alloc(64, (size_t)(others + 1) * HLORT_WORK_BYTES) };
    p->shares = others + 1 < MOST_SHARES ? others + 1 : MOST_SHARES;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int k = 0; k < others && p->workers && p->memory; k++) {
        p->workers[k] = (Worker){ .pool = p, .share = (k + 1) % p->shares, .memory = p->memory + (size_t)k * HLORT_WORK_BYTES };
        if (pthread_create(&p->workers[k].thread, NULL, worker, &p->workers[k]))
            break; /* fewer help */
        p->n++;
    }
    return p;
}

void hlort_pool_free(hlort_pool *p)
{
    if (!p)
        return;
    atomic_store(&p->stop, 1);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int k = 0; k < p->n; k++)
        pthread_join(p->workers[k].thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p->memory);
    free(p);
}

int pool_threads(const hlort_pool *p)
{
    return p ? p->n + 1 : 1;
}

void pool_run(hlort_pool *p, void (*work)(void *job, int64_t part, void *memory), void *job, int64_t parts, void *mine)
{
    if (!p || p->n == 0 || parts < 2 || atomic_exchange(&p->busy, 1)) {
        for (int64_t k = 0; k < parts; k++)
            work(job, k, mine);
        return;
    }
    const uint32_t generation = atomic_load(&p->generation) + 1;
    p->work = work;
    p->job = job;
    atomic_store(&p->done, 0);
    for (int k = 0; k < p->shares; k++)
        atomic_store(&p->share[k].left,
                     (uint64_t)generation << 32 | (uint64_t)(parts * (k + 1) / p->shares) << 16 | (uint64_t)(parts * k / p->shares));
    atomic_store(&p->generation, generation);
    wake_all(p);
    run_parts(p, 0, mine);
    for (int spins = 0; atomic_load(&p->done) < parts; spins++)
        if (spins < SPINS)
            pause_a_little();
        else
            sched_yield();
    atomic_store(&p->busy, 0);
}

void hlort_run(hlort_pool *pool, void (*work)(void *job, int64_t part, void *memory), void *job, int64_t parts)
{
    pool_run(pool, work, job, parts, NULL);
}
