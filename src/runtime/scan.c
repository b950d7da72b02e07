/* scan.c - running sums, products and extremes along lines of neighbours.
 *
 * A line that is longer than a chunk is cut: what all elements of a chunk are together is carried from chunk to chunk, and each chunk begins with what is carried to it. So
 * threads share a line, and the result has the same bits for any number of them. One thread alone takes both steps of a chunk while that lies in its second cache.
 * Lines of f16 and bf16 are whole, a vector of lines goes along them. */
#include "runtime/gemm.h"
#include "runtime/pool.h"
#include "runtime/scan.h"
#include "runtime/vec.h"

#include <stddef.h>

enum { CHUNK = HLORT_SCAN_CHUNK, PART = 64 * 1024 /* elements that a part of the work should at least have */, GROUP = 16 /* lines of a vector */ };

typedef struct Scan {
    const hlort_scan  *d;
    const ScanKernels *kernels;
    ScanLinesFunction *narrow;
    const char        *x;
    char              *y;
    const void        *start;
    int64_t            bytes;  /* of an element */
    int64_t            chunks; /* of a line */
    char              *carry;  /* one for each chunk: what it is together, then what comes before it */
    int64_t            parts;
} Scan;

/* Elements of a chunk of a line, and the first of them in memory. */
static int64_t chunk_of(const Scan *s, int64_t number, int64_t *count)
{
    const int64_t line = number / s->chunks, from = number % s->chunks * CHUNK;
    *count = hlort_min(CHUNK, s->d->count - from);
    return line * s->d->count + (s->d->backward ? s->d->count - from - *count : from);
}

static void fold_chunk(const Scan *s, int64_t number, void *all)
{
    int64_t       count;
    const int64_t at = chunk_of(s, number, &count);
    s->kernels->fold[s->d->kind](s->x + at * s->bytes, count, all, s->d->backward);
}

static void scan_chunk(const Scan *s, int64_t number, void *carry)
{
    int64_t       count;
    const int64_t at = chunk_of(s, number, &count);
    s->kernels->scan[s->d->kind](s->x + at * s->bytes, s->y + at * s->bytes, count, carry, s->d->backward);
}

/* carry op all: a line of one element. */
static void carry_on(const Scan *s, void *carry, const void *all)
{
    char result[8];
    s->kernels->scan[s->d->kind](all, result, 1, carry, 0);
}

/* One thread: chunk by chunk. */
static void scan_line(const Scan *s, int64_t line)
{
    char carry[8], here[8], all[8];
    __builtin_memcpy(carry, s->start, (uint64_t)s->bytes);
    for (int64_t k = 0; k < s->chunks; k++) {
        __builtin_memcpy(here, carry, sizeof here);
        if (k + 1 < s->chunks) {
            fold_chunk(s, line * s->chunks + k, all);
            carry_on(s, carry, all);
        }
        scan_chunk(s, line * s->chunks + k, here);
    }
}

static void lines_part(void *job, int64_t part, void *memory)
{
    const Scan *s = job;
    (void)memory;
    for (int64_t k = s->d->lines * part / s->parts; k < s->d->lines * (part + 1) / s->parts; k++)
        scan_line(s, k);
}

static void fold_part(void *job, int64_t part, void *memory)
{
    const Scan   *s = job;
    const int64_t all = s->d->lines * s->chunks;
    (void)memory;
    for (int64_t k = all * part / s->parts; k < all * (part + 1) / s->parts; k++)
        fold_chunk(s, k, s->carry + k * s->bytes);
}

static void scan_part(void *job, int64_t part, void *memory)
{
    const Scan   *s = job;
    const int64_t all = s->d->lines * s->chunks;
    (void)memory;
    for (int64_t k = all * part / s->parts; k < all * (part + 1) / s->parts; k++)
        scan_chunk(s, k, s->carry + k * s->bytes);
}

/* What comes before each chunk of a line. */
static void carry_along(const Scan *s, char *line)
{
    char carry[8], here[8];
    __builtin_memcpy(carry, s->start, (uint64_t)s->bytes);
    for (int64_t k = 0; k < s->chunks; k++) {
        __builtin_memcpy(here, carry, sizeof here);
        carry_on(s, carry, line + k * s->bytes);
        __builtin_memcpy(line + k * s->bytes, here, (uint64_t)s->bytes);
    }
}

static void narrow_part(void *job, int64_t part, void *memory)
{
    const Scan   *s = job;
    const int64_t groups = hlort_ceildiv(s->d->lines, GROUP), from = groups * part / s->parts * GROUP;
    const int64_t end = hlort_min(groups * (part + 1) / s->parts * GROUP, s->d->lines), at = from * s->d->count;
    (void)memory;
    s->narrow((const uint16_t *)(const void *)s->x + at, (uint16_t *)(void *)s->y + at, s->d->count, end - from, s->start, s->d->backward);
}

void hlort_scan_by(const KernelSet *v, const hlort_scan *d, const hlort_how *how, const void *x, const void *start, void *y)
{
    const KernelSet *set = v->scan[0] ? v : v->rest;
    const int        is_narrow = d->type >= HLORT_SCAN_F16;
    Scan             s = { .d = d, .x = x, .y = y, .start = start, .carry = how->work };
    if (is_narrow)
        s.narrow = set->scan_narrow[d->type - HLORT_SCAN_F16][d->kind];
    else
        s.kernels = set->scan[d->type];
    s.bytes = d->type == HLORT_SCAN_F32 || d->type == HLORT_SCAN_S32 ? 4 : 8;
    s.chunks = hlort_ceildiv(d->count, CHUNK);
    const int64_t threads = pool_threads(how->pool), most = hlort_max(1, hlort_min(hlort_ceildiv(d->lines * d->count, PART), 8 * threads));
    if (d->lines == 0 || d->count == 0)
        return;
    if (is_narrow) {
        s.parts = hlort_min(most, hlort_ceildiv(d->lines, GROUP));
        pool_run(how->pool, narrow_part, &s, s.parts, NULL);
        return;
    }
    if (threads == 1 || s.chunks == 1 || d->lines >= 4 * threads) {
        s.parts = hlort_min(most, d->lines);
        pool_run(how->pool, lines_part, &s, s.parts, NULL);
        return;
    }
    s.parts = hlort_min(most, d->lines * s.chunks);
    pool_run(how->pool, fold_part, &s, s.parts, NULL);
    for (int64_t k = 0; k < d->lines; k++)
        carry_along(&s, s.carry + k * s.chunks * s.bytes);
    pool_run(how->pool, scan_part, &s, s.parts, NULL);
}

void hlort_scan_lines(const hlort_scan *d, const hlort_how *how, const void *x, const void *start, void *y)
{
    hlort_scan_by(hlort_kernels(), d, how, x, start, y);
}
