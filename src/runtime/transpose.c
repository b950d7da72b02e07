/* transpose.c - arrays with their dimensions in another order.
 *
 * Where neighbours stay neighbours, runs are copied. Else one dimension's neighbours lie together in the result (`down`: rows of the source) and another's in the
 * source (`across`), and rectangles of the two are turned, which is in transpose_body.h; all other dimensions are outside. Results that are larger than caches are
 * written past them. */
#include "runtime/gemm.h"
#include "runtime/pool.h"
#include "runtime/transpose.h"
#include "runtime/vec.h"

#include <string.h>

enum {
    LINE = HLORT_LINE,
    DOWN = 8 * LINE, ACROSS = 32 * LINE, /* bytes of a rectangle's edges */
    NARROW = 4 * LINE,      /* rows so short are taken more at a time */
    STREAM = 8 << 20,       /* bytes of a result from which it is written past the caches */
    LEAST_COLLECTED = 8 * LINE, /* bytes of rows of which most lines are whole, wherever they begin */
    THIN = 4,               /* a dimension of up to so many is not worth tiles */
    PART_BYTES = 128 * 1024 /* what one part of the work should at least be */
};

/* A dimension in pieces of `size`; the last one has the rest, too. */
typedef struct Pieces {
    int64_t number, size;
} Pieces;

typedef struct Turn {
    const KernelSet  *set;
    const hlort_axes *d;
    const char       *from;
    char             *to;
    hlort_axis        down, across; /* in bytes; `down` of a copy of runs: what is looped over inside of a unit */
    int64_t           run;          /* of a copy: bytes; 0: rectangles are turned */
    int64_t           n_outer, members;
    hlort_axis        outer[HLORT_MOST_AXES];
    Pieces            of_down, of_across;
    int64_t           parts;
    TurnStores        past;
} Turn;

static TurnFunction *turn_function(const Turn *x)
{
    return x->set->turn[__builtin_ctzll((uint64_t)x->d->bytes)];
}

/* ---- what has an edge shorter than a line ---- */

/* Up to a line, as two halves that overlap. */
static void copy_short(char *to, const char *from, int64_t bytes)
{
    if (bytes >= 32) {
        memcpy(to, from, 32);
        memcpy(to + bytes - 32, from + bytes - 32, 32);
    } else if (bytes >= 16) {
        memcpy(to, from, 16);
        memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else {
        for (int64_t k = 0; k < bytes; k++)
            to[k] = from[k];
    }
}

/* Block by block, through blocks that are whole. */
static void turn_short(const Turn *x, const char *from, char *to, int64_t rows, int64_t columns)
{
    char          in[LINE * LINE] __attribute__((aligned(64))) = { 0 }, out[LINE * LINE] __attribute__((aligned(64)));
    const int64_t bytes = x->d->bytes, edge = LINE / bytes;
    for (int64_t c = 0; c < columns; c += edge)
        for (int64_t r = 0; r < rows; r += edge) {
            const int64_t down = hlort_min(edge, rows - r), across = hlort_min(edge, columns - c);
            for (int64_t k = 0; k < down; k++)
                copy_short(in + k * LINE, from + (r + k) * x->down.from + c * bytes, across * bytes);
            turn_function(x)(&(TurnPart){ in, out, edge, edge, LINE, LINE, HLORT_STORED });
            for (int64_t k = 0; k < across; k++)
                copy_short(to + (c + k) * x->across.to + r * bytes, out + k * LINE, down * bytes);
        }
}

/* With a thin dimension: element by element, the longer dimension inside. */
#define THIN_PART(TYPE)                                                                           \
    for (int64_t r0 = 0; r0 < n_rows; r0 += 256)                                                     \
        for (int64_t c0 = 0; c0 < n_columns; c0 += 256) {                                            \
            const int64_t rows = hlort_min(n_rows, r0 + 256), columns = hlort_min(n_columns, c0 + 256); \
            if (columns - c0 < rows - r0)                                                            \
                for (int64_t c = c0; c < columns; c++)                                               \
                    for (int64_t r = r0; r < rows; r++)                                              \
                        memcpy(to + r * x->down.to + c * x->across.to, from + r * x->down.from + c * x->across.from, sizeof(TYPE)); \
            else                                                                                     \
                for (int64_t r = r0; r < rows; r++)                                                  \
                    for (int64_t c = c0; c < columns; c++)                                           \
                        memcpy(to + r * x->down.to + c * x->across.to, from + r * x->down.from + c * x->across.from, sizeof(TYPE)); \
        }

static void turn_thin(const Turn *x, const char *from, char *to, int64_t n_rows, int64_t n_columns)
{
    switch (x->d->bytes) {
    case 1: THIN_PART(uint8_t) break;
    case 2: THIN_PART(uint16_t) break;
    case 4: THIN_PART(uint32_t) break;
    case 8: THIN_PART(uint64_t) break;
    default: THIN_PART(uint64_t[2]) break;
    }
}

/* ---- a unit of work: a piece of one member ---- */

static int64_t begin_of(const Pieces *p, int64_t number)
{
    return number * p->size;
}

static int64_t count_of(const Pieces *p, int64_t number, int64_t all)
{
    return number == p->number - 1 ? all - begin_of(p, number) : p->size;
}

static void unit(const Turn *x, int64_t number)
{
    const int64_t c = number % x->of_across.number, r = number / x->of_across.number % x->of_down.number, edge = LINE / x->d->bytes;
    const int64_t rows = count_of(&x->of_down, r, x->down.count), columns = count_of(&x->of_across, c, x->across.count);
    const char   *from = x->from + begin_of(&x->of_down, r) * x->down.from + begin_of(&x->of_across, c) * x->across.from;
    char         *to = x->to + begin_of(&x->of_down, r) * x->down.to + begin_of(&x->of_across, c) * x->across.to;
    int64_t       rest = number / (x->of_across.number * x->of_down.number);
    for (int64_t k = x->n_outer - 1; k >= 0; k--) {
        int64_t at = rest % x->outer[k].count;
        rest /= x->outer[k].count;
        from += at * x->outer[k].from;
        to += at * x->outer[k].to;
    }
    if (x->run)
        x->set->runs(&(RunsPart){ from, to, rows, x->run, x->down.from, x->down.to, x->past });
    else if (rows >= edge && columns >= edge)
        turn_function(x)(&(TurnPart){ from, to, rows, columns, x->down.from, x->across.to, x->past });
    else if (x->down.count <= THIN || x->across.count <= THIN)
        turn_thin(x, from, to, rows, columns);
    else
        turn_short(x, from, to, rows, columns);
}

static void part(void *job, int64_t number, void *memory)
{
    const Turn   *x = job;
    const int64_t units = x->members * x->of_down.number * x->of_across.number;
    (void)memory;
    for (int64_t k = units * number / x->parts; k < units * (number + 1) / x->parts; k++)
        unit(x, k);
#if defined(__x86_64__)
    if (x->past)
        __builtin_ia32_sfence();
#endif
}

/* ---- the whole ---- */

/* Past the caches from a size on, whole lines where every row of the result begins with one. */
static TurnStores stores(const hlort_axes *d, const void *to)
{
    int64_t all = d->bytes, row = 0;
    int     whole = (uintptr_t)to % LINE == 0;
    for (int64_t k = 0; k < d->n; k++) {
        all *= d->axis[k].count;
        if (d->axis[k].to == 1)
            row = d->axis[k].count * d->bytes;
        else
            whole &= d->axis[k].to * d->bytes % LINE == 0;
    }
    return all < STREAM ? HLORT_STORED : whole ? HLORT_LINES : row >= LEAST_COLLECTED ? HLORT_ANYWHERE : HLORT_STORED;
}

/* Sorts the dimensions: runs or two that change places, the others outside. Around runs, what is next in the result is inside; where stores do not wait, what is next
 * in the source (f32[512,512,48] with its first two dimensions in the other order: 11.1 and 2.5 ms). */
static void sort_axes(Turn *x)
{
    const hlort_axes *d = x->d;
    int64_t           down = -1, across = -1, inside = d->n - 2;
    for (int64_t k = 0; k < d->n; k++) {
        if (d->axis[k].to == 1)
            down = k;
        if (d->axis[k].from == 1)
            across = k;
        if (x->past == HLORT_LINES && k < d->n - 1 && d->axis[k].from < d->axis[inside].from)
            inside = k;
    }
    x->run = down == across ? d->axis[down].count * d->bytes : 0;
    x->down = x->across = (hlort_axis){ 1, 0, 0 };
    for (int64_t k = 0; k < d->n; k++) {
        hlort_axis a = { d->axis[k].count, d->axis[k].to * d->bytes, d->axis[k].from * d->bytes };
        if (x->run ? k == inside : k == down)
            x->down = a;
        else if (!x->run && k == across)
            x->across = a;
        else if (k != down)
            x->outer[x->n_outer++] = a;
    }
}

/* Pieces of n elements, of which so many are `bytes`; none is shorter, if not all together are. */
static Pieces in_pieces(int64_t n, int64_t bytes, int64_t element)
{
    int64_t size = bytes / element < 1 ? 1 : bytes / element, number = n / size;
    return (Pieces){ number < 1 ? 1 : number, size };
}

void hlort_transpose_by(const KernelSet *s, const hlort_axes *d, const hlort_how *how, const void *from, void *to)
{
    Turn x = { .set = s->runs ? s : s->rest, .d = d, .from = from, .to = to, .members = 1, .past = stores(d, to) };
    sort_axes(&x);
    for (int64_t k = 0; k < x.n_outer; k++)
        x.members *= x.outer[k].count;
    const int64_t all = x.members * x.down.count * (x.run ? x.run : x.across.count * d->bytes), row = x.across.count * d->bytes;
    if (all == 0)
        return;
    x.of_across = in_pieces(x.across.count, x.run ? d->bytes : ACROSS, d->bytes);
    x.of_down = x.run ? in_pieces(x.down.count, PART_BYTES, x.run) : in_pieces(x.down.count, x.past == HLORT_ANYWHERE ? HLORT_COLLECTED : row <= NARROW ? 4 * DOWN : DOWN, d->bytes);
    x.parts = hlort_min(hlort_min(x.members * x.of_down.number * x.of_across.number, hlort_ceildiv(all, PART_BYTES)), 8 * (int64_t)pool_threads(how->pool));
    pool_run(how->pool, part, &x, x.parts, how->work);
}

void hlort_transpose(const hlort_axes *d, const hlort_how *how, const void *from, void *to)
{
    hlort_transpose_by(hlort_kernels(), d, how, from, to);
}
