/* ceilings: what this machine can do now, as one JSON object: the limits that make bench puts beside times.
 *
 * usage: ceilings THREADS
 *
 *   f32, f64           10^9 operations a second of multiply-adds that wait for nothing, each counted as 2
 *   exp                10^9 exponentials of f32 a second, as a polynomial of degree 6 in vectors
 *   l2, l3             GB/s read, again and again, from 256 KiB and from 4 MiB of each thread
 *   read               GB/s read from memory
 *   copy, triad        GB/s read and written, b = a and a = b + k c; the better of plain and of non-temporal stores
 *
 * Rates are the best of several bursts of at least 20 ms, all threads at once, their work added. A machine that is shared has other ceilings
 * every minute: measure before and after what they are compared with, and keep the higher.
 *
 * Convention: a burst is a function that does its work once and returns how much that was; memory of a thread is touched by it first. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef float Floats __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));

enum { LANES = 8, ARRAY = 24 << 20 };       /* floats of each of a thread's three arrays: 96 MiB */

typedef struct {
    float *a, *b, *c;
    Floats sink;            /* sums end here, so that they are needed */
} Thread;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Loops over sums are written out, whatever the compiler was asked for, so that sums are registers. */
#ifdef __clang__
#define WRITTEN_OUT _Pragma("unroll")
#else
#define WRITTEN_OUT _Pragma("GCC unroll 12")
#endif

/* Twelve sums hide the latency of a multiply-add, 4 cycles at two of them a cycle, and stay in registers. */
#define MULTIPLY_ADDS(name, Vector, lanes)                                                              \
    static double name(Thread *t)                                                                       \
    {                                                                                                   \
        Vector sum[12], x = (Vector){0} + 0.999f, y = (Vector){0} + 0.001f;                             \
        for (int i = 0; i < 12; i++)                                                                    \
            sum[i] = (Vector){0} + (float)i;                                                            \
        __asm__ volatile("" : "+m"(x), "+m"(y));                                                        \
        for (int k = 0; k < 400000; k++) {                                                              \
            WRITTEN_OUT                                                                                 \
            for (int i = 0; i < 12; i++)                                                                \
                sum[i] = sum[i] * x + y;                                                                \
        }                                                                                               \
        for (int i = 0; i < 12; i++)                                                                    \
            t->sink[0] += (float)sum[i][0];                                                             \
        return 400000.0 * 12 * (lanes) * 2;                                                             \
    }
MULTIPLY_ADDS(f32, Floats, 8)
MULTIPLY_ADDS(f64, Doubles, 4)

/* exp(x) = 2^n exp(r), r = x - n log 2, |r| <= 0.35. */
static Floats exponential(Floats x)
{
    Floats rounder = (Floats){0} + 12582912.0f, n = (x * 1.44269504f + rounder) - rounder, r = x - n * 0.693147181f;
    Floats p = r * 0.00138888889f + 0.00833333333f;
    p = p * r + 0.0416666667f;
    p = p * r + 0.166666667f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
    return p * (Floats)power;
}

static double exponentials(Thread *t)
{
    for (int k = 0; k < 100; k++)
        for (int i = 0; i < 4096; i += LANES)
            *(Floats *)&t->b[i] = exponential(*(Floats *)&t->a[i]);
    return 100.0 * 4096;
}

/* Sums of N floats of A, TIMES times; bytes. */
static double sums(Thread *t, int64_t n, int times)
{
    Floats sum[8] = {{0}};
    for (int k = 0; k < times; k++) {
        for (int64_t i = 0; i < n; i += 8 * LANES) {
            WRITTEN_OUT
            for (int j = 0; j < 8; j++)
                sum[j] += *(Floats *)&t->a[i + j * LANES];
        }
        __asm__ volatile("" ::: "memory");
    }
    for (int j = 0; j < 8; j++)
        t->sink += sum[j];
    return 4.0 * (double)n * times;
}
static double l2(Thread *t) { return sums(t, 1 << 16, 2000); }
static double l3(Thread *t) { return sums(t, 1 << 20, 100); }
static double memory_read(Thread *t) { return sums(t, ARRAY, 1); }

static void store(float *to, Floats x, bool past_caches)
{
#ifdef __clang__
    if (past_caches) {
        __builtin_nontemporal_store(x, (Floats *)to);
        return;
    }
#elif defined(__AVX__)
    if (past_caches) {
        typedef float Eight __attribute__((vector_size(32)));
        __builtin_ia32_movntps256(to, (Eight)x);
        return;
    }
#endif
    (void)past_caches;
    *(Floats *)to = x;
}

static inline double copy(Thread *t, bool past_caches)
{
    for (int64_t i = 0; i < ARRAY; i += LANES)
        store(&t->b[i], *(Floats *)&t->a[i], past_caches);
    return 8.0 * ARRAY;
}
static inline double triad(Thread *t, bool past_caches)
{
    for (int64_t i = 0; i < ARRAY; i += LANES)
        store(&t->a[i], *(Floats *)&t->b[i] + 3.0f * *(Floats *)&t->c[i], past_caches);
    return 12.0 * ARRAY;
}
static double copy_plain(Thread *t) { return copy(t, false); }
static double copy_past(Thread *t) { return copy(t, true); }
static double triad_plain(Thread *t) { return triad(t, false); }
static double triad_past(Thread *t) { return triad(t, true); }

typedef double Burst(Thread *t);
static const struct {
    const char *name;
    Burst *burst, *other;       /* the better of both */
} RATES[] = {{"f32", f32, NULL}, {"f64", f64, NULL}, {"exp", exponentials, NULL}, {"l2", l2, NULL}, {"l3", l3, NULL}, {"read", memory_read, NULL},
             {"copy", copy_plain, copy_past}, {"triad", triad_plain, triad_past}};

typedef struct {
    Thread thread;
    Burst *burst;
    pthread_barrier_t *together;
    double rate;            /* the best, 10^9 a second */
} Worker;

static void *work(void *data)
{
    Worker *w = data;
    for (int round = 0; round < 8; round++) {
        double done = 0, spent = 0;
        pthread_barrier_wait(w->together);
        for (double start = seconds(); spent < 0.02; spent = seconds() - start)
            done += w->burst(&w->thread);
        if (done / spent * 1e-9 > w->rate)
            w->rate = done / spent * 1e-9;
    }
    return NULL;
}

static void *touch(void *data)
{
    Thread *t = data;
    for (int64_t i = 0; i < ARRAY; i++) {
        t->a[i] = (float)(i & 1023) * 0.001f;
        t->b[i] = t->c[i] = 1.0f;
    }
    return NULL;
}

/* Starts RUN for each worker on a thread of its own and waits; false where a thread cannot be made. */
static bool on_threads(void *(*run)(void *), Worker *workers, int n, pthread_t *threads)
{
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, run, &workers[i]) != 0)
            return false;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return true;
}

static double measure(Burst *burst, Worker *workers, int n, pthread_t *threads)
{
    double rate = 0;
    for (int i = 0; i < n; i++) {
        workers[i].burst = burst;
        workers[i].rate = 0;
    }
    if (!on_threads(work, workers, n, threads))
        exit(2);
    for (int i = 0; i < n; i++)
        rate += workers[i].rate;
    return rate;
}

int main(int argc, char **argv)
{
    int n = argc == 2 ? atoi(argv[1]) : 0;
    if (n < 1 || n > 256) {
        fprintf(stderr, "usage: ceilings THREADS\n");
        return 2;
    }
    Worker *workers = calloc((size_t)n, sizeof *workers);
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    pthread_barrier_t together;
    if (!workers || !threads || pthread_barrier_init(&together, NULL, (unsigned)n) != 0)
        return 2;
    for (int i = 0; i < n; i++) {
        float *memory = aligned_alloc(64, 3 * sizeof(float) * (size_t)ARRAY);
        if (!memory) {
            fprintf(stderr, "ceilings: out of memory\n");
            return 2;
        }
        workers[i] = (Worker){.thread = {.a = memory, .b = memory + ARRAY, .c = memory + 2 * ARRAY}, .together = &together};
    }
    if (!on_threads(touch, workers, n, threads))
        return 2;
    for (size_t k = 0; k < sizeof RATES / sizeof *RATES; k++) {
        double rate = measure(RATES[k].burst, workers, n, threads), other = RATES[k].other ? measure(RATES[k].other, workers, n, threads) : 0;
        printf("%s\"%s\": %.2f", k ? ", " : "{", RATES[k].name, rate > other ? rate : other);
    }
    printf("}\n");
    for (int i = 0; i < n; i++)
        free(workers[i].thread.a);
    free(workers);
    free(threads);
    return 0;
}
