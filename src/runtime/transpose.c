/* transpose.c - arrays with their dimensions in another order.
 *
 * Where neighbours stay neighbours, runs are copied. Else one dimension's neighbours lie together in the result (`down`: rows of the source) and another's in the
 * source (`across`), and blocks of 64 bytes both ways are turned: whole cache lines are read, turned in registers four rows of vectors at a time, and whole lines are
 * written. A tile of L x L elements, L of them in a vector, takes log2(L) rounds in which each pair of vectors (i, i + L/2) is interleaved:
 *
 *     a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0
 *     b0 b1 b2 b3   =>   a2 c2 a3 c3   =>   a1 b1 c1 d1
 *     c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2
 *     d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3
 *
 * Vectors of 128 bits do: what is large waits for memory. Results that are larger than caches are written past them. */
#include "runtime/pool.h"
#include "runtime/vec.h"

#include <string.h>

enum {
    LINE = 64,
    CHUNK = 4,              /* lines of a source row that are turned before the next rows */
    STREAM = 4 << 20,       /* bytes of a result from which it is written past the caches */
    THIN = 4,               /* a dimension of up to so many is not worth tiles */
    PART_BYTES = 128 * 1024 /* what one part of the work should at least be */
};

typedef struct Turn {
    const hlort_axes *d;
    const char       *from;
    char             *to;
    hlort_axis        down, across; /* in bytes; `down` of a copy of runs: what is looped over inside of a unit */
    int64_t           run;          /* of a copy: bytes; 0: blocks are turned */
    int64_t           n_outer, members;
    hlort_axis        outer[HLORT_MOST_AXES];
    int64_t           pieces, piece; /* of `across`, or of `down` for runs, per unit */
    int64_t           parts;
    int               stream;        /* lines are written past the caches */
    int               staged;        /* the lines of a block of the result would meet in few places of the first cache */
} Turn;

/* ---- a block ---- */

typedef uint8_t  v1 __attribute__((vector_size(16)));
typedef uint16_t v2 __attribute__((vector_size(16)));
typedef uint32_t v4 __attribute__((vector_size(16)));
typedef uint64_t v8 __attribute__((vector_size(16)));

#define LOW_1  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_2  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_2 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_4  0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8  0, 2
#define HIGH_8 1, 3

/* to[c][r] = from[r][c] for LINE / BYTES rows and columns, which are so many bytes apart. */
#define BLOCK(BYTES)                                                                               \
    APART void block_##BYTES(const char *from, int64_t row, char *to, int64_t to_row)              \
    {                                                                                              \
        enum { LANES = 16 / BYTES };                                                               \
        ROLLED                                                                                     \
        for (int g = 0; g < 4; g++)                                                                \
            for (int t = 0; t < 4; t++) {                                                          \
                v##BYTES r[LANES], s[LANES];                                                       \
                UNROLL                                                                             \
                for (int i = 0; i < LANES; i++)                                                    \
                    memcpy(&r[i], from + (g * LANES + i) * row + t * 16, 16);                      \
                UNROLL                                                                             \
                for (int round = 1; round < LANES; round *= 2) {                                   \
                    UNROLL                                                                         \
                    for (int i = 0; i < LANES / 2; i++) {                                          \
                        s[2 * i] = __builtin_shufflevector(r[i], r[i + LANES / 2], LOW_##BYTES);   \
                        s[2 * i + 1] = __builtin_shufflevector(r[i], r[i + LANES / 2], HIGH_##BYTES); \
                    }                                                                              \
                    UNROLL                                                                         \
                    for (int i = 0; i < LANES; i++)                                                \
                        r[i] = s[i];                                                               \
                }                                                                                  \
                UNROLL                                                                             \
                for (int i = 0; i < LANES; i++)                                                    \
                    memcpy(to + (t * LANES + i) * to_row + g * 16, &r[i], 16);                     \
            }                                                                                      \
    }
BLOCK(1)
BLOCK(2)
BLOCK(4)
BLOCK(8)
#undef BLOCK

static void block_16(const char *from, int64_t row, char *to, int64_t to_row)
{
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            memcpy(to + c * to_row + r * 16, from + r * row + c * 16, 16);
}

static void turn_block(int64_t bytes, const char *from, int64_t row, char *to, int64_t to_row)
{
    switch (bytes) {
    case 1: block_1(from, row, to, to_row); break;
    case 2: block_2(from, row, to, to_row); break;
    case 4: block_4(from, row, to, to_row); break;
    case 8: block_8(from, row, to, to_row); break;
    default: block_16(from, row, to, to_row); break;
    }
}

static void write_line(char *to, const char *from, int stream)
{
#if defined(__x86_64__)
    typedef long long pair __attribute__((vector_size(16)));
    if (stream) {
        for (int k = 0; k < LINE; k += 16) {
            pair x;
            memcpy(&x, from + k, 16);
#ifdef __clang__
            __builtin_nontemporal_store(x, (pair *)(void *)(to + k));
#else
            __builtin_ia32_movntdq((pair *)(void *)(to + k), x);
#endif
        }
        return;
    }
#else
    (void)stream;
#endif
    memcpy(to, from, LINE);
}

/* One block of rows x columns elements, up to LINE bytes of each. */
static void turn_one(const Turn *x, const char *from, char *to, int64_t rows, int64_t columns)
{
    char          out[LINE * LINE] __attribute__((aligned(64))), in[LINE * LINE] __attribute__((aligned(64)));
    const int64_t bytes = x->d->bytes, edge = LINE / bytes;
    int64_t       row = x->down.from;
    if (rows == edge && columns == edge && !x->stream && !x->staged) {
        turn_block(bytes, from, row, to, x->across.to);
        return;
    }
    if (rows < edge || columns < edge) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(in + r * LINE, from + r * row, (size_t)(columns * bytes));
        for (int64_t r = rows; r < edge; r++)
            memset(in + r * LINE, 0, LINE);
        from = in;
        row = LINE;
    }
    turn_block(bytes, from, row, out, LINE);
    for (int64_t c = 0; c < columns; c++)
        if (rows == edge)
            write_line(to + c * x->across.to, out + c * LINE, x->stream);
        else
            memcpy(to + c * x->across.to, out + c * LINE, (size_t)(rows * bytes));
}

/* ---- a unit of work: columns [first, end) of one member ---- */

static void turn_columns(const Turn *x, const char *from, char *to, int64_t first, int64_t end)
{
    const int64_t edge = LINE / x->d->bytes, width = CHUNK * edge;
    for (int64_t c0 = first; c0 < end; c0 += width)
        for (int64_t r = 0; r < x->down.count; r += edge) {
            const int64_t rows = hlort_min(edge, x->down.count - r), stop = hlort_min(end, c0 + width);
            for (int64_t next = r + edge; next < hlort_min(r + 2 * edge, x->down.count); next++)
                for (int64_t c = c0; c < stop; c += edge)
                    __builtin_prefetch(from + next * x->down.from + c * x->across.from);
            for (int64_t c = c0; c < stop; c += edge)
                turn_one(x, from + r * x->down.from + c * x->across.from, to + r * x->down.to + c * x->across.to, rows, hlort_min(edge, stop - c));
        }
}

/* With a thin dimension: element by element, the longer dimension inside. */
#define THIN_COLUMNS(TYPE)                                                                           \
    for (int64_t r0 = 0; r0 < x->down.count; r0 += 256)                                              \
        for (int64_t c0 = first; c0 < end; c0 += 256) {                                              \
            const int64_t rows = hlort_min(x->down.count, r0 + 256), columns = hlort_min(end, c0 + 256); \
            if (columns - c0 < rows - r0)                                                            \
                for (int64_t c = c0; c < columns; c++)                                               \
                    for (int64_t r = r0; r < rows; r++)                                              \
                        memcpy(to + r * x->down.to + c * x->across.to, from + r * x->down.from + c * x->across.from, sizeof(TYPE)); \
            else                                                                                     \
                for (int64_t r = r0; r < rows; r++)                                                  \
                    for (int64_t c = c0; c < columns; c++)                                           \
                        memcpy(to + r * x->down.to + c * x->across.to, from + r * x->down.from + c * x->across.from, sizeof(TYPE)); \
        }

static void thin_columns(const Turn *x, const char *from, char *to, int64_t first, int64_t end)
{
    switch (x->d->bytes) {
    case 1: THIN_COLUMNS(uint8_t) break;
    case 2: THIN_COLUMNS(uint16_t) break;
    case 4: THIN_COLUMNS(uint32_t) break;
    case 8: THIN_COLUMNS(uint64_t) break;
    default: THIN_COLUMNS(uint64_t[2]) break;
    }
}

static void copy_runs(const Turn *x, const char *from, char *to, int64_t first, int64_t end)
{
    for (int64_t r = first; r < end; r++)
        memcpy(to + r * x->down.to, from + r * x->down.from, (size_t)x->run);
}

static void unit(const Turn *x, int64_t number)
{
    const char *from = x->from;
    char       *to = x->to;
    int64_t     rest = number / x->pieces, first = number % x->pieces * x->piece;
    for (int64_t k = x->n_outer - 1; k >= 0; k--) {
        int64_t at = rest % x->outer[k].count;
        rest /= x->outer[k].count;
        from += at * x->outer[k].from;
        to += at * x->outer[k].to;
    }
    if (x->run)
        copy_runs(x, from, to, first, hlort_min(x->down.count, first + x->piece));
    else if (x->down.count <= THIN || x->across.count <= THIN)
        thin_columns(x, from, to, first, hlort_min(x->across.count, first + x->piece));
    else
        turn_columns(x, from, to, first, hlort_min(x->across.count, first + x->piece));
}

static void part(void *job, int64_t number, void *memory)
{
    const Turn   *x = job;
    const int64_t units = x->members * x->pieces;
    (void)memory;
    for (int64_t k = units * number / x->parts; k < units * (number + 1) / x->parts; k++)
        unit(x, k);
#if defined(__x86_64__)
    if (x->stream)
        __builtin_ia32_sfence();
#endif
}

/* ---- the whole ---- */

/* Sorts the dimensions: runs or two that change places, the others outside. */
static void sort_axes(Turn *x)
{
    const hlort_axes *d = x->d;
    int64_t           down = -1, across = -1;
    for (int64_t k = 0; k < d->n; k++) {
        if (d->axis[k].to == 1)
            down = k;
        if (d->axis[k].from == 1)
            across = k;
    }
    x->run = down == across ? d->axis[down].count * d->bytes : 0;
    x->down = x->across = (hlort_axis){ 1, 0, 0 };
    for (int64_t k = 0; k < d->n; k++) {
        hlort_axis a = { d->axis[k].count, d->axis[k].to * d->bytes, d->axis[k].from * d->bytes };
        if (x->run ? k == d->n - 2 : k == down)
            x->down = a;
        else if (!x->run && k == across)
            x->across = a;
        else if (k != down)
            x->outer[x->n_outer++] = a;
    }
}

/* Whole lines of the result are written only where every row of it begins with one. */
static int may_stream(const Turn *x, int64_t bytes)
{
    int whole = bytes >= STREAM && (uintptr_t)x->to % LINE == 0 && x->across.to % LINE == 0;
    for (int64_t k = 0; k < x->n_outer; k++)
        whole &= x->outer[k].to % LINE == 0;
    return whole;
}

/* Lines so many bytes apart, in a cache of 64 places that hold 8 lines each: more than half of what fits? */
static int shares_places(int64_t apart, int64_t lines)
{
    int64_t step = apart & -apart;
    return lines * (step < LINE ? LINE : step) / (64 * LINE) > 4;
}

void hlort_transpose(const hlort_axes *d, const hlort_how *how, const void *from, void *to)
{
    Turn x = { .d = d, .from = from, .to = to, .members = 1 };
    sort_axes(&x);
    for (int64_t k = 0; k < x.n_outer; k++)
        x.members *= x.outer[k].count;
    const int64_t inner = x.run ? x.down.count : x.across.count, each = x.run ? x.run : x.down.count * d->bytes, all = inner * each * x.members;
    const int64_t unit_of = x.run ? 1 : CHUNK * LINE / d->bytes;
    if (all == 0)
        return;
    x.stream = may_stream(&x, all);
    x.staged = shares_places(x.across.to, LINE / d->bytes);
    x.piece = hlort_ceildiv(hlort_ceildiv(PART_BYTES, each), unit_of) * unit_of;
    x.pieces = hlort_ceildiv(inner, x.piece);
    x.parts = hlort_min(hlort_min(x.members * x.pieces, hlort_ceildiv(all, PART_BYTES)), 8 * (int64_t)pool_threads(how->pool));
    pool_run(how->pool, part, &x, x.parts, how->work);
}
